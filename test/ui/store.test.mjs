// store.test.mjs -- the lines that the log viewer holds: order, bounds, filters, search.
import assert from 'node:assert/strict';
import test from 'node:test';

import { Heights } from '../../cmd/anvil-ingress/ui/assets/log/heights.js';
import { LogStore } from '../../cmd/anvil-ingress/ui/assets/log/store.js';

function event(seq, chunk, stream = 'stdout') {
	return { seq, chunk, stream, createdAt: '2026-01-01T00:00:00.000Z' };
}

function storeOf(...events) {
	const store = new LogStore();

	store.add(events);
	return store;
}

const texts = (store) => store.shown.map((r) => r.kind === 'gap' ? `gap ${r.seq}-${r.toSeq}`
	: r.text);

test('events are put in their order, and a known one is ignored', () => {
	const store = storeOf(event(1, 'a\n'), event(3, 'c\n'), event(2, 'b\n'), event(3, 'again\n'));

	assert.deepEqual(texts(store), ['a', 'b', 'c']);
	assert.equal(store.highest, 3);
	assert.deepEqual(store.counts, { stdout: 3, stderr: 0, system: 0 });
});

test('a late event changes how its stream goes on', () => {
	const store = storeOf(event(1, '\x1b[31mred'), event(3, 'after'), event(2, 'err', 'stderr'));

	assert.equal(store.rows[2].pieces[0].style.fg, 'c1');
	assert.equal(store.rows[1].pieces[0].style.fg, '');
	const late = storeOf(event(1, 'plain'), event(3, 'after'));

	late.add([event(2, '\x1b[32mgreen')]);
	assert.equal(late.rows[2].pieces[0].style.fg, 'c2');
	late.add([event(4, 'more')]);
	assert.equal(late.rows[3].pieces[0].style.fg, 'c2');
});

test('a gap is a row in its place, told once', () => {
	const store = storeOf(event(1, 'a'), event(10, 'b'));

	store.gap(2, 9);
	store.gap(2, 9);
	store.gap(5, 4);
	store.gap(1, 0);
	assert.deepEqual(texts(store), ['a', 'gap 2-9', 'b']);
});

test('streams are filtered, steps are folded but for their header', () => {
	const store = storeOf(event(1, 'Sandbox: bwrap\n', 'system'),
		event(2, 'Step 1/2: build\n', 'system'), event(3, 'out'), event(4, 'err', 'stderr'),
		event(5, 'Step 2/2: test\n', 'system'), event(6, 'more'));

	store.toggleStream('stderr');
	assert.deepEqual(texts(store),
		['Sandbox: bwrap', 'Step 1/2: build', 'out', 'Step 2/2: test', 'more']);
	store.toggleStep(1);
	assert.deepEqual(texts(store), ['Sandbox: bwrap', 'Step 1/2: build', 'Step 2/2: test', 'more']);
	assert.equal(store.reveal(3).text, 'out');
	assert.equal(texts(store).length, 5);
});

test('search is without case, overlaps, and looks at what is shown', () => {
	const store = storeOf(event(1, 'aAa'), event(2, 'AAA', 'stderr'), event(3, 'İaa'));

	assert.deepEqual(store.find('aa').map((m) => [m.row.seq, m.from, m.to]),
		[[1, 0, 2], [1, 1, 3], [2, 0, 2], [2, 1, 3], [3, 1, 3]]);
	store.toggleStream('stderr');
	assert.equal(store.find('AA').length, 3);
	assert.deepEqual(store.find(''), []);
});

test('no more than 8 MiB are held, and the oldest leave', () => {
	const store = new LogStore();

	for (let seq = 1; seq <= 1000; seq++)
		store.add([event(seq, 'x'.repeat(16383) + '\n')]);
	const held = store.rows.reduce((n, r) => n + r.raw.length, 0);

	assert.ok(held <= 8 << 20 && held > 6 << 20, `${held}`);
	assert.ok(store.dropped);
	assert.equal(store.rows.at(-1).seq, 1000);
	assert.equal(store.counts.stdout, store.rows.length);
	const first = store.rows[0].seq;

	store.add([event(first - 1, 'late')]);
	assert.equal(store.rows[0].seq, first);
});

test('a hundred thousand lines come and are filtered in good time', () => {
	const store = new LogStore();

	for (let seq = 1; seq <= 100_000; seq += 100)
		store.add(Array.from({ length: 100 }, (_, i) => event(seq + i, `line ${seq + i}\n`,
			i % 10 === 0 ? 'stderr' : 'stdout')));
	assert.equal(store.shown.length, 100_000);
	store.toggleStream('stdout');
	assert.equal(store.shown.length, 10_000);
	assert.equal(store.find('line 1').length, 1112);
});

test('rows begin where the heights before them end', () => {
	const heights = new Heights();
	const each = Array.from({ length: 2000 }, (_, i) => 10 + i % 7);
	let top = 0;

	each.forEach((h) => heights.push(h));
	heights.set(700, 100);
	each[700] = 100;
	each.forEach((h, i) => {
		assert.equal(heights.top(i), top);
		assert.equal(heights.find(top), i);
		assert.equal(heights.find(top + h - 1), i);
		top += h;
	});
	assert.equal(heights.total, top);
	assert.equal(heights.find(top + 1000), 1999);
});
