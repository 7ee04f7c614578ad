// secret.js -- a secret that is told once.

import { Dialog, buttonRow } from '../dialog.js';
import { h } from '../dom.js';
import { copyField } from '../form.js';

const HELD_S = 5;

export function showSecret(title, secret) {
	const done = h('button', { type: 'button', class: 'primary', disabled: true,
		onclick: () => dialog.close() });
	const dialog = new Dialog(title, { body: [
		h('p', {}, 'Set it in the forge now: it is shown only this once, and cannot be had ' +
			'again. If it gets lost, rotate it.'),
		copyField('Secret', secret), buttonRow(done)] });
	let left = HELD_S;

	function count() {
		done.disabled = left > 0;
		done.textContent = left > 0 ? `Done (${left})` : 'Done';
		dialog.hold(left > 0);
		if (left-- > 0)
			setTimeout(count, 1000);
	}

	count();
}
