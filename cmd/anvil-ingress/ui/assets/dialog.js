// dialog.js -- a question or a piece of news that has to be answered first.

import { freshId, h } from './dom.js';

const FOCUSABLE = 'a[href], button:not(:disabled), input:not(:disabled), select, textarea, ' +
	'[tabindex="0"]';

function focusable(box) {
	return [...box.querySelectorAll(FOCUSABLE)].filter((e) => e.offsetParent !== null);
}

// The focus goes round inside.
function onTab(event, box) {
	const all = focusable(box);
	const [first, last] = [all[0], all.at(-1)];

	if (all.length === 0) {
		event.preventDefault();
	} else if (event.shiftKey && (document.activeElement === first ||
	    !box.contains(document.activeElement))) {
		event.preventDefault();
		last.focus();
	} else if (!event.shiftKey && document.activeElement === last) {
		event.preventDefault();
		first.focus();
	}
}

export class Dialog {
	#opener = document.activeElement;
	#layer;
	#box;
	#held = false;
	#onClose;

	// options.body: nodes; options.onClose(): after it has gone; options.wide.
	constructor(title, options) {
		const [name, description] = [freshId('dialog'), freshId('dialog-text')];

		this.body = h('div', { class: 'dialog-body', id: description }, options.body ?? []);
		this.#onClose = options.onClose ?? (() => {});
		this.#box = h('div', { class: options.wide ? 'dialog wide' : 'dialog', role: 'dialog',
			'aria-modal': 'true', 'aria-labelledby': name, 'aria-describedby': description,
			tabindex: '-1' },
		h('h2', { id: name }, title), this.body);
		this.#layer = h('div', { class: 'layer' }, this.#box);
		this.#layer.addEventListener('mousedown', (event) => {
			if (event.target === this.#layer && !this.#held)
				this.close();
		});
		this.#layer.addEventListener('keydown', (event) => this.#onKey(event));
		document.body.append(this.#layer);
		this.focus();
	}

	#onKey(event) {
		event.stopPropagation();
		if (event.key === 'Escape' && !this.#held)
			this.close();
		else if (event.key === 'Tab')
			onTab(event, this.#box);
	}

	// The field that is to be filled in, or the first button.
	focus() {
		const wanted = this.body.querySelector('[data-first]') ?? focusable(this.#box)[0];

		(wanted ?? this.#box).focus();
	}

	// Held, it can only be closed by close().
	hold(held) {
		this.#held = held;
	}

	get open() {
		return this.#layer.isConnected;
	}

	close() {
		if (!this.open)
			return;
		this.#layer.remove();
		if (this.#opener?.isConnected)
			this.#opener.focus();
		this.#onClose();
	}
}

export function buttonRow(...buttons) {
	return h('div', { class: 'buttons' }, buttons);
}

export function button(label, onclick, className = '') {
	return h('button', { type: 'button', class: className, onclick }, label);
}

// A button that does its work once at a time; what goes wrong goes to onError.
export function working(label, work, onError, className = '') {
	const b = button(label, async () => {
		b.disabled = true;
		try {
			await work();
		} catch (error) {
			onError(error);
		} finally {
			b.disabled = false;
		}
	}, className);

	return b;
}

// Asks whether something is to be done that cannot be taken back.  work() does it, and may resolve
// with what comes next, once the dialog has gone.
export function confirm(title, text, verb, work, onError) {
	const dialog = new Dialog(title, {});
	const act = working(verb, async () => {
		const next = await work();

		dialog.close();
		next?.();
	}, (error) => {
		dialog.close();
		onError(error);
	}, 'danger');

	dialog.body.append(h('p', {}, text),
		buttonRow(button('Close', () => dialog.close()), act));
	dialog.focus();
	return dialog;
}
