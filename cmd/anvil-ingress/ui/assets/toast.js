// toast.js -- short messages at the edge of the page.

import { fill, h } from './dom.js';

const SHOWN_MS = 4000;

const area = document.getElementById('toasts');

function show(kind, text) {
	const toast = h('div', { class: `toast ${kind}`, role: kind === 'error' ? 'alert' : 'status' },
		h('p', {}, text),
		h('button', { type: 'button', class: 'quiet', onclick: () => toast.remove() },
			'Dismiss'));

	area.append(toast);
	return toast;
}

export function toast(text) {
	const shown = show('info', text);

	setTimeout(() => shown.remove(), SHOWN_MS);
}

export function toastError(text) {
	show('error', text);
}

// The same, of whatever was thrown; what was only given up says nothing.
export function toastOf(error) {
	if (error?.name !== 'AbortError')
		toastError(error.message);
}

const announcer = document.getElementById('announcer');

// Told to those who hear the page.
export function announce(text) {
	fill(announcer, text);
}
