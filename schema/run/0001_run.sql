-- run.db: state, steps and log of one run (spec run 2 and 3).  Times are milliseconds.

CREATE TABLE run_meta (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	run_id TEXT NOT NULL
	    CHECK (length(run_id) = 26 AND run_id GLOB 'run_*' AND substr(run_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	project_id TEXT NOT NULL
	    CHECK (length(project_id) = 26 AND project_id GLOB 'prj_*' AND substr(project_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	owner_slug TEXT NOT NULL CHECK (length(owner_slug) BETWEEN 1 AND 64 AND owner_slug NOT GLOB '*[^A-Za-z0-9_-]*'),
	project_slug TEXT NOT NULL CHECK (length(project_slug) BETWEEN 1 AND 64 AND project_slug NOT GLOB '*[^A-Za-z0-9_-]*'),
	trigger_type TEXT NOT NULL CHECK (trigger_type IN ('manual', 'webhook')),
	triggered_by_user_id TEXT
	    CHECK (length(triggered_by_user_id) = 26 AND triggered_by_user_id GLOB 'usr_*' AND substr(triggered_by_user_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	branch TEXT NOT NULL CHECK (length(CAST(branch AS BLOB)) BETWEEN 1 AND 244),
	commit_sha TEXT CHECK (length(commit_sha) BETWEEN 7 AND 64 AND commit_sha NOT GLOB '*[^0-9a-f]*'),
	queued_at INTEGER NOT NULL,
	status TEXT NOT NULL CHECK (status IN
	    ('starting', 'running', 'cancel_requested', 'canceling', 'passed', 'failed', 'canceled')),
	current_step INTEGER CHECK (current_step BETWEEN 1 AND 20),
	started_at INTEGER,
	finished_at INTEGER,
	exit_code INTEGER,
	failure_code TEXT CHECK (failure_code IN ('step_failed', 'run_timeout', 'checkout_failed',
	    'commit_unreachable', 'credential_refused', 'config_not_found', 'config_invalid',
	    'sandbox_failed', 'out_of_memory', 'disk_full', 'cancel_cleanup_failed', 'runner_lost',
	    'runtime_cancelled', 'internal_unexpected')),
	error_message TEXT CHECK (length(CAST(error_message AS BLOB)) <= 4096),
	cancel_requested_at INTEGER,
	epoch INTEGER NOT NULL CHECK (epoch >= 1),
	spawn_id TEXT NOT NULL CHECK (length(spawn_id) = 32 AND spawn_id NOT GLOB '*[^0-9a-f]*'),
	sandbox TEXT NOT NULL CHECK (sandbox IN ('bwrap', 'none')),
	timeout_seconds INTEGER CHECK (timeout_seconds >= 1),
	CHECK ((triggered_by_user_id IS NOT NULL) = (trigger_type = 'manual')),
	CHECK ((finished_at IS NOT NULL) = (status IN ('passed', 'failed', 'canceled'))),
	CHECK (started_at IS NOT NULL OR status IN ('failed', 'canceled')),
	CHECK (current_step IS NULL OR status NOT IN ('passed', 'failed', 'canceled')),
	CHECK (cancel_requested_at IS NOT NULL OR status NOT IN ('cancel_requested', 'canceling', 'canceled')),
	CHECK (CASE status
	    WHEN 'passed' THEN exit_code IS 0 AND failure_code IS NULL AND error_message IS NULL
	    WHEN 'canceled' THEN exit_code IS NULL AND failure_code IS 'runtime_cancelled' AND error_message IS NULL
	    WHEN 'failed' THEN exit_code IS NOT NULL AND failure_code IS NOT NULL
		AND failure_code <> 'runtime_cancelled' AND error_message IS NOT NULL
	    ELSE exit_code IS NULL AND failure_code IS NULL AND error_message IS NULL END)
) STRICT;

CREATE TABLE run_steps (
	position INTEGER PRIMARY KEY CHECK (position BETWEEN 1 AND 20),
	name TEXT NOT NULL,
	command TEXT NOT NULL,
	status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'passed', 'failed')),
	started_at INTEGER,
	finished_at INTEGER,
	exit_code INTEGER,
	signal INTEGER CHECK (signal BETWEEN 1 AND 64),
	CHECK (CASE status WHEN 'queued' THEN started_at IS NULL WHEN 'failed' THEN 1 ELSE started_at IS NOT NULL END),
	CHECK ((finished_at IS NOT NULL) = (status IN ('passed', 'failed'))),
	CHECK (CASE status WHEN 'passed' THEN exit_code IS 0 WHEN 'failed' THEN 1 ELSE exit_code IS NULL END),
	CHECK (signal IS NULL OR status = 'failed')
) STRICT;

-- The hot tail.  A chunk is UTF-8 and may hold NUL, hence a BLOB.
CREATE TABLE run_logs (
	seq INTEGER PRIMARY KEY CHECK (seq >= 1),
	stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr', 'system')),
	step INTEGER CHECK (step BETWEEN 1 AND 20),
	chunk BLOB NOT NULL CHECK (length(chunk) BETWEEN 1 AND 16384),
	created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE log_state (
	one INTEGER PRIMARY KEY CHECK (one = 1),
	next_seq INTEGER NOT NULL,                              -- of the chunk that comes next
	first_seq INTEGER NOT NULL CHECK (first_seq >= 1),      -- of the oldest in run_logs
	hot_bytes INTEGER NOT NULL CHECK (hot_bytes >= 0),      -- in run_logs
	dropped_bytes INTEGER NOT NULL CHECK (dropped_bytes >= 0), -- of chunks before first_seq
	total_bytes INTEGER NOT NULL,
	archived_seq INTEGER NOT NULL CHECK (archived_seq >= 0), -- newest chunk in a recorded frame
	archived_bytes INTEGER NOT NULL CHECK (archived_bytes >= 0),
	omitted_bytes INTEGER NOT NULL CHECK (omitted_bytes >= 0), -- left out by the cap
	CHECK (first_seq <= next_seq),
	CHECK (total_bytes = dropped_bytes + hot_bytes),
	CHECK (archived_seq < next_seq)
) STRICT;

INSERT INTO log_state VALUES (1, 1, 1, 0, 0, 0, 0, 0, 0);

CREATE TABLE log_frames (
	first_byte INTEGER PRIMARY KEY CHECK (first_byte >= 0),
	text_size INTEGER NOT NULL CHECK (text_size BETWEEN 1 AND 1048576),
	file_offset INTEGER NOT NULL CHECK (file_offset >= 0),
	file_size INTEGER NOT NULL CHECK (file_size > 0)
) STRICT;

-- ---- a run moves only as spec run 3 says ----

CREATE TRIGGER run_begins_starting BEFORE INSERT ON run_meta
WHEN NEW.status <> 'starting'
BEGIN
	SELECT RAISE(ABORT, 'a run begins as starting');
END;

CREATE TRIGGER run_stays BEFORE DELETE ON run_meta
BEGIN
	SELECT RAISE(ABORT, 'a run is never deleted');
END;

CREATE TRIGGER run_terminal_is_final BEFORE UPDATE ON run_meta
WHEN OLD.status IN ('passed', 'failed', 'canceled')
BEGIN
	SELECT RAISE(ABORT, 'the run has ended');
END;

CREATE TRIGGER run_moves BEFORE UPDATE ON run_meta
WHEN OLD.status <> NEW.status AND NOT (CASE OLD.status
    WHEN 'starting' THEN NEW.status IN ('running', 'cancel_requested')
	OR (NEW.status = 'failed' AND NEW.failure_code NOT IN ('step_failed', 'out_of_memory', 'cancel_cleanup_failed'))
    WHEN 'running' THEN NEW.status IN ('passed', 'cancel_requested')
	OR (NEW.status = 'failed' AND NEW.failure_code <> 'cancel_cleanup_failed')
    WHEN 'cancel_requested' THEN NEW.status = 'canceling'
	OR (NEW.status = 'failed' AND NEW.failure_code = 'runner_lost')
    WHEN 'canceling' THEN NEW.status = 'canceled'
	OR (NEW.status = 'failed' AND NEW.failure_code IN ('cancel_cleanup_failed', 'runner_lost'))
    ELSE 0 END)
BEGIN
	SELECT RAISE(ABORT, 'illegal move of a run');
END;

CREATE TRIGGER run_ends_after_its_steps BEFORE UPDATE ON run_meta
WHEN (NEW.status = 'passed' AND EXISTS (SELECT 1 FROM run_steps WHERE status <> 'passed'))
    OR (NEW.finished_at IS NOT NULL AND EXISTS (SELECT 1 FROM run_steps WHERE status = 'running'))
BEGIN
	SELECT RAISE(ABORT, 'the steps of the run have not ended');
END;

-- A new claim of a released run is the one way back to the beginning.
CREATE TRIGGER run_keeps_its_claim BEFORE UPDATE ON run_meta
WHEN NEW.epoch < OLD.epoch
    OR (NEW.epoch = OLD.epoch AND (NEW.started_at IS NOT OLD.started_at OR NEW.spawn_id <> OLD.spawn_id))
    OR (NEW.epoch <> OLD.epoch AND NEW.status <> 'failed' AND (OLD.status <> 'starting' OR NEW.status <> 'starting'))
    OR (NEW.started_at IS NULL AND OLD.started_at IS NOT NULL AND NEW.epoch < OLD.epoch + 2)
BEGIN
	SELECT RAISE(ABORT, 'only a new claim changes epoch and start of a run');
END;

CREATE TRIGGER run_keeps_its_identity BEFORE UPDATE ON run_meta
WHEN NEW.run_id <> OLD.run_id OR NEW.project_id <> OLD.project_id
    OR NEW.trigger_type <> OLD.trigger_type OR NEW.triggered_by_user_id IS NOT OLD.triggered_by_user_id
    OR NEW.branch <> OLD.branch OR NEW.queued_at <> OLD.queued_at
    OR (OLD.cancel_requested_at IS NOT NULL AND NEW.cancel_requested_at IS NOT OLD.cancel_requested_at)
    OR (NEW.epoch = OLD.epoch AND OLD.commit_sha IS NOT NULL
	AND (NEW.commit_sha IS NULL OR substr(NEW.commit_sha, 1, length(OLD.commit_sha)) <> OLD.commit_sha))
BEGIN
	SELECT RAISE(ABORT, 'identity, commit and first cancel of a run never change');
END;

-- ---- steps ----

CREATE TRIGGER step_begins_queued BEFORE INSERT ON run_steps
WHEN NEW.status <> 'queued' OR NEW.position <> (SELECT count(*) + 1 FROM run_steps)
    OR (SELECT status FROM run_meta) IS NOT 'starting'
BEGIN
	SELECT RAISE(ABORT, 'steps are written in order, as queued, before the first one runs');
END;

CREATE TRIGGER step_moves BEFORE UPDATE ON run_steps
WHEN NEW.position <> OLD.position OR NEW.name <> OLD.name OR NEW.command <> OLD.command
    OR (OLD.started_at IS NOT NULL AND NEW.started_at IS NOT OLD.started_at)
    OR NOT (CASE OLD.status
	WHEN 'queued' THEN NEW.status = 'queued'
	    OR (NEW.status = 'running' AND (SELECT status FROM run_meta) IS 'running')
	WHEN 'running' THEN NEW.status IN ('running', 'passed', 'failed')
	ELSE 0 END)
BEGIN
	SELECT RAISE(ABORT, 'illegal move of a step');
END;

CREATE TRIGGER step_of_ended_run BEFORE UPDATE ON run_steps
WHEN (SELECT status FROM run_meta) IN ('passed', 'failed', 'canceled')
BEGIN
	SELECT RAISE(ABORT, 'the run has ended');
END;

CREATE TRIGGER step_goes_with_its_claim BEFORE DELETE ON run_steps
WHEN (SELECT status FROM run_meta) IN ('passed', 'failed', 'canceled')
BEGIN
	SELECT RAISE(ABORT, 'the run has ended');
END;

-- ---- log ----

CREATE TRIGGER log_is_contiguous BEFORE INSERT ON run_logs
WHEN NEW.seq <> (SELECT coalesce((SELECT max(seq) + 1 FROM run_logs), (SELECT next_seq FROM log_state)))
    OR (SELECT status FROM run_meta) IN ('passed', 'failed', 'canceled')
BEGIN
	SELECT RAISE(ABORT, 'log lines are contiguous and none follows the end of the run');
END;

CREATE TRIGGER log_never_changes BEFORE UPDATE ON run_logs
BEGIN
	SELECT RAISE(ABORT, 'a log line never changes');
END;

CREATE TRIGGER log_drops_the_oldest BEFORE DELETE ON run_logs
WHEN EXISTS (SELECT 1 FROM run_logs WHERE seq < OLD.seq)
BEGIN
	SELECT RAISE(ABORT, 'the oldest log line goes first');
END;

CREATE TRIGGER log_only_grows BEFORE UPDATE ON log_state
WHEN NEW.next_seq < OLD.next_seq OR NEW.first_seq < OLD.first_seq
    OR NEW.total_bytes < OLD.total_bytes OR NEW.dropped_bytes < OLD.dropped_bytes
    OR NEW.archived_seq < OLD.archived_seq OR NEW.archived_bytes < OLD.archived_bytes
    OR NEW.omitted_bytes < OLD.omitted_bytes
BEGIN
	SELECT RAISE(ABORT, 'the counts of the log only grow');
END;
