// pages_account.mjs -- signing in and out, invites, two users, sessions that end, in a browser.
import assert from 'node:assert/strict';
import test from 'node:test';

import { AT, api, until } from './anvil.mjs';
import { button, hasHeading, heading, label, newContext, onlyAnswers, open, says, signedIn } from
	'./chromium.mjs';

const { PROJECT, RUN, EMAIL, PASSWORD } = process.env;

async function signIn(page, email = EMAIL, password = PASSWORD) {
	await label(page, 'Email').fill(email);
	await label(page, 'Password').fill(password);
	await button(page, 'Sign In').click();
}

function userMenu(page) {
	return page.locator('header').getByRole('button', { expanded: false }).last();
}

async function choose(page, item) {
	await userMenu(page).click();
	await page.getByRole('menuitem', { name: item }).click();
}

test('somebody who is not signed in comes to the page that was asked for, afterwards', async () => {
	const context = await newContext();
	const page = await open(context, `/app/projects/${PROJECT}`);

	await hasHeading(page, 'Sign in');
	assert.match(page.url(), /\/app\/login$/);
	assert.equal(await page.title(), 'Sign in — anvil');
	await signIn(page, EMAIL, 'not the password');
	await says(page, 'Email or password is wrong.');
	await signIn(page);
	await hasHeading(page, 'hello');
	assert.match(page.url(), new RegExp(`/app/projects/${PROJECT}$`));
	assert.equal(await page.title(), 'hello — anvil');
	assert.equal(await page.evaluate(() => document.activeElement.tagName), 'H1');
	onlyAnswers(context);
	await context.close();
});

test('nothing but the documented keys is stored, and no cookie', async () => {
	const context = await newContext();
	const page = await open(context, '/');

	await signIn(page);
	await hasHeading(page, 'Projects');
	await choose(page, 'Profile & Settings');
	await page.getByLabel('Dark', { exact: true }).check();
	const keys = await page.evaluate(() => Object.keys(localStorage));

	assert.deepEqual(keys.sort(), ['anvil.session', 'anvil.theme']);
	assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
	assert.deepEqual(await context.cookies(), []);
	await page.reload();
	await hasHeading(page, 'Profile & Settings');
	assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
	await page.getByLabel('System', { exact: true }).check();
	assert.equal(await page.evaluate(() => localStorage.getItem('anvil.theme')), null);
	await context.close();
});

test('signing out in one tab takes effect in the other, and so does signing in', async () => {
	const context = await newContext();
	const first = await open(context, '/app/projects');

	await signIn(first);
	await hasHeading(first, 'Projects');
	const second = await open(context, '/app/me');

	await hasHeading(second, 'Profile & Settings');
	await choose(first, 'Sign Out');
	await hasHeading(first, 'Sign in');
	await hasHeading(second, 'Sign in');
	await signIn(second);
	await hasHeading(second, 'Profile & Settings');
	await hasHeading(first, 'Projects');
	onlyAnswers(context);
	await context.close();
});

