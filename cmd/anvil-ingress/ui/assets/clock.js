// clock.js -- times that are kept up to date while they are in the document.

import { h } from './dom.js';
import { absolute, duration, relative } from './words.js';

const ticking = new Map();	// element -> what it says now

function tick() {
	for (const [element, text] of ticking) {
		if (!element.isConnected) {
			ticking.delete(element);
			continue;
		}
		const now = text();

		if (element.textContent !== now)
			element.textContent = now;
	}
}

setInterval(tick, 1000);

function keep(element, text) {
	element.textContent = text();
	// It is not in the document yet when it is made.
	requestAnimationFrame(() => ticking.set(element, text));
	return element;
}

// A moment, as `3 min ago`; the whole of it as title.
export function ago(iso) {
	const ms = Date.parse(iso);

	return keep(h('time', { datetime: iso, title: absolute(ms) }), () => relative(ms));
}

export function moment(iso) {
	return h('time', { datetime: iso }, absolute(Date.parse(iso)));
}

// How long something took, or has been taking.
export function since(fromIso, toIso) {
	const from = Date.parse(fromIso);

	if (toIso !== null)
		return h('span', { class: 'duration' }, duration(Date.parse(toIso) - from));
	return keep(h('span', { class: 'duration' }), () => duration(Date.now() - from));
}
