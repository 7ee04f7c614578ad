// run.js -- one run: what becomes of it, its steps and its log.

import { get, post, urlOf } from '../api.js';
import { ago, since } from '../clock.js';
import { working } from '../dialog.js';
import { fill, h } from '../dom.js';
import { icon } from '../icons.js';
import { Stream } from '../log/stream.js';
import { LogViewer } from '../log/viewer.js';
import { badge, breadcrumb, commit, shortId } from '../parts.js';
import { go } from '../router.js';
import { setFavicon } from '../shell.js';
import { announce, toast, toastOf } from '../toast.js';
import { TERMINAL, failureWord, ordinal, statusLook, statusWord } from '../words.js';
import { stepList } from './steps.js';

const LOG_BYTES = 2 << 20;
const REFRESH_MS = 30000;

// Statuses in the order in which they follow, so that an older answer takes nothing back.
const RANK = { queued: 0, starting: 1, running: 2, cancel_requested: 3, canceling: 4, passed: 5,
	failed: 5, canceled: 5 };

class RunPage {
	#context;
	#path;
	#detail;
	#project;
	#place = null;	// In the queue, from 1.
	#facts = h('dl', { class: 'facts wide' });
	#actions = h('div', { class: 'buttons' });
	#banner = h('div', { class: 'banner error', role: 'alert', hidden: true });
	#steps = h('div');
	#viewer;
	#stream = null;
	#announced = '';

	constructor(context, detail, project) {
		this.#context = context;
		this.#path = `api/private/runs/${detail.run.id}`;
		this.#detail = detail;
		this.#project = project;
		this.#viewer = new LogViewer(() => this.#download().catch(toastOf), context.signal);
		this.#show();
		this.#viewer.begin(detail);
		this.#viewer.goToHash(context.hash);
	}

	get #over() {
		return TERMINAL.has(this.#detail.run.status);
	}

	// ---- the page ----

	#show() {
		const { run } = this.#detail;
		const project = this.#project;

