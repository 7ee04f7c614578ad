// project.js -- one project: what runs, what waits, what has been, and its webhooks.

import { get, post } from '../api.js';
import { ago, since } from '../clock.js';
import { working } from '../dialog.js';
import { fill, h } from '../dom.js';
import { Field } from '../form.js';
import { icon } from '../icons.js';
import { badge, breadcrumb, commit, failure, repository, shortId } from '../parts.js';
import { announce, toast, toastError, toastOf } from '../toast.js';
import { TERMINAL, ordinal } from '../words.js';
import { webhooksSection } from './webhooks.js';

const REFRESH_MS = 7000;
const PAGE = 20;

// ---- the queue ----

function cancelButton(runId, page) {
	return working(`Cancel run ${shortId(runId)}`, async () => {
		await post(`api/private/runs/${runId}/cancel`, 'run');
		await page.refresh();
	}, toastOf, 'small');
}

function queueRow(run, place, page) {
	return h('li', { class: 'queue-row' },
		h('span', { class: 'place' }, place),
		h('a', { href: `app/runs/${run.runId}` }, `Run ${shortId(run.runId)}`),
		h('span', { class: 'branch' }, icon('branch'), run.branch),
		h('span', {}, 'queued ', ago(run.queuedAt)), cancelButton(run.runId, page));
}

function queueList(detail, page) {
	const { activeRun: active, pendingRuns } = detail;
	const rows = pendingRuns.map((run, i) => queueRow(run, `${ordinal(i + 1)} in queue`, page));

	if (active !== null)
		rows.unshift(queueRow({ runId: active.id, branch: active.branch,
			queuedAt: active.queuedAt }, badge(active.status), page));
	if (rows.length === 0)
		return h('p', { class: 'empty-line' }, 'Nothing runs or waits.');
	return h('ol', { class: 'queue' }, rows);
}

// ---- the history ----

function historyRow(run) {
	const to = `app/runs/${run.id}`;

	return h('tr', {},
		h('td', {}, badge(run.status)),
		h('td', {}, h('a', { href: to, class: 'row-link' }, `Run ${shortId(run.id)}`)),
		h('td', {}, h('span', { class: 'branch' }, icon('branch'), run.branch)),
		h('td', {}, commit(run.commitSha)),
		h('td', {}, run.triggerType === 'manual' ? 'Manual' : 'Webhook'),
		h('td', {}, ago(run.queuedAt)),
		h('td', {}, TERMINAL.has(run.status) && run.startedAt !== null
			? since(run.startedAt, run.finishedAt) : '—'));
}

class History {
	#path;
	#context;
	#runs = [];
	#cursor = null;
	#more = h('div', { class: 'more' });
	#body = h('tbody');
	#table = h('div', { class: 'table-box', hidden: true }, h('table', { class: 'history' },
		h('caption', { class: 'unseen' }, 'Runs of this project, newest first'),
		h('thead', {}, h('tr', {}, ['Status', 'Run', 'Branch', 'Commit', 'Trigger', 'Queued',
			'Duration'].map((text) => h('th', { scope: 'col' }, text)))), this.#body));
	#none = h('p', { class: 'empty-line', hidden: true }, 'No runs yet');

