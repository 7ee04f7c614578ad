// api.js -- requests to the server, and what comes of them.

import { SHAPES } from './shapes.js';

const READS = new Set(['GET', 'HEAD']);
const LONGEST_WAIT_S = 10;

// Why a request came to nothing.  `code` is the server's, or network_error, invalid_response.
export class ApiError extends Error {
	constructor(status, code, message, more = {}) {
		super(message);
		this.status = status;
		this.code = code;
		this.details = more.details ?? null;
		this.retryAfter = more.retryAfter ?? null;	// seconds
	}

	get issues() {
		return this.details?.issues ?? [];
	}
}

const hooks = { sessionId: () => null, refused: () => {} };

// sessionId(): whose requests these are.  refused(error): a session is not good any more.
export function setHooks(more) {
	Object.assign(hooks, more);
}

export function urlOf(path) {
	return new URL(path, document.baseURI);
}

function pause(seconds, signal) {
	return new Promise((resolve, reject) => {
		const timer = setTimeout(resolve, seconds * 1000);

		signal?.addEventListener('abort', () => {
			clearTimeout(timer);
			reject(signal.reason);
		}, { once: true });
	});
}

async function send(method, path, options) {
	const headers = {};
	const sessionId = hooks.sessionId();

	if (sessionId !== null)
		headers.Authorization = `Bearer ${sessionId}`;
	if (options.body !== undefined)
		headers['Content-Type'] = 'application/json';
	try {
		return await fetch(urlOf(path), { method, headers, signal: options.signal,
			cache: 'no-store', credentials: 'omit', redirect: 'error',
			body: options.body === undefined ? undefined : JSON.stringify(options.body) });
	} catch (error) {
		if (options.signal?.aborted)
			throw options.signal.reason;
		throw new ApiError(0, 'network_error',
			'The server cannot be reached. Check the connection, then try again.');
	}
}

async function errorOf(answer) {
	const retry = Number.parseInt(answer.headers.get('Retry-After') ?? '', 10);
	const more = { retryAfter: Number.isNaN(retry) ? null : retry };

	try {
		const { code, message, details } = (await answer.json()).error;

		return new ApiError(answer.status, String(code), String(message), { ...more, details });
	} catch {
		// A proxy before the server has its own words.
		return new ApiError(answer.status, 'invalid_response',
			`The server answered with status ${answer.status}.`, more);
	}
}

async function valueOf(answer, shape) {
	let value;

	if (shape === null)
		return null;
	try {
		value = await answer.json();
	} catch {
		value = undefined;
	}
	if (!SHAPES[shape](value))
		throw new ApiError(answer.status, 'invalid_response',
			'The server gave an answer that this page does not understand. ' +
			'Reload it: the server may be newer.');
	return value;
}

// Asks, and reads the answer as `shape` (a name in shapes.js; null: there is no body).  Options:
// body, signal, anyone (a refusal of the session is the caller's).  Throws an ApiError, or the
// reason of the signal.
export async function call(method, path, shape, options = {}) {
	let answer = await send(method, path, options);

	if (answer.status === 503 && READS.has(method)) {
		const error = await errorOf(answer);

		if (error.retryAfter === null || error.retryAfter > LONGEST_WAIT_S)
			throw error;
		await pause(error.retryAfter, options.signal);
		answer = await send(method, path, options);
	}
	if (answer.ok)
		return valueOf(answer, shape);
	const error = await errorOf(answer);

	if (!options.anyone && (error.code === 'invalid_session' || error.code === 'user_disabled' ||
	    error.code === 'missing_authorization'))
		hooks.refused(error);
	throw error;
}

export const get = (path, shape, options) => call('GET', path, shape, options);
export const post = (path, shape, options) => call('POST', path, shape, options);
