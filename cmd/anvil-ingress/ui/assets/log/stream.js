// stream.js -- the socket of a run that goes on: messages, reconnected until its end.

import { post, urlOf } from '../api.js';
import { SHAPES } from '../shapes.js';

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 15000;
const FINISHED = 1000;

export class Stream {
	#runId;
	#signal;
	#hooks;
	#pause = FIRST_PAUSE_MS;
	#socket = null;
	#over = false;

	// hooks: from() -> the next line wanted; message(m); state(word); ended(): the run is over.
	constructor(runId, signal, hooks) {
		this.#runId = runId;
		this.#signal = signal;
		this.#hooks = hooks;
		signal.addEventListener('abort', () => this.close());
		this.#hooks.state('Connecting');
		this.#connect();
	}

	close() {
		this.#over = true;
		this.#socket?.close();
		this.#hooks.state('Closed');
	}

	async #connect() {
		try {
			const { ticket } = await post(`api/private/runs/${this.#runId}/log-ticket`,
				'ticket', { signal: this.#signal });

			if (!this.#over)
				this.#open(ticket);
		} catch {
			this.#again();
		}
	}

	#open(ticket) {
		const query = new URLSearchParams({ ticket, from: this.#hooks.from() });
		const url = urlOf(`api/private/runs/${this.#runId}/logs?${query}`);

		url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
		const socket = this.#socket = new WebSocket(url);

		socket.onopen = () => {
			this.#pause = FIRST_PAUSE_MS;
			this.#hooks.state('Connected');
		};
		socket.onmessage = (event) => this.#take(event.data);
		socket.onclose = (event) => {
			this.#socket = null;
			if (this.#over)
				return;
			if (event.code === FINISHED) {
				this.#over = true;
				this.#hooks.state('Closed');
				this.#hooks.ended();
			} else {
				this.#again();
			}
		};
	}

	#take(data) {
		let message;

		try {
			message = JSON.parse(data);
		} catch {
			return;
		}
		const shape = SHAPES[message?.type];

		if (['state', 'log', 'gap'].includes(message?.type) && shape(message))
			this.#hooks.message(message);
	}

	#again() {
		if (this.#over || this.#signal.aborted)
			return;
		this.#hooks.state('Reconnecting');
		setTimeout(() => {
			if (!this.#over)
				this.#connect();
		}, this.#pause);
		this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE_MS);
	}
}
