// view.js -- the visible part of a log: only rows near it are in the document.

import { h } from '../dom.js';
import { plural } from '../words.js';
import { Heights } from './heights.js';

const OVERSCAN_PX = 600;
const TALLEST_PX = 8_000_000;	// Browsers end somewhat above this.
const END_PX = 20;
const PASSES = 4;

// ---- one row ----

function pieceElement(piece) {
	const { style, text } = piece;
	const classes = ['bold', 'dim', 'italic', 'underline', 'strike'].filter((k) => style[k]);
	const named = (colour) => /^c\d/.test(colour);

	if (named(style.fg))
		classes.push(`fg-${style.fg}`);
	if (named(style.bg))
		classes.push(`bg-${style.bg}`);
	const plain = classes.length === 0 && style.fg === '' && style.bg === '';

	if (plain)
		return document.createTextNode(text);
	const span = h('span', { class: classes.join(' ') || null }, text);

	if (style.fg !== '' && !named(style.fg))
		span.style.color = style.fg;
	if (style.bg !== '' && !named(style.bg))
		span.style.backgroundColor = style.bg;
	return span;
}

// The pieces, cut where something was found: [piece, found: 0, 1, 2 (the one looked at)].
function cutPieces(pieces, found) {
	const edges = [...new Set(found.flatMap((m) => [m.from, m.to]))].sort((a, b) => a - b);
	const parts = [];
	let at = 0;

	for (const { style, text } of pieces) {
		const inside = edges.filter((e) => e > at && e < at + text.length);
		let from = at;

		for (const to of [...inside, at + text.length]) {
			const over = found.filter((m) => m.from <= from && m.to >= to && from < to);

			parts.push([{ style, text: text.slice(from - at, to - at) },
				over.some((m) => m.current) ? 2 : Math.min(over.length, 1)]);
			from = to;
		}
		at += text.length;
	}
	return parts;
}

function textNodes(row, found) {
	if (found.length === 0)
		return row.pieces.map(pieceElement);
	return cutPieces(row.pieces, found).map(([piece, how]) => {
		const element = pieceElement(piece);

		return how === 0 ? element
			: h('mark', { class: how === 2 ? 'current' : null }, element);
	});
}

function foldButton(row, view) {
	const folded = view.store.folded.has(row.header);

	return h('button', { type: 'button', class: 'fold', 'aria-expanded': String(!folded),
		'aria-label': `Lines of step ${row.header}`,
		onclick: () => view.toggleStep(row.header) });
}

function logRow(row, view) {
	const found = view.matchesOf(row);

	return h('div', { class: `row ${row.stream}${row.seq === view.marked ? ' marked' : ''}` },
		h('a', { class: 'seq', href: `${location.pathname}#L${row.seq}`, tabindex: '-1',
			'data-seq': row.seq, 'aria-label': `Line ${row.seq}` }),
		row.header > 0 && foldButton(row, view),
		h('span', { class: 'text' }, textNodes(row, found)));
}

function gapRow(row, view) {
	return h('div', { class: 'row note' }, h('span', { class: 'text' },
		`${plural(row.toSeq - row.seq + 1, 'line is', 'lines are')} not held here: `,
		h('button', { type: 'button', class: 'link', onclick: view.download },
			'download the log'), '.'));
}

// ---- all of them ----

export class LogView {
	#heights = new Heights();
	#version = -1;
	#elements = new Map();	// row -> its element
	#canvas = h('div', { class: 'canvas' });
	#line = 0;	// Pixels of a line, and of a character.
	#char = 0;
	#widest = 0;
	#asked = false;
	#lastTop = 0;
	#width = 0;
	pinned = true;
	wrap = false;
	marked = 0;	// The line that the address names.

