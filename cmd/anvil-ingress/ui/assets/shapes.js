// shapes.js -- what answers have to look like.  A member that is not named here may be there.

const string = (v) => typeof v === 'string';
const number = (v) => typeof v === 'number';
const boolean = (v) => typeof v === 'boolean';
const maybe = (shape) => (v) => v === null || shape(v);
const list = (shape) => (v) => Array.isArray(v) && v.every(shape);
const object = (members) => (v) => typeof v === 'object' && v !== null && !Array.isArray(v) &&
	Object.entries(members).every(([name, shape]) => name in v && shape(v[name]));

const time = (v) => string(v) && !Number.isNaN(Date.parse(v));

const user = object({ id: string, slug: string, email: string, displayName: string,
	createdAt: time });
const project = object({ id: string, ownerSlug: string, projectSlug: string, name: string,
	repoUrl: string, defaultBranch: string, configPath: string, createdAt: time,
	updatedAt: time, lastRunStatus: maybe(string), badgePublic: boolean });
const run = object({ id: string, projectId: string, triggerType: string, branch: string,
	commitSha: maybe(string), status: string, queuedAt: time, startedAt: maybe(time),
	finishedAt: maybe(time), exitCode: maybe(number), failureCode: maybe(string) });
const step = object({ position: number, name: string, command: string, status: string,
	startedAt: maybe(time), finishedAt: maybe(time), exitCode: maybe(number) });
const log = object({ seq: number, stream: string, chunk: string, createdAt: time });
const delivery = object({ deliveryId: string, eventName: string, outcome: string,
	reason: string, branch: maybe(string), commitSha: maybe(string), runId: maybe(string),
	receivedAt: time });
const refusal = object({ at: time, reason: string, hint: maybe(string),
	bodyBytes: maybe(number), count: number });
const webhook = object({ provider: string, enabled: boolean,
	config: maybe(object({ instanceUrl: string })), deliveryUrl: string,
	recentDeliveries: list(delivery), recentRefusals: list(refusal) });

export const SHAPES = {
	session: object({ sessionId: string, user, inviteTtlSeconds: number }),
	me: object({ user, inviteTtlSeconds: number }),
	invite: object({ token: string, expiresAt: time }),
	projects: object({ projects: list(project) }),
	project: object({ project }),
	projectDetail: object({ project, activeRun: maybe(run), pendingRuns: list(object({
		runId: string, branch: string, queuedAt: time })) }),
	runs: object({ runs: list(run), nextCursor: maybe(string) }),
	triggered: object({ runId: string }),
	run: object({ run, currentStep: maybe(number), errorMessage: maybe(string),
		failureCode: maybe(string), steps: list(step), recentLogs: list(log),
		firstSeq: maybe(number), droppedBytes: maybe(number), detailAvailable: boolean }),
	ticket: object({ ticket: string }),
	webhooks: object({ webhooks: list(webhook) }),
	webhook: object({ webhook, generatedSecret: maybe(string) }),
	secret: object({ secret: string }),
	// Messages of the socket.
	state: object({ run: object({ status: string, currentStep: maybe(number),
		startedAt: maybe(time), finishedAt: maybe(time), exitCode: maybe(number),
		errorMessage: maybe(string), failureCode: maybe(string) }), steps: list(step) }),
	log: object({ event: log }),
	gap: object({ fromSeq: number, toSeq: number }),
};
