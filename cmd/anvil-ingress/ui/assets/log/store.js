// store.js -- the lines of a log that are held, in their order, and which of them are shown.

import { START, parse, sameState, textOf } from './ansi.js';

export const STREAMS = ['stdout', 'stderr', 'system'];

const HELD_BYTES = 8 << 20;
const SLACK_BYTES = 1 << 20;	// What goes at once when there is too much.
const STEP_HEADER = /^Step (\d+)\/\d+: /;

// A row: {kind: 'log', seq, stream, raw, before, after, pieces, text, nlines, widest, step, header}
// or {kind: 'gap', seq, toSeq}: these lines are not held; its seq is the first of them.

function shape(row) {
	const { pieces, after } = parse(row.raw, row.before);
	let text = textOf(pieces);

	// The end of the row is the end of its last line.
	if (text.endsWith('\n')) {
		const last = pieces.at(-1);

		last.text = last.text.slice(0, -1);
		text = text.slice(0, -1);
	}
	row.pieces = pieces;
	row.after = after;
	row.text = text;
	row.lower = null;
	const lines = text.split('\n');

	row.nlines = lines.length;
	row.widest = lines.reduce((most, line) => Math.max(most, line.length), 0);
}

// Of the same length as the text, so that places in one are places in the other.
function lower(text) {
	return text.replace(/[A-Z]|[^\x00-\x7f]/g, (c) => {
		const small = c.toLowerCase();

		return small.length === c.length ? small : c;
	});
}

export class LogStore {
	rows = [];
	shown = [];	// Of these, what passes the filter and no fold hides.
	counts = { stdout: 0, stderr: 0, system: 0 };
	streams = new Set(STREAMS);
	folded = new Set();	// Steps.
	steps = new Set();	// That have a header.
	dropped = false;	// Old rows have left.
	version = 0;	// Grows when `shown` changes other than by more at its end.
	#bytes = 0;
	#seqs = new Set();
	#ends = new Map();	// How each stream goes on.

	get highest() {
		return this.rows.at(-1)?.toSeq ?? this.rows.at(-1)?.seq ?? 0;
	}

	// ---- rows come ----

	// Events of a detail or of the socket.
	add(events) {
		for (const event of events)
			this.#addOne(event);
		this.#bound();
	}

	#addOne(event) {
		if (this.#seqs.has(event.seq))
			return;
		const row = { kind: 'log', seq: event.seq, stream: event.stream, raw: event.chunk,
			at: event.createdAt, step: 0, header: 0 };
		const at = this.#place(row.seq);

		this.#seqs.add(row.seq);
		this.#bytes += row.raw.length;
		this.counts[row.stream] = (this.counts[row.stream] ?? 0) + 1;
		row.before = this.#stateBefore(at, row.stream);
		shape(row);
		this.#fit(row, at);
		this.rows.splice(at, 0, row);
		if (at === this.rows.length - 1) {
			this.#ends.set(row.stream, row.after);
			if (this.#passes(row))
				this.shown.push(row);
		} else {
			this.#mend(at + 1, row);
			this.filter();
		}
	}

	gap(fromSeq, toSeq) {
		if (fromSeq > toSeq || this.rows.some((r) => r.kind === 'gap' && r.seq === fromSeq))
			return;
		this.rows.splice(this.#place(fromSeq), 0, { kind: 'gap', seq: fromSeq, toSeq });
		this.filter();
	}

	// Where a row of that number belongs.
	#place(seq) {
		let [low, high] = [0, this.rows.length];

		if (high === 0 || this.rows[high - 1].seq < seq)
			return high;
		while (low < high) {
			const middle = (low + high) >> 1;

			if (this.rows[middle].seq < seq)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}

	#stateBefore(at, stream) {
		if (at === this.rows.length)
			return this.#ends.get(stream) ?? START;
		for (let i = at - 1; i >= 0; i--)
			if (this.rows[i].stream === stream)
				return this.rows[i].after;
		return START;
	}

	// A row came late: what follows it in its stream may look otherwise.
	#mend(at, row) {
		let { after } = row;

		for (let i = at; i < this.rows.length; i++) {
			const next = this.rows[i];

			if (next.stream !== row.stream)
				continue;
			if (sameState(next.before, after))
				return;
			next.before = after;
			shape(next);
			after = next.after;
		}
		this.#ends.set(row.stream, after);
	}

	// Which step it belongs to: the one whose header came last.
	#fit(row, at) {
		const header = row.stream === 'system' ? STEP_HEADER.exec(row.text) : null;

		if (header !== null) {
			row.header = Number(header[1]);
			this.steps.add(row.header);
		}
		row.step = row.header > 0 ? row.header : this.#stepBefore(at);
	}

	#stepBefore(at) {
		for (let i = at - 1; i >= 0; i--)
			if (this.rows[i].kind === 'log')
				return this.rows[i].step;
		return 0;
	}

	// ---- rows go ----

	#bound() {
		if (this.#bytes <= HELD_BYTES)
			return;
		let n = 0;

		while (this.#bytes > HELD_BYTES - SLACK_BYTES && n < this.rows.length - 1) {
			const row = this.rows[n++];

			this.#bytes -= row.raw?.length ?? 0;
			if (row.kind === 'log')
				this.counts[row.stream]--;
		}
		this.rows.splice(0, n);
		this.dropped = true;
		this.filter();
	}

	// ---- what is shown ----

	#passes(row) {
		if (row.kind === 'gap')
			return true;
		return this.streams.has(row.stream) &&
			(row.header > 0 || !this.folded.has(row.step));
	}

	filter() {
		this.shown = this.rows.filter((row) => this.#passes(row));
		this.version++;
	}

	toggleStream(stream) {
		if (!this.streams.delete(stream))
			this.streams.add(stream);
		this.filter();
	}

	toggleStep(step) {
		if (!this.folded.delete(step))
			this.folded.add(step);
		this.filter();
	}

	// A row that was folded away is shown again.
	reveal(seq) {
		const row = this.rows.find((r) => r.seq === seq);

		if (row !== undefined && this.folded.delete(row.step))
			this.filter();
		return row;
	}

	// [{row, from, to}]: where ${needle} stands in what is shown; overlapping ones count.
	find(needle) {
		const wanted = lower(needle);
		const matches = [];

		if (wanted === '')
			return matches;
		for (const row of this.shown) {
			if (row.kind !== 'log')
				continue;
			row.lower ??= lower(row.text);
			for (let at = row.lower.indexOf(wanted); at >= 0; at = row.lower.indexOf(wanted,
				at + 1))
				matches.push({ row, from: at, to: at + wanted.length });
		}
		return matches;
	}
}
