// pages_project.mjs -- projects, their queue, their history and their webhooks, in a browser.
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import test from 'node:test';

import { AT, api, letGo, trigger, until } from './anvil.mjs';
import { button, checkAccess, checkWidth, hasHeading, heading, label, onlyAnswers, open, says,
	signedIn } from './chromium.mjs';

const { MANY, HOLD } = process.env;
const GITEA = 'https://git.example.com/acme/app';

async function detail(project) {
	return (await api('GET', `/api/private/projects/${project}`)).json();
}

async function projectBySlug(slug) {
	const { projects } = await (await api('GET', '/api/private/projects')).json();

	return projects.find((p) => p.projectSlug === slug);
}

test('a project is made, listed with its status, and leads to its page', async () => {
	const context = await signedIn();
	const page = await open(context, '/app/projects');

	await page.getByRole('link', { name: 'New Project' }).last().click();
	await hasHeading(page, 'New project');
	await label(page, 'Project name').fill('My Nice App!');
	assert.equal(await label(page, 'Project slug').inputValue(), 'my-nice-app');
	await label(page, 'Project slug').fill('nice');
	await label(page, 'Project name').fill('My Nicer App');
	assert.equal(await label(page, 'Project slug').inputValue(), 'nice');
	await label(page, 'Repository URL').fill('https://git.example.com/acme/app.git');
	await says(page, 'Host: git.example.com');
	await label(page, 'Default branch').fill('no..such');
	await label(page, 'Config path').fill('/etc/passwd');
	await button(page, 'Create Project').click();
	await until('two marked fields', async () =>
		await page.locator('[aria-invalid]').count() === 2);
	assert.equal(await label(page, 'Default branch').getAttribute('aria-invalid'), 'true');
	assert.equal(await label(page, 'Config path').getAttribute('aria-invalid'), 'true');
	assert.equal(await page.evaluate(() => document.activeElement.labels[0].textContent),
		'Default branch');
	await checkAccess(page);
	await label(page, 'Default branch').fill('trunk');
	await label(page, 'Config path').fill('ci/anvil.yml');
	await button(page, 'Create Project').dblclick();
	await hasHeading(page, 'Projects');
	await page.getByRole('link', { name: 'My Nicer App' }).click();
	await hasHeading(page, 'My Nicer App');
	await says(page, 'No runs yet');
	await says(page, 'Idle');
	const made = await projectBySlug('nice');

	assert.deepEqual([made.repoUrl, made.defaultBranch, made.configPath],
		[GITEA, 'trunk', 'ci/anvil.yml']);
	await page.goto(`${AT}/app/projects/new`);
	await label(page, 'Project name').fill('Nice');
	await label(page, 'Repository URL').fill(GITEA);
	await button(page, 'Create Project').click();
	await says(page, 'You have a project with this slug already');
	onlyAnswers(context);
	await context.close();
});

test('settings send what changed, and nothing when nothing did', async () => {
	const context = await signedIn();
	const { id } = await projectBySlug('nice');
	const page = await open(context, `/app/projects/${id}/settings`);
	const sent = [];

	page.on('request', (r) => r.method() === 'PATCH' && sent.push(r.postDataJSON()));
	await hasHeading(page, 'Update project');
	assert.ok(await label(page, 'Project slug').isDisabled());
	await button(page, 'Save Changes').click();
	await says(page, 'No changes to save.');
	assert.deepEqual(sent, []);
	await label(page, 'Project name').fill('Renamed');
	await label(page, 'Access token').fill('a-token-of-mine');
	await button(page, 'Save Changes').click();
	await hasHeading(page, 'Renamed');
	await page.goto(`${AT}/app/projects/${id}/settings`);
	assert.equal(await label(page, 'Access token').inputValue(), '');
	await page.getByLabel('Remove the stored token').check();
	await button(page, 'Save Changes').click();
	await hasHeading(page, 'Renamed');
	assert.deepEqual(sent, [{ name: 'Renamed', repoToken: 'a-token-of-mine' },
		{ repoToken: null }]);
	onlyAnswers(context);
	await context.close();
});

test('a badge is switched on, shown with what a README needs, and switched off', async () => {
	const context = await signedIn();
	const { id } = await projectBySlug('nice');
	const settings = `${AT}/app/projects/${id}/settings`;
	const picture = `${AT}/badge/demo/nice.svg`;
	const page = await open(context, `/app/projects/${id}/settings`);

	await hasHeading(page, 'Update project');
	assert.equal(await page.getByText('Markdown').count(), 0);
	await page.getByLabel('Public status badge').check();
	await button(page, 'Save Changes').click();
	await hasHeading(page, 'Renamed');
	await page.goto(settings);
	await heading(page, 'Status badge').waitFor();
	assert.ok(await page.getByLabel('Public status badge').isChecked());
	assert.equal(await label(page, 'Address').inputValue(), picture);
	assert.equal(await label(page, 'Markdown').inputValue(),
		`[![anvil](${picture})](${AT}/app/projects/${id})`);
	await until('the picture', () => page.getByAltText('Status badge of this project')
		.evaluate((img) => img.complete && img.naturalWidth > 50));
	await checkAccess(page);
	await page.setViewportSize({ width: 320, height: 800 });
	await checkWidth(page);
	assert.match(await (await fetch(picture)).text(), /<title>anvil: Idle</);
	await page.getByLabel('Public status badge').uncheck();
	await button(page, 'Save Changes').click();
	await hasHeading(page, 'Renamed');
	assert.equal((await fetch(picture)).status, 404);
	onlyAnswers(context);
	await context.close();
});

