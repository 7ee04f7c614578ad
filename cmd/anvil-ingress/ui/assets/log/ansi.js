// ansi.js -- text of a terminal as pieces of one style each.  Colours and weights are understood,
// every other sequence is dropped.

const CARRIED_MAX = 4096;	// An escape sequence longer than this is none.

const PLAIN = Object.freeze({ fg: '', bg: '', bold: false, dim: false, italic: false,
	underline: false, strike: false });

// CSI with its final byte; OSC and other strings with their end; other escapes.
const SEQUENCE = new RegExp([
	'\\x1b\\[([0-?]*)[ -/]*([@-~])',
	'\\x1b\\][^\\x07\\x1b]*(?:\\x07|\\x1b\\\\)',
	'\\x1b[PX^_][^\\x1b]*\\x1b\\\\',
	'\\x1b[ -/]*[0-OQ-WYZ\\\\`-~]',
].join('|'), 'g');
// The beginning of one, at the end of a text.
const CUT = /\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|[ -/]*)$/;

// ---- colours ----

const STEPS = [0, 95, 135, 175, 215, 255];

// 0..15 are names for the style sheet, the others colours by their values.
function palette(n) {
	if (!(n >= 0 && n <= 255))
		return null;
	if (n < 16)
		return `c${n}`;
	if (n >= 232)
		return rgb(8 + (n - 232) * 10, 8 + (n - 232) * 10, 8 + (n - 232) * 10);
	n -= 16;
	return rgb(STEPS[Math.floor(n / 36)], STEPS[Math.floor(n / 6) % 6], STEPS[n % 6]);
}

function rgb(r, g, b) {
	return [r, g, b].every((v) => v >= 0 && v <= 255) ? `rgb(${r}, ${g}, ${b})` : null;
}

// The colour behind 38 or 48: of what follows in ${codes} from ${at}.  [colour, codes used].
function extended(codes, at) {
	if (codes[at] === 5)
		return [palette(codes[at + 1] ?? 0), 2];
	if (codes[at] === 2)
		return [rgb(codes[at + 1] ?? 0, codes[at + 2] ?? 0, codes[at + 3] ?? 0), 4];
	return [null, codes.length];
}

// The same with colons: 38:5:n, 38:2:r:g:b, 38:2:space:r:g:b.
function extendedByColons(parts) {
	const numbers = parts.map((p) => p === '' ? 0 : Number(p));

	if (numbers[1] === 5)
		return palette(numbers[2] ?? 0);
	return numbers[1] === 2 ? rgb(...numbers.slice(-3)) : null;
}

// ---- styles ----

const FLAGS = {
	1: { bold: true }, 2: { dim: true }, 3: { italic: true }, 4: { underline: true },
	9: { strike: true }, 22: { bold: false, dim: false }, 23: { italic: false },
	24: { underline: false }, 29: { strike: false }, 39: { fg: '' }, 49: { bg: '' },
};

function plainCode(style, code) {
	if (code === 0)
		return PLAIN;
	if (FLAGS[code] !== undefined)
		return { ...style, ...FLAGS[code] };
	if (code >= 30 && code <= 37)
		return { ...style, fg: `c${code - 30}` };
	if (code >= 90 && code <= 97)
		return { ...style, fg: `c${code - 82}` };
	if (code >= 40 && code <= 47)
		return { ...style, bg: `c${code - 40}` };
	if (code >= 100 && code <= 107)
		return { ...style, bg: `c${code - 92}` };
	return style;
}

function withColour(style, code, colour) {
	if (colour === null)
		return style;
	return code === 38 ? { ...style, fg: colour } : { ...style, bg: colour };
}

function applyColons(style, field) {
	const parts = field.split(':');
	const code = Number(parts[0]);

	if (code === 38 || code === 48)
		return withColour(style, code, extendedByColons(parts));
	if (code === 4)
		return { ...style, underline: parts[1] !== '0' };
	return style;
}

function apply(style, parameters) {
	const fields = parameters.split(';');
	const codes = fields.map((f) => f === '' ? 0 : Number(f));

	if (/[<-?]/.test(parameters))
		return style;	// private ones
	for (let i = 0; i < fields.length; i++) {
		if (fields[i].includes(':')) {
			style = applyColons(style, fields[i]);
		} else if (codes[i] === 38 || codes[i] === 48) {
			const [colour, used] = extended(codes, i + 1);

			style = withColour(style, codes[i], colour);
			i += used;
		} else {
			style = plainCode(style, codes[i]);
		}
	}
	return style;
}

function same(a, b) {
	return a === b || Object.keys(PLAIN).every((k) => a[k] === b[k]);
}

// ---- text ----

// Characters that would do something are shown as their symbols.
function visible(text) {
	return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g, (c) => {
		const code = c.charCodeAt(0);

		if (code < 0x20)
			return String.fromCharCode(0x2400 + code);
		return code === 0x7f ? '\u2421' : '\ufffd';
	});
}

class Line {
	#done;		// Pieces of the lines before.
	#now = [];	// Of this one, which a carriage return takes back.

	constructor(done) {
		this.#done = done;
	}

	add(text, style) {
		const last = this.#now.at(-1);

		if (text === '')
			return;
		if (last !== undefined && same(last.style, style))
			last.text += text;
		else
			this.#now.push({ text, style });
	}

	restart() {
		this.#now = [];
	}

	end() {
		for (const piece of this.#now) {
			const last = this.#done.at(-1);

			if (last !== undefined && same(last.style, piece.style))
				last.text += piece.text;
			else
				this.#done.push(piece);
		}
		this.#now = [];
	}
}

// A run of text without sequences.  A carriage return before more text takes the line back.
function addText(line, text, style, state) {
	for (const part of text.split(/(\r+\n|\n|\r)/)) {
		if (part === '') {
			continue;
		} else if (part.endsWith('\n')) {
			state.returned = false;
			line.add('\n', style);
			line.end();
		} else if (part === '\r') {
			state.returned = true;
		} else {
			if (state.returned)
				line.restart();
			state.returned = false;
			line.add(visible(part), style);
		}
	}
}

// How a stream begins.
export const START = Object.freeze({ style: PLAIN, carried: '' });

export function sameState(a, b) {
	return a.carried === b.carried && same(a.style, b.style);
}

// {pieces: [{text, style}], after: the state for the next text of the stream}.
export function parse(text, before) {
	const whole = before.carried + text;
	const cut = CUT.exec(whole);
	const carried = cut !== null && cut[0].length <= CARRIED_MAX ? cut[0] : '';
	const body = whole.slice(0, whole.length - carried.length);
	const pieces = [];
	const line = new Line(pieces);
	const state = { returned: false };
	let style = before.style;
	let at = 0;

	for (const match of body.matchAll(SEQUENCE)) {
		addText(line, body.slice(at, match.index), style, state);
		at = match.index + match[0].length;
		if (match[2] === 'm')
			style = apply(style, match[1]);
	}
	addText(line, body.slice(at), style, state);
	line.end();
	return { pieces, after: { style, carried } };
}

export function textOf(pieces) {
	return pieces.map((p) => p.text).join('');
}
