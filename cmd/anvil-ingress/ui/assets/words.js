// words.js -- what values are called, and how times and lengths are told.

export const TERMINAL = new Set(['passed', 'failed', 'canceled']);
export const ACTIVE = new Set(['queued', 'starting', 'running', 'cancel_requested', 'canceling']);

const STATUSES = {
	queued: 'Queued',
	starting: 'Starting',
	running: 'Running',
	cancel_requested: 'Cancel Requested',
	canceling: 'Canceling',
	canceled: 'Canceled',
	passed: 'Passed',
	failed: 'Failed',
};

export function statusWord(status) {
	return status === null ? 'Idle' : STATUSES[status] ?? status;
}

// Which of the icons and colours stands for a status.
export function statusLook(status) {
	if (status === null)
		return 'idle';
	if (status === 'starting' || status === 'running')
		return 'running';
	return status.startsWith('cancel') ? 'canceled' : status;
}

const FAILURES = {
	step_failed: 'A step failed.',
	run_timeout: 'The run took too long.',
	checkout_failed: 'The repository could not be checked out.',
	commit_unreachable: 'The commit does not exist any more.',
	credential_refused: 'The repository refused the access token.',
	config_not_found: 'The configuration file is missing.',
	config_invalid: 'The configuration file has errors.',
	sandbox_failed: 'The sandbox could not be started.',
	out_of_memory: 'A step ran out of memory.',
	disk_full: "The server's disk is full.",
	runner_lost: 'The process that ran this run was lost.',
	dispatch_failed: 'The run could not be started.',
	cancel_cleanup_failed: 'The run was canceled, but could not be stopped cleanly.',
	runtime_cancelled: 'The run was canceled.',
};

export function failureWord(code) {
	return FAILURES[code] ?? 'Something went wrong inside anvil.';
}

export const PROVIDERS = { github: 'GitHub', gitlab: 'GitLab', gitea: 'Gitea' };

const OUTCOMES = {
	accepted: 'Accepted',
	ignored_ping: 'Ping',
	ignored_event: 'Ignored Event',
	ignored_branch: 'Ignored Branch',
	queue_full: 'Queue Full',
};

export function outcomeWord(outcome) {
	return OUTCOMES[outcome] ?? outcome;
}

const REFUSALS = {
	unsupported_media_type: 'The content type is not application/json.',
	too_large: 'The body is too large.',
	timeout: 'The body did not arrive in time.',
	missing_header: 'A header of the provider is missing.',
	signature_mismatch: 'The signature does not match the secret.',
	bad_json: 'The body is not valid JSON.',
	bad_payload: 'The payload lacks what a push has.',
	repo_mismatch: 'It is about another repository.',
	delivery_conflict: 'A delivery of this id had another body.',
	stale_verification: 'The webhook changed while it was verified.',
};

export function refusalWord(reason) {
	return REFUSALS[reason] ?? reason;
}

export function plural(n, one, many) {
	return `${n.toLocaleString('en')} ${n === 1 ? one : many}`;
}

export function ordinal(n) {
	const tens = n % 100 >= 11 && n % 100 <= 13;

	return n + (tens ? 'th' : { 1: 'st', 2: 'nd', 3: 'rd' }[n % 10] ?? 'th');
}

// 0 ms.. as `0.4 s`, `12 s`, `3 min 05 s`, `2 h 07 min`.
export function duration(ms) {
	const s = Math.max(0, ms) / 1000;
	const two = (n) => String(Math.floor(n)).padStart(2, '0');

	if (s < 10)
		return `${s.toFixed(1)} s`;
	if (s < 60)
		return `${Math.floor(s)} s`;
	if (s < 3600)
		return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
	return `${Math.floor(s / 3600)} h ${two(s % 3600 / 60)} min`;
}

// `3 days`, `2 hours 30 minutes`: as many units as it takes, of the largest that fit.
export function spell(seconds) {
	const parts = [];

	for (const [size, word] of [[86400, 'day'], [3600, 'hour'], [60, 'minute']]) {
		const n = Math.floor(seconds / size);

		if (n > 0)
			parts.push(plural(n, word, `${word}s`));
		seconds -= n * size;
	}
	return parts.join(' ') || 'less than a minute';
}

export function bytes(n) {
	if (n < 1024)
		return plural(n, 'byte', 'bytes');
	if (n < 1024 * 1024)
		return `${(n / 1024).toFixed(1)} KiB`;
	return `${(n / 1024 / 1024).toFixed(1)} MiB`;
}

export function relative(ms, now = Date.now()) {
	const s = Math.round((now - ms) / 1000);

	if (s < 5)
		return 'just now';
	if (s < 60)
		return `${s} s ago`;
	if (s < 3600)
		return `${Math.floor(s / 60)} min ago`;
	if (s < 86400)
		return `${Math.floor(s / 3600)} h ago`;
	if (s < 7 * 86400)
		return plural(Math.floor(s / 86400), 'day ago', 'days ago');
	return new Date(ms).toLocaleDateString('en', { dateStyle: 'medium' });
}

export function absolute(ms) {
	return new Date(ms).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'medium' });
}

export function slugOf(name) {
	return name.toLowerCase().replace(/[^a-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '')
		.slice(0, 64).replace(/-+$/, '');
}

// The host of a URL that may be half typed; null when there is none yet.
export function hostOf(url) {
	try {
		return new URL(url).host || null;
	} catch {
		return null;
	}
}