	constructor(path, context) {
		this.#path = path;
		this.#context = context;
		this.node = h('div', {}, this.#table, this.#none, this.#more);
	}

	#draw() {
		fill(this.#body, this.#runs.map(historyRow));
		this.#table.hidden = this.#runs.length === 0;
		this.#none.hidden = this.#runs.length > 0;
		fill(this.#more, this.#cursor !== null &&
			working('Load More', () => this.#loadMore(), (e) => this.#failed(e)));
	}

	#failed(error) {
		if (!this.#context.left)
			fill(this.#more, failure(error, () => this.#loadMore().catch(
				(e) => this.#failed(e))));
	}

	#page(cursor) {
		const query = new URLSearchParams({ limit: PAGE });

		if (cursor !== null)
			query.set('cursor', cursor);
		return get(`${this.#path}/runs?${query}`, 'runs', { signal: this.#context.signal });
	}

	async #loadMore() {
		const { runs, nextCursor } = await this.#page(this.#cursor);
		const known = new Set(this.#runs.map((r) => r.id));

		this.#runs.push(...runs.filter((r) => !known.has(r.id)));
		this.#cursor = nextCursor;
		this.#draw();
	}

	// The newest page again; what was fetched beneath it stays.
	async refresh() {
		const { runs, nextCursor } = await this.#page(null);
		const fresh = new Set(runs.map((r) => r.id));
		const last = runs.at(-1);
		const older = last === undefined ? [] : this.#runs.filter((r) => !fresh.has(r.id) &&
			(r.queuedAt < last.queuedAt || r.queuedAt === last.queuedAt && r.id < last.id));

		this.#runs = [...runs, ...older];
		if (older.length === 0)
			this.#cursor = nextCursor;
		this.#draw();
	}

	async firstPage() {
		try {
			await this.refresh();
		} catch (error) {
			if (!this.#context.left)
				fill(this.#more, failure(error, () => this.firstPage()));
		}
	}
}

// ---- the page ----

function facts(project) {
	return h('dl', { class: 'facts wide' },
		h('dt', {}, 'Repository'), h('dd', {}, repository(project.repoUrl)),
		h('dt', {}, 'Default branch'), h('dd', {}, h('code', {}, project.defaultBranch)),
		h('dt', {}, 'Config path'), h('dd', {}, h('code', {}, project.configPath)),
		h('dt', {}, 'Updated'), h('dd', {}, ago(project.updatedAt)));
}

function triggerForm(path, project, page) {
	const branch = new Field('Branch', { value: project.defaultBranch });
	const trigger = h('button', { type: 'submit', class: 'primary' }, 'Trigger Run');
	const form = h('form', { class: 'trigger', noValidate: true }, branch.node, trigger);

	form.addEventListener('submit', async (event) => {
		const name = branch.value.trim();

		event.preventDefault();
		if (trigger.disabled)
			return;
		trigger.disabled = true;
		try {
			const body = name === '' || name === page.project.defaultBranch ? {}
				: { branch: name };
			const { runId } = await post(`${path}/runs`, 'triggered', { body });

			toast(`Run ${shortId(runId)} was queued.`);
			await page.refresh();
		} catch (error) {
			if (error.issues?.length > 0)
				branch.setError(error.issues[0].message ?? error.message);
			else if (error.code === 'project_queue_full')
				toastError('20 runs are waiting in this project already. Cancel some, ' +
					'or wait until they have run.');
			else
				toastOf(error);
		} finally {
			trigger.disabled = false;
		}
	});
	return form;
}

class ProjectPage {
	#context;
	#path;
	#order = 0;
	#status = h('span');
	#facts = h('div');
	#queue = h('div');
	#history;
	#busy = false;

	constructor(context, detail) {
		this.#context = context;
		this.#path = `api/private/projects/${encodeURIComponent(context.params.id)}`;
		this.#history = new History(this.#path, context);
		this.project = detail.project;
		this.#draw(detail);
		this.#show();
	}

	#draw(detail) {
		this.project = detail.project;
		this.#busy = detail.activeRun !== null || detail.pendingRuns.length > 0;
		fill(this.#status, badge(detail.project.lastRunStatus));
		fill(this.#facts, facts(detail.project));
		fill(this.#queue, queueList(detail, this));
	}

	#show() {
		const { project } = this;

		this.#context.show(breadcrumb([['Projects', 'app/projects'], [project.name]]),
			h('div', { class: 'title-row' },
				h('div', {}, this.#context.heading(project.name),
					h('p', { class: 'slug' },
						`${project.ownerSlug}/${project.projectSlug} `, this.#status)),
				h('a', { class: 'button', href: `app/projects/${project.id}/settings` },
					'Settings')),
			this.#facts, triggerForm(this.#path, project, this),
			h('section', {}, h('h2', {}, 'Queue'), this.#queue),
			h('section', {}, h('div', { class: 'title-row' }, h('h2', {}, 'Run history'),
				working('Refresh', async () => {
					await this.refresh();
					announce('The runs are up to date.');
				}, toastOf)), this.#history.node),
			webhooksSection(this.#context, this.#path, project));
	}

	// The older of two answers is dropped.
	async refresh() {
		const order = ++this.#order;
		const [detail] = await Promise.all([
			get(this.#path, 'projectDetail', { signal: this.#context.signal }),
			this.#history.refresh()]);

		if (order === this.#order && !this.#context.left)
			this.#draw(detail);
	}

	async begin() {
		const again = () => {
			if (document.visibilityState === 'visible')
				this.refresh().catch(() => {});	// the next one may get through
		};

		document.addEventListener('visibilitychange', again, { signal: this.#context.signal });
		this.#context.every(REFRESH_MS, () => {
			if (this.#busy)
				again();
		});
		await this.#history.firstPage();
	}
}

export async function projectPage(context) {
	context.wait('Loading project…');
	const detail = await get(`api/private/projects/${encodeURIComponent(context.params.id)}`,
		'projectDetail', { signal: context.signal });

	await new ProjectPage(context, detail).begin();
}
