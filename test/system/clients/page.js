// page.js -- a page that watches a run: over a WebSocket, again and again until the run is over
// and across reloads, or over fetch() as Server-Sent Events.

const PAUSE_MS = 100;

// What has been seen so far.
window.viewer = JSON.parse(sessionStorage.getItem('viewer') ?? 'null');
addEventListener('pagehide', () => {
	sessionStorage.setItem('viewer', JSON.stringify(window.viewer));
});

function pause() {
	return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}

async function ticketFor(run, token) {
	const answer = await fetch(`/api/private/runs/${run}/log-ticket`, {
		method: 'POST',
		headers: { Authorization: `Bearer ${token}` },
	});

	if (!answer.ok)
		throw new Error(`status ${answer.status}`);
	return (await answer.json()).ticket;
}

// One connection; resolves with its close.
function connect(url, onMessage) {
	return new Promise((resolve) => {
		const socket = new WebSocket(url);

		socket.onmessage = (event) => onMessage(JSON.parse(event.data));
		socket.onclose = ({ code, reason, wasClean }) => resolve({ code, reason, wasClean });
	});
}

function socketUrl(run, ticket, from) {
	return `wss://${location.host}/api/private/runs/${run}/logs?ticket=${ticket}&from=${from}`;
}

async function watchOnce(viewer) {
	const ticket = await ticketFor(viewer.run, viewer.token);
	const connection = { from: viewer.next, messages: [], close: null };

	viewer.connections.push(connection);
	connection.close = await connect(socketUrl(viewer.run, ticket, viewer.next), (message) => {
		connection.messages.push(message);
		if (message.type === 'log')
			viewer.next = message.event.seq + 1;
	});
	return connection.close.code === 1000;
}

async function watch(viewer) {
	while (!viewer.over) {
		viewer.over = await watchOnce(viewer).catch(() => false);
		if (!viewer.over)
			await pause();
	}
}

// Begins to watch a run; what comes of it is in window.viewer.
window.begin = (run, token) => {
	window.viewer = { run, token, next: 1, connections: [], over: false };
	watch(window.viewer);
};

// One connection with a ticket that somebody else got.
window.tryOnce = (url) => connect(url, () => {});

// The whole of a stream of events, as text.
window.events = async (run, token) => {
	const answer = await fetch(`/api/private/runs/${run}/events`, {
		headers: { Authorization: `Bearer ${token}` },
	});
	const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();

	window.stream = '';
	for (;;) {
		const { value, done } = await reader.read();
		if (done)
			return { type: answer.headers.get('Content-Type'), text: window.stream };
		window.stream += value;
	}
};

window.link = async (run, token) => {
	const ticket = await ticketFor(run, token);

	document.getElementById('save').href = `/api/private/runs/${run}/log?download=1&ticket=${ticket}`;
};

if (window.viewer !== null && !window.viewer.over)
	watch(window.viewer);