test('runs are triggered, queued in order, and canceled', async () => {
	const context = await signedIn();
	const page = await open(context, `/app/projects/${HOLD}`);

	await button(page, 'Trigger Run').click();
	const first = (await until('the first run', async () => (await detail(HOLD)).activeRun)).id;

	await label(page, 'Branch').fill('other');
	await button(page, 'Trigger Run').click();
	await says(page, '1st in queue');
	await label(page, 'Branch').fill('');
	await button(page, 'Trigger Run').click();
	await says(page, '2nd in queue');
	const { pendingRuns } = await detail(HOLD);

	assert.deepEqual(pendingRuns.map((r) => r.branch), ['other', 'main']);
	await button(page, `Cancel run ${pendingRuns[1].runId.slice(0, 12)}`).click();
	await until('one run in the queue', async () => (await detail(HOLD)).pendingRuns.length === 1);
	await page.getByText('2nd in queue').waitFor({ state: 'detached' });
	await label(page, 'Branch').fill('a b');
	await button(page, 'Trigger Run').click();
	await page.locator('[aria-invalid]').waitFor();
	await button(page, `Cancel run ${pendingRuns[0].runId.slice(0, 12)}`).click();
	await page.getByText('1st in queue').waitFor({ state: 'detached' });
	await letGo(first);
	// Nobody refreshes it: it does so itself while something runs.
	await says(page, 'Nothing runs or waits.');
	await page.getByRole('row').filter({ hasText: 'Passed' }).first().waitFor();
	onlyAnswers(context);
	await context.close();
});

test('a full queue says so', async () => {
	const context = await signedIn();
	const page = await open(context, `/app/projects/${HOLD}`);

	await hasHeading(page, 'hold');
	await context.route('**/runs', (route) => route.request().method() !== 'POST'
		? route.continue() : route.fulfill({ status: 409, contentType: 'application/json',
			body: JSON.stringify({ error: { code: 'project_queue_full', message: 'full',
				details: null } }) }));
	await button(page, 'Trigger Run').click();
	await says(page, '20 runs are waiting');
	await button(page, 'Dismiss').click();
	await context.close();
});

test('the history goes on by pages, and a page that fails can be asked for again', async () => {
	const context = await signedIn();
	const page = await open(context, `/app/projects/${MANY}`);
	const rows = page.locator('table.history tbody tr');

	await until('20 rows', async () => await rows.count() === 20);
	await context.route('**/runs?*cursor=*', (route) => route.abort(), { times: 1 });
	await button(page, 'Load More').click();
	await button(page, 'Retry').click();
	await until('all rows', async () => await rows.count() === 25);
	assert.equal(await button(page, 'Load More').count(), 0);
	const links = await rows.locator('a.row-link').evaluateAll((all) => all.map((a) => a.href));

	assert.equal(new Set(links).size, 25);
	await rows.nth(3).locator('a.row-link').click();
	await page.getByRole('heading', { level: 1, name: /^Run run_/ }).waitFor();
	await page.goBack();
	await hasHeading(page, 'many');
	onlyAnswers(context);
	await context.close();
});

// ---- webhooks ----

function deliver(slug, secret, body, headers = {}) {
	const text = JSON.stringify(body);

	return fetch(`${AT}/api/public/hooks/gitea/demo/${slug}`, { method: 'POST', body: text,
		headers: { 'Content-Type': 'application/json', 'X-Gitea-Event': 'push',
			'X-Gitea-Delivery': `d-${Math.random()}`,
			'X-Gitea-Signature': createHmac('sha256', secret).update(text).digest('hex'),
			...headers } });
}

const PUSH = { ref: 'refs/heads/topic', before: '0'.repeat(40), after: 'a'.repeat(40),
	repository: { id: 1, full_name: 'acme/app', clone_url: `${GITEA}.git`, html_url: GITEA } };