		this.#context.show(breadcrumb([['Projects', 'app/projects'],
			[project?.name ?? 'Project', `app/projects/${run.projectId}`],
			[`Run ${shortId(run.id)}`]]),
		h('div', { class: 'title-row' }, this.#context.heading(`Run ${shortId(run.id)}`),
			this.#actions),
		this.#facts, this.#banner,
		h('section', {}, h('h2', {}, 'Steps'), this.#steps),
		h('section', {}, h('h2', { class: 'unseen' }, 'Log'), this.#viewer.node));
		this.#draw();
	}

	#draw() {
		const { run } = this.#detail;
		const word = statusWord(run.status);

		fill(this.#facts, this.#factList());
		fill(this.#actions, this.#buttons());
		fill(this.#steps, stepList(this.#detail, this.#waitsFor()));
		this.#drawBanner();
		this.#context.setTitle(`${word} · `);
		setFavicon(statusLook(run.status));
		if (this.#announced !== '' && this.#announced !== word)
			announce(`The run is now: ${word}`);
		this.#announced = word;
	}

	#factList() {
		const { run } = this.#detail;
		const began = run.startedAt ?? null;

		return [h('dt', {}, 'Status'), h('dd', {}, badge(run.status)),
			h('dt', {}, 'Branch'), h('dd', {}, h('span', { class: 'branch' }, icon('branch'),
				run.branch)),
			h('dt', {}, 'Commit'), h('dd', {}, commit(run.commitSha)),
			h('dt', {}, 'Trigger'), h('dd', {}, run.triggerType === 'manual' ? 'Manual'
				: 'Webhook'),
			h('dt', {}, 'Queued'), h('dd', {}, ago(run.queuedAt)),
			h('dt', {}, 'Duration'), h('dd', {}, began === null ? '—'
				: since(began, run.finishedAt))];
	}

	#buttons() {
		const { status } = this.#detail.run;
		const download = working('Download Log', () => this.#download(), toastOf);

		if (this.#over)
			return [download, working('Run Again', () => this.#runAgain(), toastOf)];
		if (status === 'cancel_requested' || status === 'canceling')
			return [download, h('button', { type: 'button', disabled: true }, 'Canceling…')];
		return [download, working('Cancel Run', () => this.#cancel(), toastOf, 'danger')];
	}

	#drawBanner() {
		const { run, failureCode, errorMessage, detailAvailable } = this.#detail;
		const parts = [];

		if (run.status === 'failed')
			parts.push(h('p', {}, h('strong', {}, failureWord(failureCode))),
				errorMessage !== null && h('pre', { class: 'message' }, errorMessage));
		if (!detailAvailable)
			parts.push(h('p', {}, 'Steps and log of this run are not available.'));
		// Written anew it would be told anew.
		const text = parts.filter((p) => p).map((p) => p.textContent).join('\n');

		if (this.#banner.dataset.text === text)
			return;
		this.#banner.dataset.text = text;
		this.#banner.hidden = parts.length === 0;
		this.#banner.classList.toggle('error', run.status === 'failed');
		fill(this.#banner, parts);
	}

	#waitsFor() {
		const { status } = this.#detail.run;

		if (status === 'queued')
			return this.#place === null ? 'The run waits for its turn.'
				: `The run waits: ${ordinal(this.#place)} in queue.`;
		if (status === 'starting')
			return 'The repository is being checked out.';
		return TERMINAL.has(status) ? 'No step was executed.' : 'Waiting for the first step.';
	}

	// ---- what is done with it ----

	async #cancel() {
		this.#take(await post(`${this.#path}/cancel`, 'run'));
	}

	async #runAgain() {
		const { run } = this.#detail;
		const { runId } = await post(`api/private/projects/${run.projectId}/runs`, 'triggered',
			{ body: { branch: run.branch } });

		toast(`Run ${shortId(runId)} was queued.`);
		go(`/app/runs/${runId}`);
	}

	async #download() {
		const { ticket } = await post(`${this.#path}/log-ticket`, 'ticket');
		const url = urlOf(`${this.#path}/log`);

		url.search = new URLSearchParams({ download: 1, ticket });
		const link = h('a', { href: url.href, download: '' });

		document.body.append(link);
		link.click();
		link.remove();
	}

	// ---- news ----

	// An answer that is older than what is shown changes nothing.
	#take(detail) {
		if (this.#context.left ||
		    RANK[detail.run.status] < RANK[this.#detail.run.status] &&
		    detail.run.status !== 'queued')
			return;
		this.#viewer.add(detail.recentLogs);
		this.#detail = detail;
		this.#draw();
	}

	#onMessage(message) {
		if (message.type === 'log') {
			this.#pending.push(message.event);
			this.#flushSoon();
		} else if (message.type === 'gap') {
			this.#flush();
			this.#viewer.gap(message.fromSeq, message.toSeq);
			this.#gapEnd = Math.max(this.#gapEnd, message.toSeq);
		} else {
			this.#onState(message);
		}
	}

	#onState({ run, steps }) {
		this.#detail = { ...this.#detail, steps, currentStep: run.currentStep,
			errorMessage: run.errorMessage, failureCode: run.failureCode,
			detailAvailable: this.#detail.detailAvailable || steps.length > 0,
			run: { ...this.#detail.run, status: run.status, startedAt: run.startedAt,
				finishedAt: run.finishedAt, exitCode: run.exitCode,
				failureCode: run.failureCode } };
		this.#draw();
	}

	// Lines come faster than they can be drawn.
	#pending = [];
	#flushing = false;
	#gapEnd = 0;

	#flushSoon() {
		if (this.#flushing)
			return;
		this.#flushing = true;
		setTimeout(() => this.#flush(), 50);
	}

	#flush() {
		this.#flushing = false;
		if (this.#pending.length > 0)
			this.#viewer.add(this.#pending.splice(0));
	}

	async #reload(logBytes) {
		const signal = this.#context.signal;

		this.#take(await get(`${this.#path}?logBytes=${logBytes}`, 'run', { signal }));
		if (this.#detail.run.status === 'queued')
			await this.#findPlace();
	}

	async #findPlace() {
		const { run } = this.#detail;
		const { pendingRuns } = await get(`api/private/projects/${run.projectId}`,
			'projectDetail', { signal: this.#context.signal });
		const at = pendingRuns.findIndex((p) => p.runId === run.id);

		this.#place = at < 0 ? null : at + 1;
		this.#draw();
	}

	// The socket has said its last; the detail says what it was.
	async #end() {
		this.#flush();
		await this.#reload(LOG_BYTES).catch(() => {});
		this.#stream?.close();
	}

	begin() {
		if (this.#over) {
			this.#viewer.setConnection('Closed');
			return;
		}
		this.#findPlace().catch(() => {});
		this.#stream = new Stream(this.#detail.run.id, this.#context.signal, {
			from: () => Math.max(this.#viewer.store.highest, this.#gapEnd,
				this.#pending.at(-1)?.seq ?? 0) + 1,
			message: (m) => this.#onMessage(m),
			state: (word) => this.#viewer.setConnection(word),
			ended: () => this.#end(),
		});
		this.#context.every(REFRESH_MS, () => {
			if (!this.#over)
				this.#reload(0).catch(() => {});
		});
	}
}

export async function runPage(context) {
	const { id } = context.params;
	const { signal } = context;

	context.wait('Loading run…');
	const detail = await get(`api/private/runs/${encodeURIComponent(id)}?logBytes=${LOG_BYTES}`,
		'run', { signal });
	// Its name is only for the way back.
	const project = await get(`api/private/projects/${detail.run.projectId}`, 'projectDetail',
		{ signal }).then((answer) => answer.project).catch(() => null);

	if (!context.left)
		new RunPage(context, detail, project).begin();
}
