// session.js -- who is signed in, in all tabs of this browser.

import { call, get, setHooks } from './api.js';

const KEY = 'anvil.session';

const state = { user: null, inviteTtlSeconds: 0 };
const changes = new EventTarget();

export function sessionId() {
	return localStorage.getItem(KEY);
}

export function me() {
	return state.user;
}

export function inviteTtlSeconds() {
	return state.inviteTtlSeconds;
}

function tell(reason) {
	changes.dispatchEvent(new CustomEvent('change', { detail: reason }));
}

// listener(reason): in, out, expired, disabled, elsewhere (another tab did it).
export function onChange(listener) {
	changes.addEventListener('change', (event) => listener(event.detail));
}

export function begin(session) {
	localStorage.setItem(KEY, session.sessionId);
	state.user = session.user;
	state.inviteTtlSeconds = session.inviteTtlSeconds;
	tell('in');
}

export function clear(reason) {
	if (sessionId() === null && state.user === null)
		return;
	localStorage.removeItem(KEY);
	state.user = null;
	tell(reason);
}

// Whether the stored session is good.  Throws when that cannot be told.
export async function check() {
	if (sessionId() === null)
		return false;
	try {
		const answer = await get('api/private/me', 'me', { anyone: true });

		state.user = answer.user;
		state.inviteTtlSeconds = answer.inviteTtlSeconds;
		return true;
	} catch (error) {
		if (error.status !== 401 && error.status !== 403)
			throw error;
		localStorage.removeItem(KEY);
		state.user = null;
		return false;
	}
}

export async function signIn(email, password) {
	begin(await call('POST', 'api/public/auth/login', 'session',
		{ body: { email, password }, anyone: true }));
}

// Here it is over whatever the server says to it.
export async function signOut() {
	const gone = call('POST', 'api/public/auth/logout', null, { anyone: true });

	clear('out');
	await gone.catch(() => {});
}

setHooks({
	sessionId,
	refused: (error) => clear(error.code === 'user_disabled' ? 'disabled' : 'expired'),
});

addEventListener('storage', (event) => {
	if (event.key !== KEY && event.key !== null)
		return;
	if (sessionId() === null)
		state.user = null;
	tell('elsewhere');
});
