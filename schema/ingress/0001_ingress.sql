-- ingress.db: accounts, and the index of projects and runs (a read model, spec http-api 14).
-- Ids have a prefix and 22 characters of 0-9A-Za-z; hashes are 64 lower-case hexadecimal digits.

CREATE TABLE users (
	user_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(user_id) = 26 AND user_id GLOB 'usr_*' AND substr(user_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	slug TEXT NOT NULL UNIQUE
	    CHECK (length(slug) BETWEEN 1 AND 64 AND slug NOT GLOB '*[^A-Za-z0-9_-]*'),
	email TEXT NOT NULL UNIQUE CHECK (length(CAST(email AS BLOB)) BETWEEN 3 AND 254),
	display_name TEXT NOT NULL CHECK (length(display_name) BETWEEN 1 AND 128),
	created_at INTEGER NOT NULL,
	disabled_at INTEGER
) STRICT;

CREATE TABLE credentials (
	user_id TEXT PRIMARY KEY NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
	password_hash TEXT NOT NULL,
	updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE invites (
	invite_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(invite_id) = 26 AND invite_id GLOB 'inv_*' AND substr(invite_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	token_hash TEXT NOT NULL UNIQUE CHECK (length(token_hash) = 64 AND token_hash NOT GLOB '*[^0-9a-f]*'),
	created_by TEXT NOT NULL CHECK (created_by = 'operator' OR created_by GLOB 'usr_*'),
	created_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL CHECK (expires_at > created_at),
	accepted_at INTEGER,
	accepted_by TEXT,
	CHECK ((accepted_at IS NULL) = (accepted_by IS NULL))
) STRICT;

CREATE INDEX invites_by_expiry ON invites (expires_at);

-- An invite is accepted once and for all.
CREATE TRIGGER invite_accepted_once BEFORE UPDATE ON invites
WHEN OLD.accepted_at IS NOT NULL
BEGIN
	SELECT RAISE(ABORT, 'the invite has been accepted already');
END;

CREATE TABLE sessions (
	session_hash TEXT PRIMARY KEY NOT NULL CHECK (length(session_hash) = 64 AND session_hash NOT GLOB '*[^0-9a-f]*'),
	user_id TEXT NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
	issued_at INTEGER NOT NULL,
	expires_at INTEGER NOT NULL,
	version INTEGER NOT NULL CHECK (version >= 1)
) STRICT;

CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_by_expiry ON sessions (expires_at);

CREATE TABLE log_tickets (
	ticket_hash TEXT PRIMARY KEY NOT NULL CHECK (length(ticket_hash) = 64 AND ticket_hash NOT GLOB '*[^0-9a-f]*'),
	run_id TEXT NOT NULL,
	user_id TEXT NOT NULL REFERENCES users (user_id) ON DELETE CASCADE,
	expires_at INTEGER NOT NULL
) STRICT;

CREATE INDEX log_tickets_by_expiry ON log_tickets (expires_at);

CREATE TABLE project_index (
	project_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(project_id) = 26 AND project_id GLOB 'prj_*' AND substr(project_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	owner_user_id TEXT NOT NULL,
	owner_slug TEXT NOT NULL,
	project_slug TEXT NOT NULL
	    CHECK (length(project_slug) BETWEEN 1 AND 64 AND project_slug NOT GLOB '*[^A-Za-z0-9_-]*'),
	name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
	repo_url TEXT NOT NULL,
	default_branch TEXT NOT NULL,
	config_path TEXT NOT NULL,
	shard INTEGER NOT NULL CHECK (shard BETWEEN 0 AND 63),
	confirmed INTEGER NOT NULL CHECK (confirmed IN (0, 1)),
	rev INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	UNIQUE (owner_slug, project_slug)
) STRICT;

CREATE INDEX project_index_by_owner ON project_index (owner_user_id, updated_at DESC, project_id DESC);
CREATE INDEX project_index_by_shard ON project_index (shard);
CREATE INDEX project_index_unconfirmed ON project_index (created_at) WHERE confirmed = 0;

CREATE TABLE run_index (
	run_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(run_id) = 26 AND run_id GLOB 'run_*' AND substr(run_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	project_id TEXT NOT NULL,
	rev INTEGER NOT NULL CHECK (rev >= 1),
	trigger_type TEXT NOT NULL CHECK (trigger_type IN ('manual', 'webhook')),
	triggered_by_user_id TEXT CHECK ((triggered_by_user_id IS NOT NULL) = (trigger_type = 'manual')),
	branch TEXT NOT NULL,
	commit_sha TEXT,
	status TEXT NOT NULL CHECK (status IN ('queued', 'starting', 'running', 'cancel_requested',
	    'canceling', 'passed', 'failed', 'canceled')),
	queued_at INTEGER NOT NULL,
	started_at INTEGER,
	finished_at INTEGER,
	exit_code INTEGER,
	failure_code TEXT,
	error_message TEXT,
	CHECK ((finished_at IS NOT NULL) = (status IN ('passed', 'failed', 'canceled')))
) STRICT;

CREATE INDEX run_index_page ON run_index (project_id, queued_at DESC, run_id DESC);

-- What has ended stays ended, however late another word arrives.
CREATE TRIGGER run_index_terminal_stays BEFORE UPDATE OF status ON run_index
WHEN OLD.status IN ('passed', 'failed', 'canceled') AND NEW.status NOT IN ('passed', 'failed', 'canceled')
BEGIN
	SELECT RAISE(ABORT, 'a terminal run cannot become live again');
END;
