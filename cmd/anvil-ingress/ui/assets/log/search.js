// search.js -- looking for words in the log that is shown.

import { h } from '../dom.js';
import { icon } from '../icons.js';

const PAUSE_MS = 500;

export class Search {
	#view;
	#matches = [];
	#byRow = new Map();
	#at = -1;
	#timer = 0;
	#sought = '';
	#input = h('input', { type: 'search', id: 'log-search', placeholder: 'Search log',
		autocomplete: 'off', spellcheck: 'false' });
	#result = h('span', { class: 'result', role: 'status', 'aria-live': 'polite' });

	constructor(view) {
		this.#view = view;
		view.matchesOf = (row) => this.#byRow.get(row) ?? [];
		this.node = h('div', { class: 'search' }, icon('search'),
			h('label', { for: 'log-search', class: 'unseen' }, 'Search log'),
			this.#input, this.#result);
		this.#input.addEventListener('input', () => {
			clearTimeout(this.#timer);
			this.#timer = setTimeout(() => this.look(true), PAUSE_MS);
		});
		this.#input.addEventListener('keydown', (event) => this.#onKey(event));
	}

	#onKey(event) {
		if (event.key === 'Enter') {
			event.preventDefault();
			clearTimeout(this.#timer);
			if (this.#input.value !== this.#sought)
				this.look(true);
			else
				this.#step(event.shiftKey ? -1 : 1);
		} else if (event.key === 'Escape') {
			event.preventDefault();
			this.close();
		}
	}

	open() {
		this.#input.focus();
		this.#input.select();
	}

	close() {
		clearTimeout(this.#timer);
		this.#input.value = '';
		this.look(false);
		this.#view.node.focus();
	}

	// Again, since the text or the filter has changed.  `move`: to the first that is found.
	look(move) {
		this.#sought = this.#input.value;
		this.#matches = this.#view.store.find(this.#sought);
		this.#byRow = groupByRow(this.#matches);
		this.#at = this.#matches.length === 0 ? -1
			: move ? 0 : Math.min(Math.max(this.#at, 0), this.#matches.length - 1);
		this.#mark(move);
	}

	// There are more rows at the end.
	refresh() {
		if (this.#sought !== '')
			this.look(false);
	}

	#step(by) {
		const n = this.#matches.length;

		if (n === 0)
			return;
		this.#matches[this.#at].current = false;
		this.#at = (this.#at + by + n) % n;
		this.#mark(true);
	}

	#mark(move) {
		const current = this.#matches[this.#at];
		const text = this.#sought === '' ? '' : current === undefined ? 'No matches'
			: `${this.#at + 1} of ${this.#matches.length}`;

		if (current !== undefined)
			current.current = true;
		if (this.#result.textContent !== text)
			this.#result.textContent = text;
		this.#view.repaint();
		if (move && current !== undefined)
			this.#view.goTo(current.row);
	}
}

function groupByRow(matches) {
	const map = new Map();

	for (const match of matches) {
		const beside = map.get(match.row);

		if (beside === undefined)
			map.set(match.row, [match]);
		else
			beside.push(match);
	}
	return map;
}
