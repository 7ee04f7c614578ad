// viewer.js -- the region with the log: its lines and what controls them.

import { fill, h } from '../dom.js';
import { Search } from './search.js';
import { LogStore, STREAMS } from './store.js';
import { LogView } from './view.js';

const WRAP = 'anvil.log.wrap';
const CHOSEN = 'anvil.log.streams';

function chosenStreams() {
	const stored = localStorage.getItem(CHOSEN);

	return new Set(stored === null ? STREAMS
		: stored.split(',').filter((s) => STREAMS.includes(s)));
}

export class LogViewer {
	#view;
	#search;
	#toggles;
	#wrap;
	#connection = h('span', { class: 'connection', role: 'status' }, 'Idle');
	#latest = h('button', { type: 'button', class: 'latest', hidden: true }, 'Latest');
	#empty = h('p', { class: 'empty-log' });
	#before = h('p', { class: 'before', hidden: true });
	#wantedLine = 0;

	// download(): saves the whole log.  signal: aborts when the page is left.
	constructor(download, signal) {
		this.store = new LogStore();
		this.store.streams = chosenStreams();
		this.#view = new LogView(this.store, download, () => this.#onPinned());
		this.#view.wrap = localStorage.getItem(WRAP) === '1';
		this.#search = new Search(this.#view);
		this.#toggles = new Map(STREAMS.map((s) => [s, this.#toggle(s)]));
		this.#wrap = h('button', { type: 'button', class: 'toggle',
			onclick: () => this.#setWrap(!this.#view.wrap) }, 'Wrap lines');
		this.#latest.addEventListener('click', () => this.#view.pin());
		fill(this.#before, 'Earlier lines are not held here: ', h('button', { type: 'button',
			class: 'link', onclick: download }, 'download the log'), '.');
		this.node = h('section', { class: 'log', 'aria-label': 'Run log', role: 'region' },
			h('div', { class: 'log-bar' }, [...this.#toggles.values()], this.#wrap,
				h('span', { class: 'push' }), this.#search.node, this.#connection),
			this.#before,
			h('div', { class: 'log-box' }, this.#view.node, this.#empty, this.#latest));
		this.#showWrap();
		document.addEventListener('keydown', (event) => this.#onFind(event), { signal });
		addEventListener('hashchange', () => this.goToHash(location.hash), { signal });
	}

	// ---- controls ----

	#toggle(stream) {
		return h('button', { type: 'button', class: `toggle ${stream}`, onclick: () => {
			this.store.toggleStream(stream);
			localStorage.setItem(CHOSEN, [...this.store.streams].join(','));
			this.#search.look(false);
			this.#changed();
		} });
	}

	#setWrap(wrap) {
		this.#view.wrap = wrap;
		localStorage.setItem(WRAP, wrap ? '1' : '0');
		this.#showWrap();
		this.#view.refresh();
	}

	#showWrap() {
		this.#wrap.setAttribute('aria-pressed', String(this.#view.wrap));
		this.#view.node.classList.toggle('wrap', this.#view.wrap);
	}

	#onPinned() {
		this.#latest.hidden = this.#view.pinned;
		this.#view.node.classList.toggle('with-latest', !this.#view.pinned);
	}

	#onFind(event) {
		const box = this.node.getBoundingClientRect();

		if (event.key.toLowerCase() !== 'f' || !(event.ctrlKey || event.metaKey) ||
		    event.altKey || event.shiftKey || box.bottom < 0 || box.top > innerHeight)
			return;
		event.preventDefault();
		this.#search.open();
	}

	setConnection(word) {
		this.#connection.textContent = word;
		this.#connection.dataset.state = word.toLowerCase();
	}

	// ---- lines ----

	#changed() {
		const { shown, rows, streams, counts, dropped } = this.store;

		for (const [stream, toggle] of this.#toggles) {
			toggle.setAttribute('aria-pressed', String(streams.has(stream)));
			fill(toggle, stream, ' ', h('span', { class: 'count' },
				(counts[stream] ?? 0).toLocaleString('en')));
		}
		this.#empty.textContent = rows.length === 0 ? 'No output yet.'
			: 'No lines match the filters.';
		this.#empty.hidden = shown.length > 0;
		if (dropped)
			this.#before.hidden = false;
		this.#view.update();
	}

	add(events) {
		this.store.add(events);
		this.#search.refresh();
		this.#changed();
		if (this.#wantedLine > 0)
			this.goToHash(`#L${this.#wantedLine}`);
	}

	gap(fromSeq, toSeq) {
		this.store.gap(fromSeq, toSeq);
		this.#changed();
	}

	// What a detail has of the log: its lines, and word of those before them.
	begin({ recentLogs, firstSeq }) {
		this.add(recentLogs);
		this.gap(1, (recentLogs[0]?.seq ?? firstSeq ?? 1) - 1);
	}

	// `#L12`: that line comes into view, now or when it is there.
	goToHash(hash) {
		const seq = Number(/^#L(\d+)$/.exec(hash)?.[1] ?? 0);
		const row = seq > 0 ? this.store.reveal(seq) : undefined;

		this.#view.marked = seq;
		this.#wantedLine = row === undefined ? seq : 0;
		if (row !== undefined) {
			this.#view.repaint();
			this.#view.goTo(row);
		}
	}
}
