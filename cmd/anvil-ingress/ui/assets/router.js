// router.js -- addresses, and the page that belongs to each.

import { fill, h } from './dom.js';
import { announce } from './toast.js';

const main = document.getElementById('main');

const routes = [];
const hooks = { guard: async () => true, failed: () => {} };
let current = null;	// The context of the page that is shown.

// `pattern`: words and :names between slashes.  options.guarded: for those who are signed in.
export function route(pattern, page, options = {}) {
	routes.push({ words: pattern.split('/').filter((w) => w !== ''), page, ...options });
}

// guard(route): resolves with whether it may be shown, or shows something else and resolves
// with false.  failed(error): nothing caught it.
export function setHooks(more) {
	Object.assign(hooks, more);
}

function basePath() {
	return new URL(document.baseURI).pathname;
}

// The path beneath the base, with its leading slash.
export function here() {
	return `/${location.pathname.slice(basePath().length)}`;
}

export function hrefOf(path) {
	return basePath() + path.slice(1);
}

function decode(part) {
	try {
		return decodeURIComponent(part);
	} catch {
		return part;	// names nothing
	}
}

function match(words, path) {
	const parts = path.split('/').filter((w) => w !== '');
	const params = {};

	if (parts.length !== words.length)
		return null;
	for (let i = 0; i < words.length; i++) {
		if (words[i].startsWith(':'))
			params[words[i].slice(1)] = decode(parts[i]);
		else if (words[i] !== parts[i])
			return null;
	}
	return params;
}

function find(path) {
	for (const r of routes) {
		const params = match(r.words, path);

		if (params !== null)
			return { route: r, params };
	}
	return null;
}

// What a page is given.
class Context {
	#abort = new AbortController();
	#heading = null;
	#shown = false;

	constructor(params) {
		this.params = params;
		this.query = new URLSearchParams(location.search);
		this.hash = location.hash;
	}

	// Aborts when the page is left.
	get signal() {
		return this.#abort.signal;
	}

	get left() {
		return this.signal.aborted;
	}

	leave() {
		this.#abort.abort(new DOMException('The page was left.', 'AbortError'));
	}

	// Runs until the page is left.
	every(ms, work) {
		const timer = setInterval(work, ms);

		this.signal.addEventListener('abort', () => clearInterval(timer));
	}

	// Until there is something to show.
	wait(text) {
		if (!this.left)
			fill(main, h('p', { class: 'waiting', role: 'status' }, text));
	}

	// The heading of the page, for a place among the nodes of show().
	heading(text) {
		this.#heading = h('h1', { tabindex: '-1' }, text);
		return this.#heading;
	}

	// The nodes become the page.  The first time the heading gets the focus.
	show(...nodes) {
		if (this.left)
			return;
		fill(main, ...nodes);
		this.setTitle();
		if (this.#shown)
			return;
		this.#shown = true;
		this.#heading.focus({ preventScroll: true });
		announce(this.#heading.textContent);
	}

	// `before`: what comes before the heading, in the title.
	setTitle(before = '') {
		if (!this.left)
			document.title = `${before}${this.#heading.textContent} — anvil`;
	}
}

async function open() {
	const path = here();
	const found = find(path) ?? find('/not-found');

	current?.leave();
	const context = new Context(found.params);

	current = context;
	document.body.dispatchEvent(new CustomEvent('navigated', { detail: path }));
	try {
		if (!await hooks.guard(found.route, context) || context.left)
			return;
		await found.route.page(context);
	} catch (error) {
		if (context.left || error?.name === 'AbortError')
			return;
		if (error.status === 404)
			await find('/not-found').route.page(context);
		else
			hooks.failed(error, context);
	}
}

export function go(path, options = {}) {
	if (options.replace)
		history.replaceState(null, '', hrefOf(path));
	else
		history.pushState(null, '', hrefOf(path));
	scrollTo(0, 0);
	return open();
}

export function reopen() {
	return open();
}

// Links of ours change the page and not the document.
function onClick(event) {
	const link = event.target.closest?.('a[href]');

	if (link === null || link === undefined || event.defaultPrevented || event.button !== 0 ||
	    event.metaKey || event.ctrlKey || event.shiftKey || event.altKey ||
	    link.target !== '' || link.hasAttribute('download') || link.origin !== location.origin)
		return;
	if (!link.pathname.startsWith(`${basePath()}app/`))
		return;
	event.preventDefault();
	if (link.pathname === location.pathname && link.hash !== '') {
		history.replaceState(null, '', link.href);
		dispatchEvent(new HashChangeEvent('hashchange'));
		return;
	}
	go(`/${link.pathname.slice(basePath().length)}${link.search}${link.hash}`);
}

export function start() {
	document.addEventListener('click', onClick);
	addEventListener('popstate', () => open());
	return open();
}
