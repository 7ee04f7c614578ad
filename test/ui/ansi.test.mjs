// ansi.test.mjs -- what the log viewer makes of the sequences of terminals.
import assert from 'node:assert/strict';
import test from 'node:test';

import { START, parse, textOf } from '../../cmd/anvil-ingress/ui/assets/log/ansi.js';

const ESC = '\x1b';

function pieces(text, before = START) {
	return parse(text, before).pieces.map(({ text: t, style }) => [t, Object.entries(style)
		.filter(([, v]) => v !== '' && v !== false)
		.map(([k, v]) => v === true ? k : `${k}=${v}`).join(' ')]);
}

function shown(text) {
	return textOf(parse(text, START).pieces);
}

test('text without sequences is one piece', () => {
	assert.deepEqual(pieces('a\nb\n'), [['a\nb\n', '']]);
	assert.deepEqual(pieces(''), []);
});

test('colours of all three kinds, by semicolons and by colons', () => {
	assert.deepEqual(pieces(`${ESC}[31mr${ESC}[94mb${ESC}[103my${ESC}[mp`),
		[['r', 'fg=c1'], ['b', 'fg=c12'], ['y', 'fg=c12 bg=c11'], ['p', '']]);
	assert.deepEqual(pieces(`${ESC}[38;5;9ma${ESC}[48;5;16mb${ESC}[38;5;231mc${ESC}[38;5;244md`),
		[['a', 'fg=c9'], ['b', 'fg=c9 bg=rgb(0, 0, 0)'],
			['c', 'fg=rgb(255, 255, 255) bg=rgb(0, 0, 0)'],
			['d', 'fg=rgb(128, 128, 128) bg=rgb(0, 0, 0)']]);
	assert.deepEqual(pieces(`${ESC}[38;2;1;2;3mx${ESC}[38:2::4:5:6my${ESC}[38:5:2mz`),
		[['x', 'fg=rgb(1, 2, 3)'], ['y', 'fg=rgb(4, 5, 6)'], ['z', 'fg=c2']]);
});

test('weights and their resets', () => {
	assert.deepEqual(pieces(`${ESC}[1;2;3;4;9ma${ESC}[22mb${ESC}[23;24mc${ESC}[29md`),
		[['a', 'bold dim italic underline strike'], ['b', 'italic underline strike'],
			['c', 'strike'], ['d', '']]);
	assert.deepEqual(pieces(`${ESC}[31;42mx${ESC}[39my${ESC}[49mz`),
		[['x', 'fg=c1 bg=c2'], ['y', 'bg=c2'], ['z', '']]);
});

test('what follows a colour in the same sequence still counts', () => {
	assert.deepEqual(pieces(`${ESC}[38;5;1;1mx`), [['x', 'fg=c1 bold']]);
	assert.deepEqual(pieces(`${ESC}[38;2;1;2;3;4mx`), [['x', 'fg=rgb(1, 2, 3) underline']]);
});

test('nonsense in a sequence changes nothing', () => {
	assert.deepEqual(pieces(`${ESC}[38;5;999mx`), [['x', '']]);
	assert.deepEqual(pieces(`${ESC}[38;2;300;0;0mx`), [['x', '']]);
	assert.deepEqual(pieces(`${ESC}[38mx${ESC}[38;7mx${ESC}[?31mx${ESC}[500mx`), [['xxxx', '']]);
});

test('other sequences are dropped', () => {
	for (const s of ['[2J', '[10;20H', '[?25l', '[K', ']0;title\x07', ']8;;http://x\x1b\\',
		'P1$r0m\x1b\\', '_apc\x1b\\', '(B', '=', 'c', '7', '[1 q'])
		assert.equal(shown(`a${ESC}${s}b`), 'ab', JSON.stringify(s));
});

test('a sequence that is cut is carried on, wherever it is cut', () => {
	for (const s of [`${ESC}[1;31m`, `${ESC}]0;title\x07`, `${ESC}]8;;x${ESC}\\`, `${ESC}(B`])
		for (let at = 1; at < s.length; at++) {
			const first = parse(`a${s.slice(0, at)}`, START);
			const second = parse(`${s.slice(at)}b`, first.after);

			assert.equal(textOf(first.pieces), 'a', JSON.stringify([s, at]));
			assert.equal(textOf(second.pieces), 'b', JSON.stringify([s, at]));
			assert.equal(second.pieces[0].style.bold, s.endsWith('m'));
		}
});

test('what never becomes a sequence is not carried for ever', () => {
	const { pieces: got, after } = parse(`${ESC}]${'x'.repeat(5000)}`, START);

	assert.equal(after.carried, '');
	assert.ok(textOf(got).length >= 5000);
});

test('a carriage return before more text takes the line back', () => {
	assert.equal(shown('10%\r50%\r100%\ndone\n'), '100%\ndone\n');
	assert.equal(shown('keep\nold\rnew'), 'keep\nnew');
	assert.equal(shown('dos\r\nline\r\n'), 'dos\nline\n');
	assert.equal(shown('end\r'), 'end');
	assert.equal(shown(`${ESC}[31mred\r${ESC}[0mplain`), 'plain');
	assert.equal(shown('a\r\r\nb'), 'a\nb');
});

test('controls are shown as symbols, tabs and characters beyond ASCII stay', () => {
	assert.equal(shown('a\x00b\x07c\x7fd\te\u009bf'), 'a\u2400b\u2407c\u2421d\te\ufffdf');
	assert.equal(shown('ünïcödé 日本語 🎉 e\u0301'), 'ünïcödé 日本語 🎉 e\u0301');
});

test('neighbours of one style are one piece', () => {
	assert.deepEqual(pieces(`${ESC}[31ma${ESC}[31mb${ESC}[0;31mc\n${ESC}[31md`),
		[['abc\nd', 'fg=c1']]);
});

test('a megabyte of escapes takes no time worth telling', () => {
	const text = `${ESC}[31mx${ESC}[0m`.repeat(100_000) + `${ESC}[`.repeat(100_000);

	assert.ok(textOf(parse(text, START).pieces).startsWith('xxx'));
});
