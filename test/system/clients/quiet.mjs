// quiet.mjs -- Node's ws through the silence of a step: one that answers pings, one that does not.
import assert from 'node:assert/strict';
import test from 'node:test';

import { checkEnd, checkOrder, chunksOf, textOf } from './anvil.mjs';
import { Socket } from './socket.mjs';

const { RUN, SLEEP } = process.env;
// Sent every 20 and 30 s; not all machines are quick.
const PING_S = 25;
const HEARTBEAT_S = 35;

const lively = await Socket.open(RUN);
const mute = await Socket.open(RUN, { autoPong: false });
const dropped = mute.lastClose();
const finished = lively.lastClose();
console.log('sockets are open');

test('a client that answers no ping is dropped', async () => {
	assert.equal((await dropped).code, 1006);
	assert.ok(mute.pings >= 2, `${mute.pings} pings`);
	assert.equal(lively.closed, null);
});

test('pings and heartbeats keep a socket through the proxy', async () => {
	assert.deepEqual(await finished, { code: 1000, reason: 'run_finished' });
	checkOrder(lively.messages);
	checkEnd(lively.messages, 'passed');
	assert.equal(chunksOf(lively.messages), await textOf(RUN));
	assert.ok(lively.pings >= Math.floor(SLEEP / PING_S), `${lively.pings} pings`);
	const beats = lively.messages.filter((m) => m.type === 'hb').length;
	assert.ok(beats >= Math.floor(SLEEP / HEARTBEAT_S), `${beats} heartbeats`);
});
