// profile.js -- who is signed in, and how the pages look to them.

import { moment } from '../clock.js';
import { button } from '../dialog.js';
import { freshId, h } from '../dom.js';
import { me, signOut } from '../session.js';
import { setTheme, theme } from '../shell.js';

const THEMES = [['System', null], ['Light', 'light'], ['Dark', 'dark']];

function themeChoice() {
	const group = freshId('theme');

	return h('fieldset', { class: 'choice' }, h('legend', {}, 'Theme'),
		THEMES.map(([label, name]) => h('label', {}, h('input', { type: 'radio', name: group,
			checked: theme() === name, onchange: () => setTheme(name) }), label)));
}

export function profilePage(context) {
	const user = me();

	context.show(h('section', { class: 'card narrow' }, context.heading('Profile & Settings'),
		h('dl', { class: 'facts' },
			h('dt', {}, 'Name'), h('dd', {}, user.displayName),
			h('dt', {}, 'Slug'), h('dd', {}, `@${user.slug}`),
			h('dt', {}, 'Email'), h('dd', {}, user.email),
			h('dt', {}, 'Member since'), h('dd', {}, moment(user.createdAt))),
		themeChoice(),
		h('div', { class: 'buttons start' }, button('Sign Out', signOut))));
}
