// pages_run.mjs -- the page of a run and its log viewer, in a browser.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import test from 'node:test';

import { AT, api, endIngress, letGo, textOf, trigger, until } from './anvil.mjs';
import { button, checkAccess, hasHeading, label, onlyAnswers, open, says, signedIn } from
	'./chromium.mjs';

const { WAIT, COLOURS, LINES, LONG, FAILS } = process.env;

const log = (page) => page.getByRole('region', { name: 'Run log' });
const line = (page, text) => log(page).locator('.text').filter({ hasText: text }).first();
const rows = (page) => log(page).locator('.row');

async function ended(run) {
	await until(`the end of ${run}`, async () => ['passed', 'failed', 'canceled'].includes(
		(await (await api('GET', `/api/private/runs/${run}?logBytes=0`)).json()).run.status));
}

async function finished(project) {
	const run = await trigger(project);

	await ended(run);
	return run;
}

// Everything that the viewer has shown, scrolled through from its beginning.
async function scrolledText(page) {
	return page.evaluate(async () => {
		const scroller = document.querySelector('.scroller');
		const seen = new Map();
		const frame = () => new Promise((done) => requestAnimationFrame(() =>
			requestAnimationFrame(done)));

		for (scroller.scrollTop = 0;;) {
			await frame();
			for (const row of scroller.querySelectorAll('.row[class*=std], .row.system'))
				seen.set(Number(row.querySelector('.seq').dataset.seq),
					row.querySelector('.text').textContent);
			const before = scroller.scrollTop;

			scroller.scrollTop += scroller.clientHeight;
			if (scroller.scrollTop === before)
				break;
		}
		return [...seen].sort((a, b) => a[0] - b[0]).map(([, text]) => text).join('\n');
	});
}

test('a run is seen from its wait to its end, in title, steps and log', async () => {
	const context = await signedIn();
	const run = await trigger(WAIT);
	const page = await open(context, `/app/runs/${run}`);

	await hasHeading(page, `Run ${run.slice(0, 12)}`);
	await line(page, 'first: begun').waitFor();
	await log(page).getByText('Connected').waitFor();
	assert.match(await page.title(), /^Running · Run run_.* — anvil$/);
	assert.match(await page.locator('#favicon').getAttribute('href'), /running/);
	assert.equal(await page.locator('[aria-current=step]').locator('.step-name').textContent(),
		'first');
	await checkAccess(page);
	await letGo(run);
	await line(page, 'second: over').waitFor();
	await log(page).getByText('Closed').waitFor();
	await page.waitForFunction(() => document.title.startsWith('Passed'));
	assert.equal(await page.locator('.step .badge.passed').count(), 2);
	assert.equal(await page.locator('[aria-current=step]').count(), 0);
	assert.match(await page.locator('#favicon').getAttribute('href'), /passed/);
	const [download] = await Promise.all([page.waitForEvent('download'),
		button(page, 'Download Log').click()]);

	assert.equal(await readFile(await download.path(), 'utf8'), await textOf(run));
	await button(page, 'Run Again').click();
	await page.waitForURL((url) => !url.pathname.endsWith(run));
	const again = page.url().split('/').at(-1);

	await line(page, 'first: begun').waitFor();
	await button(page, 'Cancel Run').click();
	await page.waitForFunction(() => document.title.startsWith('Canceled'));
	await ended(again);
	onlyAnswers(context);
	await context.close();
});

test('a run that waits says for what', async () => {
	const context = await signedIn();
	const first = await trigger(WAIT);
	const second = await trigger(WAIT);
	const page = await open(context, `/app/runs/${second}`);

	await says(page, '1st in queue');
	await button(page, 'Cancel Run').click();
	await page.waitForFunction(() => document.title.startsWith('Canceled'));
	await says(page, 'No step was executed.');
	await letGo(first);
	await ended(first);
	await context.close();
});

test('a failed run tells why', async () => {
	const context = await signedIn();
	const page = await open(context, `/app/runs/${await finished(FAILS)}`);

	await says(page, 'A step failed.');
	await says(page, 'Step "bad" failed with exit code 3.');
	await says(page, 'exit 3');
	await checkAccess(page);
	onlyAnswers(context);
	await context.close();
});

test('the log comes back whole when ingress is killed in its midst', async () => {
	const context = await signedIn();
	const run = await trigger(WAIT);
	const page = await open(context, `/app/runs/${run}`);

	await line(page, 'first: begun').waitFor();
	await endIngress('SIGKILL');
	await log(page).getByText('Reconnecting').waitFor();
	await log(page).getByText('Connected').waitFor();
	await letGo(run);
	await line(page, 'second: over').waitFor();
	await log(page).getByText('Closed').waitFor();
	const text = await scrolledText(page);

	for (let i = 1; i <= 200; i++)
		assert.equal(text.split('\n').filter((l) => l === `second: line ${i}`).length, 1);
	await context.close();
});

