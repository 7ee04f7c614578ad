// browser.mjs -- Chromium as a viewer: a page under anvil's policy watches, loses its connection,
// is reloaded, and is turned away where it has a strange origin.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test, { after } from 'node:test';
import { chromium } from 'playwright-core';

import { AT, AT_OTHER, TOKEN, checkEnd, checkOrder, chunksOf, endIngress, letGo, linesOf,
	socketUrl, textOf, ticketFor, trigger, until } from './anvil.mjs';

const { PROJECT, CHROMIUM } = process.env;
const PAGE = '/pages/page.html';
const SANDBOXED = '/sandboxed/page.html';	// its origin is null
const FINISHED = { code: 1000, reason: 'run_finished', wasClean: true };

const browser = await chromium.launch({
	executablePath: CHROMIUM,
	args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
	timeout: 120_000,
});
const context = await browser.newContext({ ignoreHTTPSErrors: true });
context.setDefaultTimeout(60_000);
after(() => browser.close());

async function openPage(at = AT + PAGE) {
	const page = await context.newPage();

	page.complaints = [];
	page.on('console', (message) => page.complaints.push(message.text()));
	page.on('pageerror', (error) => page.complaints.push(error.message));
	await page.goto(at);
	return page;
}

function viewerOf(page) {
	return page.evaluate(() => window.viewer);
}

async function hasLine(page, text) {
	await until(`a line ${text} in the page: ${page.complaints}`, async () =>
		(await viewerOf(page)).connections.some((c) => chunksOf(c.messages).includes(text)));
}

async function finish(run) {
	await letGo(run, 'enough');
	await letGo(run);
}

// A run that a page has begun to watch.
async function watched() {
	const page = await openPage();
	const run = await trigger(PROJECT);

	await page.evaluate(([id, token]) => window.begin(id, token), [run, TOKEN]);
	await hasLine(page, 'first: begun');
	return { page, run };
}

// The page has seen all of the run, once, over as many connections as it took.
async function sawAll(page, run) {
	await until('the end of a run in the page', async () => (await viewerOf(page)).over);
	const { connections } = await viewerOf(page);

	connections.filter((c) => c.messages.length > 0).forEach((c) =>
		checkOrder(c.messages, c.from));
	checkEnd(connections.at(-1).messages, 'passed');
	assert.deepEqual(connections.at(-1).close, FINISHED);
	assert.equal(connections.map((c) => chunksOf(c.messages)).join(''), await textOf(run));
	return connections;
}

test('a page watches a run to its end', async () => {
	const { page, run } = await watched();

	await finish(run);
	const connections = await sawAll(page, run);
	assert.equal(connections.length, 1);
	const states = connections[0].messages.filter((m) => m.type === 'state')
		.map((m) => m.run.status);
	assert.ok(states.includes('running'), `${states}`);
	assert.deepEqual(page.complaints, []);
	await page.close();
});

test('a page that is reloaded goes on at its next line', async () => {
	const { page, run } = await watched();

	await page.reload();
	await until('another connection', async () =>
		(await viewerOf(page)).connections.some((c) => c.from > 1 && c.messages.length > 0));
	await finish(run);
	await sawAll(page, run);
	await page.close();
});

test('a page whose ingress is killed comes back with a new ticket', async () => {
	const { page, run } = await watched();

	await letGo(run);	// lines come while ingress dies and returns
	await hasLine(page, 'second: line 5\n');
	await endIngress('SIGKILL');
	await until('lines over another connection', async () =>
		(await viewerOf(page)).connections.some((c) =>
			c.from > 1 && linesOf(c.messages).length > 0));
	await letGo(run, 'enough');
	const connections = await sawAll(page, run);
	assert.ok(connections.length >= 2);
	assert.equal(connections[0].close.code, 1006);
	await page.close();
});

test('pages of another origin, and of none, are turned away', async () => {
	const run = await trigger(PROJECT);
	const url = socketUrl(run, await ticketFor(run), 1);
	const turnedAway = async (at) => {
		const page = await openPage(at);
		const close = await page.evaluate((target) => new Promise((resolve) => {
			new WebSocket(target).onclose = (event) => resolve(event.code);
		}), url);

		assert.equal(close, 1006);
		await until(`403 in ${page.complaints}`, () =>
			page.complaints.some((text) => text.includes('Unexpected response code: 403')));
		await page.close();
	};

	await turnedAway(AT_OTHER + PAGE);
	await turnedAway(AT + SANDBOXED);
	await until('the step of the run', async () => (await textOf(run)).includes('first: begun'));
	await finish(run);
	// The ticket is still good for the right one.
	const page = await openPage();
	assert.deepEqual(await page.evaluate((target) => window.tryOnce(target), url), FINISHED);
	await page.close();
});

test('events come over fetch, as they happen', async () => {
	const page = await openPage();
	const run = await trigger(PROJECT);
	const whole = page.evaluate(([id, token]) => window.events(id, token), [run, TOKEN]);

	await until('an event in the page', () =>
		page.evaluate(() => window.stream?.includes('first: begun')));
	await finish(run);
	const { type, text } = await whole;
	const messages = text.split('\n').filter((line) => line.startsWith('data: '))
		.map((line) => JSON.parse(line.slice(6)));
	assert.equal(type, 'text/event-stream; charset=utf-8');
	assert.deepEqual(messages.pop(), { type: 'end', reason: 'run_finished' });
	checkOrder(messages);
	checkEnd(messages, 'passed');
	assert.equal(chunksOf(messages), await textOf(run));
	await page.close();
});

test('a link with a ticket saves the text', async () => {
	const { page, run } = await watched();

	await finish(run);
	await sawAll(page, run);
	await page.evaluate(([id, token]) => window.link(id, token), [run, TOKEN]);
	const [download] = await Promise.all([page.waitForEvent('download'), page.click('#save')]);
	assert.equal(download.suggestedFilename(), `${run}.log`);
	assert.equal(await readFile(await download.path(), 'utf8'), await textOf(run));
	await page.close();
});