test('an invite makes another user, who sees nothing of the first one', async () => {
	const context = await signedIn();
	const page = await open(context, '/app/projects');

	await hasHeading(page, 'Projects');
	await choose(page, 'Invite User');
	const dialog = page.getByRole('dialog', { name: 'Invite User' });

	await says(dialog, '7 days');
	await button(dialog, 'Generate Invite').click();
	const link = await label(dialog, 'Invite link').inputValue();

	assert.match(link, /\/app\/invite\/accept\?token=[\w-]{43}$/);
	await button(dialog, 'Copy').click();
	await button(dialog, 'Copied').waitFor();
	await page.keyboard.press('Escape');
	assert.equal(await dialog.count(), 0);

	const theirs = await newContext();
	const guest = await theirs.newPage();

	await guest.goto(link);
	await hasHeading(guest, 'Accept invite');
	assert.match(guest.url(), /\/app\/invite\/accept$/);
	assert.match(await label(guest, 'Invite token').inputValue(), /^[\w-]{43}$/);
	await label(guest, 'Email').fill('guest@example.com');
	await label(guest, 'Display name').fill('A Guest');
	assert.equal(await label(guest, 'Slug').inputValue(), 'a-guest');
	await label(guest, 'Password').fill('short');
	await label(guest, 'Confirm password').fill('other');
	await button(guest, 'Create Account').click();
	await says(guest, 'This is not the same password.');
	assert.equal(await label(guest, 'Password').getAttribute('aria-invalid'), 'true');
	await label(guest, 'Password').fill('a good password');
	await label(guest, 'Confirm password').fill('a good password');
	await button(guest, 'Create Account').click();
	await hasHeading(guest, 'Projects');
	await heading(guest, 'No projects yet').waitFor();
	await guest.goto(`${AT}/app/projects/${PROJECT}`);
	await hasHeading(guest, 'Page not found');
	await guest.goto(`${AT}/app/runs/${RUN}`);
	await hasHeading(guest, 'Page not found');

	const again = await newContext();
	const late = await again.newPage();

	await late.goto(link);
	for (const [name, text] of [['Email', 'x@example.com'], ['Display name', 'X'],
		['Password', 'a good password'], ['Confirm password', 'a good password']])
		await label(late, name).fill(text);
	await button(late, 'Create Account').click();
	await says(late, 'This invite was used already.');
	onlyAnswers(theirs);
	await Promise.all([context, theirs, again].map((c) => c.close()));
});

test('a session that ends is told, and the page comes back after signing in', async () => {
	const context = await newContext();
	const page = await open(context, `/app/projects/${PROJECT}`);

	await signIn(page);
	await hasHeading(page, 'hello');
	const session = await page.evaluate(() => localStorage.getItem('anvil.session'));

	await fetch(`${AT}/api/public/auth/logout`, { method: 'POST',
		headers: { Authorization: `Bearer ${session}` } });
	await button(page, 'Refresh').first().click();
	await says(page, 'Your session has expired. Sign in again.');
	await hasHeading(page, 'Sign in');
	await signIn(page);
	await hasHeading(page, 'hello');
	await context.close();
});

test('a page that does not exist, and a server that cannot be reached, are told', async () => {
	const context = await signedIn();
	const page = await open(context, '/app/nowhere');

	await hasHeading(page, 'Page not found');
	await page.goto(`${AT}/app/projects`);
	await hasHeading(page, 'Projects');
	await context.route('**/api/private/projects', (route) => route.abort());
	await button(page, 'Refresh').click();
	await says(page, 'The server cannot be reached.');
	await context.unroute('**/api/private/projects');
	await button(page, 'Retry').click();
	await page.getByRole('link', { name: 'hello' }).waitFor();
	await context.route('**/api/public/app-config', (route) => route.fulfill({ status: 500,
		contentType: 'application/json', body: JSON.stringify({ error: {
			code: 'encryption_not_configured', message: 'no key', details: null } }) }));
	await page.reload();
	await hasHeading(page, 'The server has no usable key');
	await says(page, 'keys_file');
	await context.unroute('**/api/public/app-config');
	await button(page, 'Retry').click();
	await hasHeading(page, 'Projects');
	await context.close();
});

test('what comes from outside is text, whatever it looks like', async () => {
	const context = await signedIn();
	const name = '<img src=x onerror="window.harmed=1">';
	const answer = await fetch(`${AT}/api/private/projects`, { method: 'POST',
		headers: { Authorization: `Bearer ${process.env.TOKEN}`, 'Content-Type': 'application/json' },
		body: JSON.stringify({ projectSlug: 'odd', name, repoUrl: 'https://example.com/a/b',
			defaultBranch: 'main' }) });
	const { project } = await answer.json();
	const page = await open(context, `/app/projects/${project.id}`);

	await hasHeading(page, name);
	await page.goto(`${AT}/app/projects`);
	await page.getByRole('link', { name }).waitFor();
	assert.equal(await page.evaluate(() => window.harmed), undefined);
	await until('the project by its API', async () => (await api('GET',
		`/api/private/projects/${project.id}`)).ok);
	onlyAnswers(context);
	await context.close();
});
