-- project-<n>.db: configuration, ledger, queue and leases of the projects of one shard
-- (spec project 1-4).  The state machines hold here too, whoever writes the code.

CREATE TABLE project_state (
	project_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(project_id) = 26 AND project_id GLOB 'prj_*' AND substr(project_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	phase TEXT NOT NULL CHECK (phase IN ('live', 'frozen', 'incoming', 'moved', 'removing')),
	move_id TEXT CHECK (length(move_id) = 32 AND move_id NOT GLOB '*[^0-9a-f]*'),
	move_to INTEGER,
	move_step INTEGER,
	phase_at INTEGER NOT NULL,
	next_seq INTEGER NOT NULL CHECK (next_seq >= 1),
	index_sync TEXT NOT NULL CHECK (index_sync IN ('current', 'needs_update')),
	index_rev INTEGER NOT NULL CHECK (index_rev >= 1),
	index_attempt INTEGER NOT NULL CHECK (index_attempt >= 0),
	index_retry_at INTEGER,
	CHECK ((move_id IS NOT NULL) = (phase IN ('frozen', 'moved', 'incoming'))),
	CHECK ((move_to IS NOT NULL) = (phase IN ('frozen', 'moved'))),
	CHECK ((move_step IS NOT NULL) = (phase IN ('frozen', 'moved')))
) STRICT;

CREATE INDEX project_state_sync ON project_state (index_retry_at) WHERE index_sync = 'needs_update';
CREATE INDEX project_state_phase ON project_state (phase) WHERE phase <> 'live';

CREATE TRIGGER project_state_grows BEFORE UPDATE ON project_state
WHEN NEW.next_seq < OLD.next_seq OR NEW.index_rev < OLD.index_rev OR NEW.project_id <> OLD.project_id
BEGIN
	SELECT RAISE(ABORT, 'project_state: next_seq and index_rev only grow');
END;

CREATE TABLE project_config (
	project_id TEXT PRIMARY KEY NOT NULL REFERENCES project_state (project_id) ON DELETE CASCADE,
	owner_user_id TEXT NOT NULL
	    CHECK (length(owner_user_id) = 26 AND owner_user_id GLOB 'usr_*' AND substr(owner_user_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	owner_slug TEXT NOT NULL
	    CHECK (length(owner_slug) BETWEEN 1 AND 64 AND owner_slug NOT GLOB '*[^A-Za-z0-9_-]*'),
	project_slug TEXT NOT NULL
	    CHECK (length(project_slug) BETWEEN 1 AND 64 AND project_slug NOT GLOB '*[^A-Za-z0-9_-]*'),
	name TEXT NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
	repo_url TEXT NOT NULL,
	default_branch TEXT NOT NULL CHECK (length(CAST(default_branch AS BLOB)) BETWEEN 1 AND 244),
	config_path TEXT NOT NULL,
	repo_token_ciphertext TEXT,
	repo_token_nonce TEXT,
	repo_token_key_version INTEGER,
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL,
	CHECK ((repo_token_ciphertext IS NULL) = (repo_token_nonce IS NULL)),
	CHECK ((repo_token_ciphertext IS NULL) = (repo_token_key_version IS NULL))
) STRICT;

CREATE TABLE project_runs (
	run_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(run_id) = 26 AND run_id GLOB 'run_*' AND substr(run_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	project_id TEXT NOT NULL REFERENCES project_state (project_id) ON DELETE CASCADE,
	accept_seq INTEGER NOT NULL CHECK (accept_seq >= 1),
	position INTEGER,
	status TEXT NOT NULL CHECK (status IN ('pending', 'executable', 'active', 'cancel_requested',
	    'passed', 'failed', 'canceled')),
	public_status TEXT NOT NULL CHECK (public_status IN ('queued', 'starting', 'running',
	    'cancel_requested', 'canceling', 'passed', 'failed', 'canceled')),
	dispatch_status TEXT NOT NULL
	    CHECK (dispatch_status IN ('blocked', 'pending', 'queued', 'started', 'terminal')),
	dispatch_attempts INTEGER NOT NULL CHECK (dispatch_attempts BETWEEN 0 AND 6),
	dispatch_retry_at INTEGER,
	last_error TEXT CHECK (length(CAST(last_error AS BLOB)) <= 1024),
	trigger_type TEXT NOT NULL CHECK (trigger_type IN ('manual', 'webhook')),
	triggered_by_user_id TEXT CHECK (length(triggered_by_user_id) = 26
	    AND triggered_by_user_id GLOB 'usr_*' AND substr(triggered_by_user_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	provider TEXT CHECK (provider IN ('github', 'gitlab', 'gitea')),
	delivery_id TEXT,
	branch TEXT NOT NULL,
	repo_url TEXT NOT NULL,
	config_path TEXT NOT NULL,
	commit_sha TEXT CHECK (length(commit_sha) BETWEEN 7 AND 64 AND commit_sha NOT GLOB '*[^0-9a-f]*'),
	queued_at INTEGER NOT NULL,
	claimed_at INTEGER,
	started_at INTEGER,
	finished_at INTEGER,
	exit_code INTEGER,
	failure_code TEXT CHECK (failure_code IN ('step_failed', 'run_timeout', 'checkout_failed',
	    'commit_unreachable', 'credential_refused', 'config_not_found', 'config_invalid',
	    'sandbox_failed', 'out_of_memory', 'disk_full', 'cancel_cleanup_failed', 'runner_lost',
	    'dispatch_failed', 'runtime_cancelled', 'internal_unexpected')),
	error_message TEXT CHECK (length(CAST(error_message AS BLOB)) <= 4096),
	spawn_id TEXT CHECK (length(spawn_id) = 32 AND spawn_id NOT GLOB '*[^0-9a-f]*'),
	lease_epoch INTEGER NOT NULL CHECK (lease_epoch >= 0),
	lease_id TEXT CHECK (length(lease_id) = 32 AND lease_id NOT GLOB '*[^0-9a-f]*'),
	lease_expires_at INTEGER,
	cancel_requested_at INTEGER,
	cancel_by TEXT CHECK (cancel_by IN ('operator', 'shutdown') OR (length(cancel_by) = 26
	    AND cancel_by GLOB 'usr_*' AND substr(cancel_by, 5) NOT GLOB '*[^0-9A-Za-z]*')),
	index_sync TEXT NOT NULL CHECK (index_sync IN ('needs_create', 'current', 'needs_update',
	    'needs_terminal_update', 'done')),
	index_rev INTEGER NOT NULL CHECK (index_rev >= 1),
	index_since INTEGER NOT NULL,
	index_attempt INTEGER NOT NULL CHECK (index_attempt >= 0),
	index_retry_at INTEGER,
	done_at INTEGER,
	UNIQUE (project_id, accept_seq),
	CHECK (position IS NULL OR position = accept_seq),
	CHECK ((position IS NOT NULL) = (status IN ('pending', 'executable'))),
	CHECK ((status = 'pending') = (dispatch_status = 'blocked')),
	CHECK ((status = 'executable') = (dispatch_status IN ('pending', 'queued'))),
	CHECK ((status IN ('active', 'cancel_requested')) = (dispatch_status = 'started')),
	CHECK ((status IN ('passed', 'failed', 'canceled')) = (dispatch_status = 'terminal')),
	CHECK (CASE
	    WHEN status IN ('pending', 'executable') THEN public_status = 'queued'
	    WHEN status = 'active' THEN public_status IN ('queued', 'starting', 'running')
	    WHEN status = 'cancel_requested' THEN public_status IN ('cancel_requested', 'canceling')
	    ELSE public_status = status END),
	CHECK ((triggered_by_user_id IS NOT NULL) = (trigger_type = 'manual')),
	CHECK ((provider IS NOT NULL AND delivery_id IS NOT NULL) = (trigger_type = 'webhook')),
	CHECK ((provider IS NULL) = (delivery_id IS NULL)),
	CHECK (trigger_type = 'manual' OR commit_sha IS NOT NULL),
	CHECK ((finished_at IS NOT NULL) = (status IN ('passed', 'failed', 'canceled'))),
	CHECK (CASE status
	    WHEN 'passed' THEN exit_code IS 0 AND failure_code IS NULL AND error_message IS NULL
	    WHEN 'failed' THEN exit_code IS NOT NULL AND failure_code IS NOT NULL AND failure_code <> 'runtime_cancelled'
	        AND error_message IS NOT NULL
	    WHEN 'canceled' THEN exit_code IS NULL AND failure_code IS 'runtime_cancelled' AND error_message IS NULL
	    ELSE exit_code IS NULL AND failure_code IS NULL AND error_message IS NULL END),
	CHECK (CASE
	    WHEN status IN ('active', 'cancel_requested') THEN lease_id IS NOT NULL AND lease_expires_at IS NOT NULL
	    ELSE lease_expires_at IS NULL END),
	CHECK (status NOT IN ('pending', 'executable') OR lease_id IS NULL),
	CHECK ((cancel_requested_at IS NULL) = (cancel_by IS NULL)),
	CHECK (status NOT IN ('cancel_requested', 'canceled') OR cancel_requested_at IS NOT NULL),
	CHECK ((index_sync IN ('needs_terminal_update', 'done')) = (status IN ('passed', 'failed', 'canceled'))),
	CHECK (index_retry_at IS NULL OR index_sync NOT IN ('current', 'done')),
	CHECK (dispatch_retry_at IS NULL OR dispatch_status = 'pending'),
	CHECK ((done_at IS NOT NULL) = (index_sync = 'done'))
) STRICT;

-- The project's lock: there is no second record of it.
CREATE UNIQUE INDEX project_runs_head ON project_runs (project_id)
    WHERE status IN ('executable', 'active', 'cancel_requested');
CREATE INDEX project_runs_queue ON project_runs (project_id, position) WHERE position IS NOT NULL;
CREATE INDEX project_runs_sync ON project_runs (index_since) WHERE index_sync NOT IN ('current', 'done');
CREATE INDEX project_runs_sync_retry ON project_runs (index_retry_at) WHERE index_retry_at IS NOT NULL;
CREATE INDEX project_runs_dispatch ON project_runs (dispatch_status, dispatch_retry_at, queued_at)
    WHERE dispatch_status = 'pending';
CREATE INDEX project_runs_dispatched ON project_runs (dispatch_status, run_id)
    WHERE dispatch_status IN ('queued', 'started');
CREATE INDEX project_runs_done ON project_runs (done_at) WHERE done_at IS NOT NULL;

CREATE TRIGGER project_runs_begin BEFORE INSERT ON project_runs
WHEN (NEW.status, NEW.dispatch_status, NEW.index_sync) NOT IN (VALUES
    ('executable', 'pending', 'needs_create'), ('pending', 'blocked', 'needs_create'))
BEGIN
	SELECT RAISE(ABORT, 'project_runs: a run begins executable or pending');
END;

CREATE TRIGGER project_runs_status BEFORE UPDATE OF status ON project_runs
WHEN NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (VALUES
    ('pending', 'executable'), ('pending', 'canceled'),
    ('executable', 'canceled'), ('executable', 'active'), ('executable', 'failed'),
    ('active', 'executable'), ('active', 'cancel_requested'), ('active', 'passed'), ('active', 'failed'),
    ('cancel_requested', 'passed'), ('cancel_requested', 'failed'), ('cancel_requested', 'canceled'))
BEGIN
	SELECT RAISE(ABORT, 'project_runs: illegal change of status');
END;

CREATE TRIGGER project_runs_dispatch_status BEFORE UPDATE OF dispatch_status ON project_runs
WHEN NEW.dispatch_status <> OLD.dispatch_status AND (OLD.dispatch_status, NEW.dispatch_status) NOT IN (VALUES
    ('blocked', 'pending'), ('pending', 'queued'), ('queued', 'pending'),
    ('pending', 'started'), ('queued', 'started'), ('started', 'pending'),
    ('blocked', 'terminal'), ('pending', 'terminal'), ('queued', 'terminal'), ('started', 'terminal'))
BEGIN
	SELECT RAISE(ABORT, 'project_runs: illegal change of dispatch_status');
END;

CREATE TRIGGER project_runs_index_sync BEFORE UPDATE OF index_sync ON project_runs
WHEN NEW.index_sync <> OLD.index_sync AND (OLD.index_sync, NEW.index_sync) NOT IN (VALUES
    ('needs_create', 'current'), ('needs_create', 'needs_update'), ('current', 'needs_update'),
    ('needs_update', 'current'), ('needs_create', 'needs_terminal_update'),
    ('current', 'needs_terminal_update'), ('needs_update', 'needs_terminal_update'),
    ('needs_terminal_update', 'done'))
BEGIN
	SELECT RAISE(ABORT, 'project_runs: illegal change of index_sync');
END;

CREATE TRIGGER project_runs_constant BEFORE UPDATE ON project_runs
WHEN NEW.run_id <> OLD.run_id OR NEW.project_id <> OLD.project_id
    OR NEW.accept_seq <> OLD.accept_seq OR NEW.trigger_type <> OLD.trigger_type
    OR NEW.triggered_by_user_id IS NOT OLD.triggered_by_user_id
    OR NEW.provider IS NOT OLD.provider OR NEW.delivery_id IS NOT OLD.delivery_id
    OR NEW.branch <> OLD.branch OR NEW.repo_url <> OLD.repo_url
    OR NEW.config_path <> OLD.config_path OR NEW.queued_at <> OLD.queued_at
BEGIN
	SELECT RAISE(ABORT, 'project_runs: this column never changes');
END;

-- A commit is recorded once; only an abbreviation may become the whole of itself.
CREATE TRIGGER project_runs_commit BEFORE UPDATE OF commit_sha ON project_runs
WHEN OLD.commit_sha IS NOT NULL AND NEW.commit_sha IS NOT OLD.commit_sha
    AND NOT (NEW.commit_sha IS NOT NULL AND length(NEW.commit_sha) > length(OLD.commit_sha)
        AND substr(NEW.commit_sha, 1, length(OLD.commit_sha)) = OLD.commit_sha)
BEGIN
	SELECT RAISE(ABORT, 'project_runs: another commit is recorded');
END;

CREATE TRIGGER project_runs_grows BEFORE UPDATE ON project_runs
WHEN NEW.index_rev < OLD.index_rev OR NEW.lease_epoch < OLD.lease_epoch
BEGIN
	SELECT RAISE(ABORT, 'project_runs: index_rev and lease_epoch only grow');
END;

CREATE TRIGGER project_runs_terminal_stays BEFORE UPDATE ON project_runs
WHEN OLD.status IN ('passed', 'failed', 'canceled') AND (
    NEW.status <> OLD.status OR NEW.public_status <> OLD.public_status
    OR NEW.position IS NOT OLD.position OR NEW.dispatch_attempts <> OLD.dispatch_attempts
    OR NEW.dispatch_retry_at IS NOT OLD.dispatch_retry_at OR NEW.last_error IS NOT OLD.last_error
    OR NEW.commit_sha IS NOT OLD.commit_sha OR NEW.claimed_at IS NOT OLD.claimed_at
    OR NEW.started_at IS NOT OLD.started_at OR NEW.finished_at IS NOT OLD.finished_at
    OR NEW.exit_code IS NOT OLD.exit_code OR NEW.failure_code IS NOT OLD.failure_code
    OR NEW.error_message IS NOT OLD.error_message OR NEW.spawn_id IS NOT OLD.spawn_id
    OR NEW.lease_epoch <> OLD.lease_epoch OR NEW.lease_id IS NOT OLD.lease_id
    OR NEW.cancel_requested_at IS NOT OLD.cancel_requested_at OR NEW.cancel_by IS NOT OLD.cancel_by)
BEGIN
	SELECT RAISE(ABORT, 'project_runs: a terminal run does not change');
END;

-- The history behind `why`, written with the change that it describes.
CREATE TABLE project_run_events (
	run_id TEXT NOT NULL REFERENCES project_runs (run_id) ON DELETE CASCADE,
	seq INTEGER NOT NULL,
	at INTEGER NOT NULL,
	event TEXT NOT NULL CHECK (event IN ('accepted', 'promoted', 'dispatch_queued', 'dispatch_failed',
	    'claimed', 'commit_recorded', 'cancel_requested', 'released', 'settled', 'runner_gone',
	    'taken_over', 'index_done')),
	detail TEXT NOT NULL CHECK (detail GLOB '{*}' AND length(CAST(detail AS BLOB)) <= 1024),
	PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;
