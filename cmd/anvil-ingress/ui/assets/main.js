// main.js -- the start: is the server usable, who is signed in, which page.

import { get } from './api.js';
import { fill, h } from './dom.js';
import { applyTheme, drawFooter, drawShell, setFavicon } from './shell.js';
import { go, here, reopen, route, setHooks, start } from './router.js';
import { button } from './dialog.js';
import * as session from './session.js';
import { toastError } from './toast.js';
import { invitePage, signInPage } from './pages/sign_in.js';
import { profilePage } from './pages/profile.js';
import { newProjectPage, settingsPage } from './pages/project_form.js';
import { projectPage } from './pages/project.js';
import { projectsPage } from './pages/projects.js';
import { runPage } from './pages/run.js';

const main = document.getElementById('main');

let verified = false;	// The stored session is good.
let wanted = null;	// Where somebody who has to sign in first wanted to go.

// ---- what may be seen ----

async function guard(found, context) {
	setFavicon('idle');
	if (found.guarded && !verified) {
		if (session.sessionId() !== null) {
			context.wait('Verifying session…');
			verified = await session.check();
			if (context.left)
				return false;
			drawShell();
		}
		if (!verified) {
			wanted = here() + location.search + location.hash;
			go('/app/login', { replace: true });
			return false;
		}
	}
	if (found.open && !verified && session.sessionId() !== null) {
		verified = await session.check().catch(() => false);
		drawShell();
	}
	if (found.open && verified) {
		go('/app/projects', { replace: true });
		return false;
	}
	return true;
}

// Signed in: on to what was asked for first.
function arrive() {
	const to = wanted ?? '/app/projects';

	wanted = null;
	go(to, { replace: true });
}

// ---- pages for what is not there ----

function notFoundPage(context) {
	context.show(context.heading('Page not found'),
		h('p', {}, 'There is nothing at this address, or it is not yours to see.'),
		h('p', {}, h('a', { href: 'app/projects' }, 'Back to projects')));
}

function failedPage(error, context) {
	context.show(context.heading('Something went wrong'),
		h('div', { class: 'banner error', role: 'alert' }, error.message),
		h('div', { class: 'buttons start' },
			button('Retry', () => reopen(), 'primary'),
			h('a', { class: 'button', href: 'app/projects' }, 'Back to projects')));
}

function unusablePage(error) {
	const usable = error.code !== 'encryption_not_configured';

	fill(main, h('h1', { tabindex: '-1' }, usable ? 'The server cannot be reached'
		: 'The server has no usable key'),
	usable ? h('p', {}, error.message)
		: h('p', {}, 'anvil seals its secrets with a key, and has none that it can use. ' +
			'Look at ', h('code', {}, 'keys_file'), ' in its configuration: the file has to ' +
			'exist, be readable for anvil alone, and hold the current version. Then restart ' +
			'anvild and try again.'),
	h('div', { class: 'buttons start' }, button('Retry', begin, 'primary')));
}

// ---- the session, here and in other tabs ----

const WORDS = {
	expired: 'Your session has expired. Sign in again.',
	disabled: 'Your account is disabled. Ask whoever runs this server.',
};

session.onChange((reason) => {
	verified = reason === 'in';
	drawShell();
	if (WORDS[reason] !== undefined)
		toastError(WORDS[reason]);
	if (reason === 'in') {
		arrive();
	} else if (reason === 'elsewhere') {
		reopen();
	} else {
		if (reason !== 'out')
			wanted = here() + location.search + location.hash;
		go('/app/login', { replace: true });
	}
});

// ---- the start ----

route('/', () => go('/app/projects', { replace: true }));
route('/app/login', signInPage, { open: true });
route('/app/invite/accept', invitePage, { open: true });
route('/app/projects', projectsPage, { guarded: true });
route('/app/projects/new', newProjectPage, { guarded: true });
route('/app/projects/:id', projectPage, { guarded: true });
route('/app/projects/:id/settings', settingsPage, { guarded: true });
route('/app/runs/:id', runPage, { guarded: true });
route('/app/me', profilePage, { guarded: true });
route('/not-found', notFoundPage);
setHooks({ guard, failed: failedPage });

function unexpected(error) {
	if (error?.name === 'AbortError')
		return;
	fill(main, h('h1', { tabindex: '-1' }, 'Something went wrong'),
		h('div', { class: 'banner error', role: 'alert' }, String(error?.message ?? error)),
		h('p', {}, h('a', { href: 'app/projects' }, 'Back to projects')));
}

addEventListener('error', (event) => {
	if (event.error !== null && event.error !== undefined)
		unexpected(event.error);
});
addEventListener('unhandledrejection', (event) => unexpected(event.reason));
document.body.addEventListener('navigated', drawShell);
// Its address would be one beneath <base>, not one on this page.
document.querySelector('.skip').addEventListener('click', (event) => {
	event.preventDefault();
	main.focus();
});

async function begin() {
	applyTheme();
	drawShell();
	drawFooter();
	try {
		await get('api/public/app-config', null);
	} catch (error) {
		unusablePage(error);
		return;
	}
	await start();
}

begin();
