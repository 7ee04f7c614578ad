// chromium.mjs -- the pages of anvil in a real browser, as somebody who is signed in or not.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { after } from 'node:test';
import { chromium } from 'playwright-core';

import { AT, TOKEN } from './anvil.mjs';

export const { CHROMIUM } = process.env;
const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export const browser = await chromium.launch({
	executablePath: CHROMIUM,
	args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
	timeout: 120_000,
});
after(() => browser.close());

// A browser of its own; what its pages complain of is in context.complaints.
export async function newContext(options = {}) {
	const context = await browser.newContext({ ignoreHTTPSErrors: true,
		viewport: { width: 1200, height: 800 }, ...options });

	context.setDefaultTimeout(30_000);
	context.complaints = [];
	context.on('weberror', (error) => context.complaints.push(error.error().message));
	context.on('console', (message) => {
		if (['error', 'warning'].includes(message.type()))
			context.complaints.push(message.text());
	});
	return context;
}

// The browser tells of every answer above 399 by itself.
export function onlyAnswers(context) {
	assert.deepEqual(context.complaints.filter((c) => !c.includes('Failed to load resource')), []);
}

export function signedIn(token = TOKEN, options = {}) {
	return newContext({ storageState: { cookies: [], origins: [{ origin: AT,
		localStorage: [{ name: 'anvil.session', value: token }] }] }, ...options });
}

export async function open(context, path) {
	const page = await context.newPage();

	await page.goto(AT + path);
	return page;
}

export const button = (page, name) => page.getByRole('button', { name, exact: true });
export const heading = (page, name) => page.getByRole('heading', { name, exact: true });
export const label = (page, name) => page.getByLabel(name, { exact: true });

export async function hasHeading(page, name) {
	await page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
}

export async function says(page, text) {
	await page.getByText(text).first().waitFor();
}

// What axe finds wrong with the page as it is.
export async function checkAccess(page) {
	await page.evaluate(AXE);
	const { violations } = await page.evaluate(() => globalThis.axe.run(document, {
		runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }));

	assert.deepEqual(violations.map((v) => `${page.url()}: ${v.id}: ${v.help}: ` +
		v.nodes.map((n) => n.target.join(' ')).join(', ')), []);
}

// The page is no wider than the window.
export async function checkWidth(page) {
	const over = await page.evaluate(() =>
		document.documentElement.scrollWidth - document.documentElement.clientWidth);

	assert.ok(over <= 0, `${page.url()} is ${over} px too wide`);
}