test('colours, overwritten lines, odd characters and streams are shown as they should', async () => {
	const context = await signedIn();
	const page = await open(context, `/app/runs/${await finished(COLOURS)}`);
	const text = (what) => log(page).locator('.text').filter({ hasText: what });

	await text('red').first().waitFor();
	assert.ok(await log(page).locator('.fg-c1', { hasText: /^red$/ }).count() === 1);
	assert.equal(await log(page).locator('span', { hasText: /^deep$/ })
		.evaluate((e) => e.style.color), 'rgb(10, 20, 30)');
	assert.ok(await log(page).locator('.bold.underline', { hasText: /^both$/ }).count() === 1);
	const all = await scrolledText(page);

	assert.ok(all.includes('100%') && !all.includes('50%'), all);
	assert.ok(all.includes('日本語 🔨 é'), all);
	assert.ok(all.includes('bell␇') && !all.includes('title'), all);
	assert.ok(all.includes('<b>no markup</b>'), all);
	assert.equal(await log(page).locator('b').count(), 0);
	await page.getByRole('button', { name: /^stdout/, pressed: true }).click();
	await page.getByRole('button', { name: /^system/, pressed: true }).click();
	await until('only errors', async () => await log(page).locator('.row.stdout').count() === 0);
	await log(page).locator('.row.stderr').filter({ hasText: 'to stderr' }).waitFor();
	await page.getByRole('button', { name: /^stderr/, pressed: true }).click();
	await says(page, 'No lines match the filters.');
	await page.reload();
	await says(page, 'No lines match the filters.');
	assert.equal(await page.evaluate(() => localStorage.getItem('anvil.log.streams')), '');
	onlyAnswers(context);
	await context.close();
});

test('search goes round what is found, and says how much that is', async () => {
	const context = await signedIn();
	const run = await finished(LINES);
	const page = await open(context, `/app/runs/${run}`);
	const result = log(page).locator('.result');

	await rows(page).first().waitFor();
	await page.keyboard.press('Control+f');
	await label(page, 'Search log').fill('LINE 1999');
	await result.getByText('1 of 11').waitFor();
	await log(page).locator('mark.current').waitFor();
	await page.keyboard.press('Enter');
	await result.getByText('2 of 11').waitFor();
	await page.keyboard.press('Shift+Enter');
	await page.keyboard.press('Shift+Enter');
	await result.getByText('11 of 11').waitFor();
	await label(page, 'Search log').fill('no such text');
	await result.getByText('No matches').waitFor();
	await page.keyboard.press('Escape');
	assert.equal(await result.textContent(), '');
	await context.close();
});

test('the end is followed until somebody scrolls, and again by Latest', async () => {
	const context = await signedIn();
	const run = await trigger(WAIT);
	const page = await open(context, `/app/runs/${run}`);
	const atEnd = () => page.evaluate(() => {
		const s = document.querySelector('.scroller');

		return s.scrollHeight - s.clientHeight - s.scrollTop < 60;
	});

	await line(page, 'first: begun').waitFor();
	await letGo(run);
	await line(page, 'second: line 200').waitFor();
	assert.ok(await atEnd());
	assert.equal(await button(page, 'Latest').locator('visible=true').count(), 0);
	await log(page).locator('.scroller').focus();
	await page.keyboard.press('Home');
	await button(page, 'Latest').click();
	await until('the end', atEnd);
	await context.close();
});

test('a line has an address, and a step can be folded', async () => {
	const context = await signedIn();
	const run = await finished(LINES);
	const page = await open(context, `/app/runs/${run}#L1`);

	await log(page).locator('.row.marked .seq[data-seq="1"]').waitFor();
	const second = log(page).locator('.seq[data-seq="2"]');

	await second.click();
	await page.waitForURL(/#L2$/);
	await log(page).locator('.row.marked .seq[data-seq="2"]').waitFor();
	await page.getByRole('button', { name: 'Lines of step 1' }).click();
	await until('a folded step', async () => await log(page).locator('.row.stdout').count() === 0);
	await page.getByRole('button', { name: 'Lines of step 1', expanded: false }).click();
	await log(page).locator('.row.stdout').first().waitFor();
	await context.close();
});

test('a hundred thousand lines and a line of a megabyte are scrolled without a pause', async () => {
	for (const [project, least] of [[LINES, 100_000 * 20], [LONG, 0]]) {
		const context = await signedIn();
		const page = await open(context, `/app/runs/${await finished(project)}`);

		await rows(page).first().waitFor();
		const { nodes, height } = await page.evaluate(async () => {
			const scroller = document.querySelector('.scroller');
			let most = 0;

			for (let i = 0; i <= 60; i++) {
				scroller.scrollTop = scroller.scrollHeight * i / 60;
				await new Promise(requestAnimationFrame);
				most = Math.max(most, scroller.querySelectorAll('.row').length);
			}
			return { nodes: most, height: scroller.scrollHeight };
		});

		assert.ok(nodes < 200, `${nodes} rows in the document`);
		assert.ok(height >= least, `${height} px`);
		await button(page, 'Wrap lines').click();
		await page.locator('.scroller.wrap').waitFor();
		await until('no sideways scrolling', () => page.evaluate(() => {
			const s = document.querySelector('.scroller');

			return s.scrollWidth <= s.clientWidth;
		}));
		onlyAnswers(context);
		await context.close();
	}
});

test('lines that the server does not hold any more are counted, and lead to the download', async () => {
	const context = await signedIn();
	const page = await open(context, `/app/runs/${await finished(process.env.MUCH)}`);

	await rows(page).first().waitFor();
	await log(page).locator('.scroller').focus();
	await page.keyboard.press('Home');
	const note = log(page).locator('.row.note');

	await note.getByText(/^\d+ lines are not held here/).waitFor();
	const [download] = await Promise.all([page.waitForEvent('download'),
		button(note, 'download the log').click()]);

	assert.ok((await readFile(await download.path())).length > 5_000_000);
	await context.close();
});
