// shell.js -- what surrounds every page: header, navigation, menu of the user, footer.

import { post } from './api.js';
import { fill, h } from './dom.js';
import { Dialog, button, buttonRow, working } from './dialog.js';
import { copyField } from './form.js';
import { icon } from './icons.js';
import { menu } from './menu.js';
import { go, here, hrefOf } from './router.js';
import { inviteTtlSeconds, me, signOut } from './session.js';
import { absolute, spell } from './words.js';

const shell = document.getElementById('shell');
const LINKS = [['Projects', '/app/projects'], ['New Project', '/app/projects/new']];

function showInvite(dialog, invite) {
	const url = new URL(hrefOf(`/app/invite/accept?token=${invite.token}`), location.href);

	fill(dialog.body,
		h('p', {}, 'This link is shown only now. It works once, and until ',
			h('time', { datetime: invite.expiresAt }, absolute(Date.parse(invite.expiresAt))),
			'.'),
		copyField('Invite link', url.href),
		buttonRow(button('Close', () => dialog.close())));
	dialog.focus();
}

function inviteUser() {
	const dialog = new Dialog('Invite User', {});
	const error = h('p', { class: 'banner error', role: 'alert', hidden: true });
	const make = working('Generate Invite', async () => {
		showInvite(dialog, await post('api/private/invites', 'invite', { body: {} }));
	}, (e) => {
		error.textContent = e.message;
		error.hidden = false;
	}, 'primary');

	dialog.body.append(error, h('p', {}, 'Whoever opens the link makes an account on this ' +
		`server. It works once, for ${spell(inviteTtlSeconds())}.`),
	buttonRow(button('Close', () => dialog.close()), make));
	dialog.focus();
}

function navigation() {
	const path = here();

	return h('nav', { 'aria-label': 'Main', id: 'navigation' }, h('ul', {},
		LINKS.map(([label, to]) => h('li', {}, h('a', { href: hrefOf(to),
			'aria-current': path === to ? 'page' : null }, label)))));
}

function userMenu(user) {
	return menu([h('span', { class: 'who' }, user.displayName),
		h('span', { class: 'slug' }, `@${user.slug}`), icon('down')], [
		{ label: 'Profile & Settings', run: () => go('/app/me') },
		{ label: 'Invite User', run: inviteUser },
		{ label: 'Sign Out', run: signOut },
	]);
}

function header(user) {
	const nav = user !== null && navigation();
	const toggle = user !== null && h('button', { type: 'button', class: 'quiet narrow-only',
		'aria-label': 'Menu', 'aria-expanded': 'false', 'aria-controls': 'navigation',
		onclick: () => {
			const open = nav.classList.toggle('open');

			toggle.setAttribute('aria-expanded', String(open));
		} }, icon('menu'));

	return h('header', { class: 'top' },
		h('a', { class: 'brand', href: hrefOf('/app/projects') }, icon('anvil'), 'anvil'),
		toggle, nav, user !== null && userMenu(user));
}

export function drawShell() {
	fill(shell, header(me()));
}

export function drawFooter() {
	const version = document.querySelector('meta[name="anvil-version"]')?.content ?? '';

	fill(document.getElementById('footer'), h('p', {}, `anvil ${version}`));
}


const THEME = 'anvil.theme';

export function theme() {
	return localStorage.getItem(THEME);
}

// light, dark, or null for the system's.
export function setTheme(name) {
	if (name === null)
		localStorage.removeItem(THEME);
	else
		localStorage.setItem(THEME, name);
	applyTheme();
}

export function applyTheme() {
	if (theme() === null)
		delete document.documentElement.dataset.theme;
	else
		document.documentElement.dataset.theme = theme();
}

// The icon of the tab, by the look of a status.
export function setFavicon(look) {
	document.getElementById('favicon').href = `assets/icons/${look}.svg`;
}
