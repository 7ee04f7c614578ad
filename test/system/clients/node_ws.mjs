// node_ws.mjs -- Node's ws as a viewer: frames of every kind, closes, refusals, many at once.
import assert from 'node:assert/strict';
import test from 'node:test';

import { checkEnd, checkOrder, chunksOf, endIngress, letGo, linesOf, textOf, ticketFor, trigger,
	until } from './anvil.mjs';
import { Socket } from './socket.mjs';

const { PROJECT } = process.env;
const NSOCKETS = 50;
const FINISHED = { code: 1000, reason: 'run_finished' };
const FAR = 1_000_000;	// beyond every line: only what is live

const run = await trigger(PROJECT);
const first = await Socket.open(run);
await first.has('first: begun');

// A socket that does ${act}, and has to be closed with ${code}.
async function closes(code, act) {
	const socket = await Socket.open(run, { from: FAR });

	await act(socket.ws);
	assert.equal((await socket.end()).code, code);
}

test('compression and subprotocols are declined', async () => {
	const socket = await Socket.open(run, { from: FAR, perMessageDeflate: true });

	assert.equal(socket.ws.extensions, '');
	assert.equal(socket.ws.protocol, '');
	socket.ws.terminate();
});

test('the text ping is answered by the text pong, in one frame or in several', async () => {
	const socket = await Socket.open(run, { from: FAR });

	socket.ws.send('ping');
	socket.ws.send('pi', { fin: false });
	socket.ws.ping('between');
	socket.ws.send('', { fin: false });
	socket.ws.send('ng', { fin: true });
	await socket.settle();
	assert.equal(socket.answers, 2);
	assert.equal(socket.pongs[0], 'between');
	socket.ws.terminate();
});

test('binary, other text and pongs are ignored', async () => {
	const socket = await Socket.open(run, { from: FAR });

	socket.ws.send(Buffer.from('ping'), { binary: true });
	for (const text of ['', 'PING', 'ping ', '{"type":"ping"}', 'größer', 'x'.repeat(4096)])
		socket.ws.send(text);
	socket.ws.pong('unasked');
	await socket.settle();
	assert.equal(socket.answers, 0);
	socket.ws.send('ping');
	await socket.settle();
	assert.equal(socket.answers, 1);
	assert.ok(socket.messages.every((m) => m.type === 'state' || m.type === 'hb'));
	socket.ws.terminate();
});

test('a close is echoed', async () => {
	await closes(1000, (ws) => ws.close(1000, 'seen enough'));
	await closes(4001, (ws) => ws.close(4001));
	await closes(1005, (ws) => ws.close());
});

test('a message over 4 KiB is too much, in one frame or in several', async () => {
	await closes(1009, (ws) => ws.send('x'.repeat(4097)));
	await closes(1009, (ws) => ws.send(Buffer.alloc(100_000), { binary: true }));
	await closes(1009, (ws) => {
		ws.send('x'.repeat(4000), { fin: false });
		ws.send('x'.repeat(97), { fin: true });
	});
});

test('unmasked frames and invalid UTF-8 are refused', async () => {
	await closes(1002, (ws) => ws.send('ping', { mask: false }));
	await closes(1007, (ws) => ws.send(Buffer.from([0x70, 0xff]), { binary: false }));
});

test('tickets hold once, for one run; strange origins are turned away', async () => {
	const ticket = await ticketFor(run);
	const refused = (status, options) =>
		assert.rejects(Socket.open(run, options), { status });

	await refused(403, { ticket, origin: 'https://elsewhere.example' });
	await refused(403, { ticket, origin: 'null' });
	await refused(400, { ticket, from: 0 });
	const socket = await Socket.open(run, { ticket, from: FAR });
	await refused(403, { ticket });
	socket.ws.terminate();
});

test(`${NSOCKETS} sockets at once get the same run, to its end`, async () => {
	const more = await Promise.all(Array.from({ length: NSOCKETS }, (_, i) =>
		Socket.open(run, { from: i % 2 === 0 ? undefined : 2 })));

	await letGo(run);
	for (const socket of [first, ...more])
		assert.deepEqual(await socket.end(), FINISHED);
	const text = await textOf(run);
	checkOrder(first.messages);
	checkEnd(first.messages, 'passed');
	assert.equal(chunksOf(first.messages), text);
	const lines = linesOf(first.messages);
	assert.ok(lines.length >= 3);
	more.forEach((socket, i) => {
		checkOrder(socket.messages, i % 2 === 0 ? 1 : 2);
		checkEnd(socket.messages, 'passed');
		assert.deepEqual(linesOf(socket.messages), lines.slice(i % 2));
	});
});

test('a run that is over is told from some line on, and its end', async () => {
	const socket = await Socket.open(run, { from: 2 });

	assert.deepEqual(await socket.end(), FINISHED);
	checkOrder(socket.messages, 2);
	checkEnd(socket.messages, 'passed');
});

test('ingress that stops says so, and the next one goes on where it was', async () => {
	const other = await trigger(PROJECT);
	const before = await Socket.open(other);

	await before.has('first: begun');
	await endIngress('SIGTERM');
	assert.deepEqual(await before.end(), { code: 1001, reason: 'restarting' });
	checkOrder(before.messages);
	const from = linesOf(before.messages).length + 1;
	const after = await until('ingress again', () =>
		Socket.open(other, { from }).catch(() => null));
	await letGo(other);
	assert.deepEqual(await after.end(), FINISHED);
	checkOrder(after.messages, from);
	checkEnd(after.messages, 'passed');
	assert.equal(chunksOf(before.messages) + chunksOf(after.messages), await textOf(other));
});