	// download(): what the notes link to.  onPinned(): it was pinned, or unpinned.
	constructor(store, download, onPinned) {
		this.store = store;
		this.download = download;
		this.onPinned = onPinned;
		this.matchesOf = () => [];
		this.node = h('div', { class: 'scroller', tabindex: '0', role: 'group',
			'aria-label': 'Lines' }, this.#canvas);
		this.node.addEventListener('scroll', () => this.#onScroll(), { passive: true });
		this.node.addEventListener('wheel', (event) => {
			if (event.deltaY < 0)
				this.#setPinned(false);
		}, { passive: true });
		this.node.addEventListener('touchmove', () => this.#setPinned(this.#atEnd()),
			{ passive: true });
		this.node.addEventListener('keydown', (event) => {
			if (['ArrowUp', 'PageUp', 'Home'].includes(event.key))
				this.#setPinned(false);
		});
		new ResizeObserver(() => this.#onResize()).observe(this.node);
	}

	// ---- sizes ----

	#measure() {
		const probe = h('div', { class: 'row probe' }, h('span', { class: 'text' },
			'0'.repeat(100)));

		this.#canvas.append(probe);
		const box = probe.querySelector('.text').getBoundingClientRect();

		this.#line = box.height;
		this.#char = box.width / 100;
		probe.remove();
	}

	// Of text in a fixed width; wrapped rows are measured once they are in the document.
	#guess(row) {
		if (row.kind === 'gap' || !this.wrap)
			return this.#line * (row.nlines ?? 1);
		const columns = Math.max(1, Math.floor((this.#width - 90) / this.#char));

		if (row.widest <= columns)
			return this.#line * row.nlines;
		return this.#line * row.text.split('\n').reduce((n, line) =>
			n + Math.max(1, Math.ceil(line.length / columns)), 0);
	}

	#layOut() {
		const { shown, version } = this.store;

		if (this.#line === 0)
			this.#measure();
		if (version !== this.#version) {
			this.#heights.clear();
			this.#clearElements();
			this.#version = version;
			this.#widest = 0;
		}
		for (let i = this.#heights.length; i < shown.length; i++) {
			this.#heights.push(this.#guess(shown[i]));
			this.#widest = Math.max(this.#widest, shown[i].widest ?? 0);
		}
	}

	#clearElements() {
		for (const element of this.#elements.values())
			element.remove();
		this.#elements.clear();
	}

	// Everything is drawn anew: another width, other matches, another filter.
	refresh() {
		this.#version = -1;
		this.#line = 0;
		this.update();
	}

	// The rows stay where they are, but look otherwise.
	repaint() {
		this.#clearElements();
		this.update();
	}

	#onResize() {
		if (this.node.clientWidth === this.#width) {
			this.update();
			return;
		}
		this.#width = this.node.clientWidth;
		this.refresh();
	}

	// ---- where it stands ----

	#room() {
		return Math.max(0, this.node.scrollHeight - this.node.clientHeight);
	}

	// A very tall log is scrolled faster than it is shown.
	#scale() {
		const view = this.node.clientHeight;

		return this.#heights.total <= TALLEST_PX ? 1
			: (this.#heights.total - view) / (TALLEST_PX - view);
	}

	#atEnd() {
		const padding = Number.parseFloat(getComputedStyle(this.node).paddingBottom) || 0;

		return this.#room() - this.node.scrollTop <= Math.max(END_PX, padding + 2);
	}

	#setPinned(pinned) {
		if (pinned === this.pinned)
			return;
		this.pinned = pinned;
		this.onPinned();
	}

	#onScroll() {
		const top = this.node.scrollTop;

		// Only whoever comes down to the end pins it: on the way up he is still near it.
		if (top > this.#lastTop && this.#atEnd())
			this.#setPinned(true);
		else if (top < this.#lastTop - 1 && !this.#atEnd())
			this.#setPinned(false);
		this.#lastTop = top;
		this.update();
	}

	pin() {
		this.#setPinned(true);
		this.update();
	}

	toggleStep(step) {
		this.store.toggleStep(step);
		this.update();
	}

	// The row comes into view, in the middle when it was not there.
	goTo(row) {
		this.#layOut();
		const i = this.store.shown.indexOf(row);

		if (i < 0)
			return;
		const top = this.#heights.top(i) / this.#scale();

		this.#setPinned(false);
		if (top < this.node.scrollTop || top > this.node.scrollTop + this.node.clientHeight - 60)
			this.node.scrollTop = top - this.node.clientHeight / 2;
		this.#lastTop = this.node.scrollTop;
		this.update();
	}

	// ---- drawing ----

	update() {
		if (this.#asked)
			return;
		this.#asked = true;
		requestAnimationFrame(() => {
			this.#asked = false;
			if (this.node.isConnected)
				this.#draw();
		});
	}

	#draw() {
		this.#layOut();
		for (let pass = 0; pass < PASSES; pass++) {
			const height = Math.min(this.#heights.total, TALLEST_PX);

			this.#canvas.style.height = `${height}px`;
			this.#canvas.style.minWidth = this.wrap ? '' :
				`calc(${Math.ceil(this.#widest * this.#char)}px + var(--gutter))`;
			if (this.pinned)
				this.node.scrollTop = this.node.scrollHeight;
			if (!this.#drawRows())
				break;
		}
		this.#lastTop = this.node.scrollTop;
	}

	// 1: some were of another height than thought.
	#drawRows() {
		const { shown } = this.store;
		const view = this.node.clientHeight;
		const shift = this.node.scrollTop * (this.#scale() - 1);
		const from = this.node.scrollTop + shift;
		const wanted = new Set();
		let changed = false;

		if (shown.length > 0) {
			let i = this.#heights.find(Math.max(0, from - OVERSCAN_PX));
			let top = this.#heights.top(i);

			for (; i < shown.length && top < from + view + OVERSCAN_PX; i++) {
				const element = this.#element(shown[i]);

				wanted.add(shown[i]);
				element.style.transform = `translateY(${top - shift}px)`;
				if (this.wrap && element.offsetHeight !== this.#heights.at(i)) {
					this.#heights.set(i, element.offsetHeight);
					changed = true;
				}
				top += this.#heights.at(i);
			}
		}
		for (const [row, element] of this.#elements) {
			if (!wanted.has(row)) {
				element.remove();
				this.#elements.delete(row);
			}
		}
		return changed;
	}

	#element(row) {
		let element = this.#elements.get(row);

		if (element === undefined) {
			element = row.kind === 'gap' ? gapRow(row, this) : logRow(row, this);
			this.#elements.set(row, element);
			this.#canvas.append(element);
		}
		return element;
	}
}

