// menu.js -- a button with a list of actions beneath it.

import { freshId, h } from './dom.js';

// items: [{label, run}].  `face`: what the button shows; `label` its name, when it shows none.
export function menu(face, items, label) {
	const id = freshId('menu');
	const trigger = h('button', { type: 'button', class: 'quiet menu-button',
		'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-controls': id,
		'aria-label': label }, face);
	const list = h('div', { class: 'menu', role: 'menu', id, hidden: true },
		items.map((item) => h('button', { type: 'button', role: 'menuitem', tabindex: '-1',
			onclick: () => {
				close(true);
				item.run();
			} }, item.label)));
	const root = h('div', { class: 'menu-root' }, trigger, list);
	const entries = [...list.children];

	function onOutside(event) {
		if (!root.contains(event.target))
			close(false);
	}

	function open(index) {
		list.hidden = false;
		trigger.setAttribute('aria-expanded', 'true');
		document.addEventListener('pointerdown', onOutside, true);
		entries.at(index).focus();
	}

	function close(focus) {
		list.hidden = true;
		trigger.setAttribute('aria-expanded', 'false');
		document.removeEventListener('pointerdown', onOutside, true);
		if (focus)
			trigger.focus();
	}

	function move(event) {
		const at = entries.indexOf(document.activeElement);
		const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];

		if (to === undefined)
			return;
		event.preventDefault();
		entries.at(to % entries.length).focus();
	}

	trigger.addEventListener('click', () => list.hidden ? open(0) : close(true));
	trigger.addEventListener('keydown', (event) => {
		if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp')
			return;
		event.preventDefault();
		event.stopPropagation();
		open(event.key === 'ArrowDown' ? 0 : -1);
	});
	list.addEventListener('keydown', (event) => {
		if (event.key === 'Escape')
			close(true);
		else if (event.key === 'Tab')
			close(false);
		else
			move(event);
	});
	return root;
}
