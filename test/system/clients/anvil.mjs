// anvil.mjs -- what the clients share: anvil's API through the proxy, the levers of a test, and
// the rules for what a viewer gets (http-api 8.1).
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

export const { AT, AT_OTHER, TOKEN } = process.env;
const { DATA, ANVILCTL, CONF } = process.env;
const LIMIT_MS = 60_000;

// Waits for a condition; its value is the result.
export async function until(what, condition) {
	const end = Date.now() + LIMIT_MS;

	for (;;) {
		const value = await condition();
		if (value)
			return value;
		assert.ok(Date.now() < end, `not within ${LIMIT_MS} ms: ${what}`);
		await pause(20);
	}
}

export async function api(method, path) {
	const answer = await fetch(AT + path, {
		method,
		headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
		body: method === 'POST' ? '{}' : undefined,
	});

	assert.ok(answer.ok, `${method} ${path}: ${answer.status}`);
	return answer;
}

export async function trigger(project) {
	const answer = await api('POST', `/api/private/projects/${project}/runs`);
	return (await answer.json()).runId;
}

export async function ticketFor(run) {
	const answer = await api('POST', `/api/private/runs/${run}/log-ticket`);
	return (await answer.json()).ticket;
}

export async function textOf(run) {
	return (await api('GET', `/api/private/runs/${run}/log`)).text();
}

export function socketUrl(run, ticket, from) {
	return `${AT.replace('http', 'ws')}/api/private/runs/${run}/logs?ticket=${ticket}` +
		(from === undefined ? '' : `&from=${from}`);
}

// Lets a step go on that waits for a file: `go` is that of $HOLD.
export function letGo(run, file = 'go') {
	return writeFile(`${DATA}/runs/${run}/home/${file}`, '');
}

export async function endIngress(signal) {
	const { stdout } = await promisify(execFile)(ANVILCTL, ['-c', CONF, 'ps', '--json']);
	process.kill(JSON.parse(stdout).find((a) => a.address === 'ingress').pid, signal);
}

// ---- what a viewer has got ----

export function linesOf(messages) {
	return messages.filter((m) => m.type === 'log').map((m) => m.event);
}

export function chunksOf(messages) {
	return linesOf(messages).map((e) => e.chunk).join('');
}

// One connection: a state first, then lines from ${from} on without a gap or a repeat.
export function checkOrder(messages, from = 1) {
	assert.equal(messages[0]?.type, 'state', 'the first message');
	linesOf(messages).forEach((e, i) => assert.equal(e.seq, from + i, 'seq'));
	assert.ok(!messages.some((m) => m.type === 'gap'), 'no gap');
}

// A connection that has seen a run to its end: the lines of a step, which begin with its name,
// come before the change that ends it, and the last message is the end of the run.
export function checkEnd(messages, status) {
	const names = messages.at(-1).steps.map((step) => step.name);

	assert.equal(messages.at(-1).type, 'state', 'the last message');
	assert.equal(messages.at(-1).run.status, status, 'the last state');
	names.forEach((name, i) => {
		// The first state is told before the replay.
		const ended = messages.findIndex((m, at) =>
			at > 0 && m.type === 'state' && m.steps[i]?.finishedAt);
		assert.ok(!chunksOf(messages.slice(ended)).includes(`${name}: `),
			`lines of ${name} after its end`);
	});
}