test('a webhook is made, told its secret once, switched, rotated and deleted', async () => {
	const context = await signedIn();
	const { id } = await projectBySlug('nice');
	const page = await open(context, `/app/projects/${id}`);

	await button(page, 'Add Webhook').click();
	const dialog = page.getByRole('dialog');

	await checkAccess(page);
	await dialog.getByLabel('Gitea').check();
	await button(dialog, 'Next').click();
	assert.equal(await label(dialog, 'Instance URL').inputValue(), 'https://git.example.com');
	assert.equal(await label(dialog, 'Payload URL').inputValue(),
		`${AT}/api/public/hooks/gitea/demo/nice`);
	await button(dialog, 'Back').click();
	await dialog.getByLabel('Gitea').check();
	await button(dialog, 'Next').click();
	await label(dialog, 'Instance URL').fill('https://elsewhere.example.com');
	await button(dialog, 'Create Webhook').click();
	await page.locator('[role=dialog] .banner.error, [role=dialog] .field-error')
		.locator('visible=true').first().waitFor();
	await label(dialog, 'Instance URL').fill('https://git.example.com');
	await button(dialog, 'Create Webhook').click();
	const told = page.getByRole('dialog', { name: 'Secret for Gitea' });
	const secret = await label(told, 'Secret').inputValue();

	assert.match(secret, /^[\w-]{43}$/);
	await page.keyboard.press('Escape');
	await page.mouse.click(5, 5);
	assert.ok(await told.isVisible(), 'it stays for five seconds');
	await button(told, 'Done').click();
	assert.equal(await page.getByText(secret).count(), 0);
	await says(page, 'Enabled');
	await button(page, 'Deliveries (0)').click();
	await says(page, 'No delivery has arrived yet');

	assert.equal((await deliver('nice', secret, PUSH)).status, 200);
	assert.equal((await deliver('nice', 'wrong', PUSH)).status, 401);
	await until('the refused attempt', async () => (await (await api('GET',
		`/api/private/projects/${id}/webhooks`)).json()).webhooks[0].recentRefusals.length === 1);
	await button(page, 'Refresh').last().click();
	await says(page, 'Ignored Branch');
	await heading(page, 'Refused attempts').waitFor();
	await says(page, 'The signature does not match the secret.');
	await checkAccess(page);

	await page.getByRole('switch', { name: 'Enable Gitea webhook' }).click();
	await says(page, 'Disabled');
	await page.getByRole('switch', { name: 'Enable Gitea webhook', checked: false }).click();
	await page.getByRole('switch', { name: 'Enable Gitea webhook', checked: true }).waitFor();

	await button(page, 'Actions').click();
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('ArrowUp');
	await page.keyboard.press('Enter');
	await button(page.getByRole('dialog'), 'Close').click();
	await button(page, 'Actions').click();
	await page.getByRole('menuitem', { name: 'Rotate Secret' }).click();
	await button(page.getByRole('dialog'), 'Rotate Secret').click();
	const renewed = page.getByRole('dialog', { name: 'New secret for Gitea' });

	assert.notEqual(await label(renewed, 'Secret').inputValue(), secret);
	await button(renewed, 'Done').click();
	assert.equal((await deliver('nice', secret, PUSH)).status, 401);

	await page.goto(`${AT}/app/projects/${id}/settings`);
	await label(page, 'Repository URL').fill('https://other.example.com/acme/app');
	await button(page, 'Save Changes').click();
	await says(page, 'The webhooks for Gitea do not fit this repository.');

	await page.goto(`${AT}/app/projects/${id}`);
	await button(page, 'Actions').click();
	await page.getByRole('menuitem', { name: 'Delete Webhook' }).click();
	await button(page.getByRole('dialog'), 'Delete Webhook').click();
	await says(page, 'No webhook yet');
	onlyAnswers(context);
	await context.close();
});

test('every page is accessible and fits, in both themes, wide and narrow', async () => {
	const run = await trigger(MANY);

	await until('the end of a run', async () => ['passed', 'failed'].includes((await (await api(
		'GET', `/api/private/runs/${run}`)).json()).run.status));
	const paths = ['projects', `projects/${MANY}`, `runs/${run}`, 'projects/new',
		`projects/${MANY}/settings`, 'me', 'nowhere'];

	for (const [width, colorScheme, n] of [[1200, 'light', 7], [1200, 'dark', 4],
		[320, 'light', 5]]) {
		const context = await signedIn(undefined, { viewport: { width, height: 800 },
			colorScheme });
		const page = await context.newPage();

		for (const path of paths.slice(0, n)) {
			await page.goto(`${AT}/app/${path}`);
			await page.getByRole('heading', { level: 1 }).waitFor();
			await page.getByRole('status').filter({ hasText: 'Loading' })
				.waitFor({ state: 'detached' });
			await checkAccess(page);
			await checkWidth(page);
		}
		await context.close();
	}
});

test('all of it can be had by the keyboard', async () => {
	const context = await signedIn();
	const page = await open(context, '/app/projects');

	await page.getByRole('link', { name: 'many' }).waitFor();
	assert.equal(await page.evaluate(() =>
		document.querySelector('a[href], button, input').textContent), 'Skip to content');
	await page.getByRole('link', { name: 'Skip to content' }).focus();
	await page.keyboard.press('Enter');
	assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
	await page.getByRole('button', { name: '@demo' }).focus();
	await page.keyboard.press('ArrowDown');
	await page.keyboard.press('End');
	assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Sign Out');
	await page.keyboard.press('Escape');
	assert.equal(await page.getByRole('menu').locator('visible=true').count(), 0);
	assert.match(await page.evaluate(() => document.activeElement.textContent), /@demo/);
	await context.close();
});
