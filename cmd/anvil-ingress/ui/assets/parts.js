// parts.js -- small pieces that several pages show.

import { h } from './dom.js';
import { icon } from './icons.js';
import { hostOf, statusLook, statusWord } from './words.js';

export function badge(status) {
	const look = statusLook(status);

	return h('span', { class: `badge ${look}` }, icon(look), statusWord(status));
}

// Links: [[label, path], ...]; the last one is the page itself, and has no path.
export function breadcrumb(entries) {
	return h('nav', { 'aria-label': 'Breadcrumb', class: 'breadcrumb' }, h('ol', {},
		entries.map(([label, to]) => h('li', {}, to === undefined
			? h('span', { 'aria-current': 'page' }, label)
			: h('a', { href: to }, label)))));
}

// A link to elsewhere, when it is one that a browser may follow.
export function outside(url, label = url) {
	if (!/^https?:\/\//i.test(url))
		return h('span', {}, label);
	return h('a', { href: url, rel: 'noopener noreferrer', target: '_blank' }, label);
}

export function repository(url) {
	return outside(url, hostOf(url) ?? url);
}

export function commit(sha) {
	return sha === null ? '—' : h('code', { title: sha }, sha.slice(0, 7));
}

export function shortId(id) {
	return id.slice(0, 12);
}

// In place of something that could not be had.
export function failure(error, retry) {
	return h('div', { class: 'banner error', role: 'alert' }, h('p', {}, error.message),
		h('button', { type: 'button', onclick: retry }, 'Retry'));
}
