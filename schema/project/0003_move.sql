-- A project that goes to another shard, whole (spec project 17).

-- What has come of a project that is on its way here.
CREATE TABLE import_parts (
	move_id TEXT NOT NULL CHECK (length(move_id) = 32 AND move_id NOT GLOB '*[^0-9a-f]*'),
	part INTEGER NOT NULL CHECK (part >= 1),
	project_id TEXT NOT NULL
	    CHECK (length(project_id) = 26 AND project_id GLOB 'prj_*' AND substr(project_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	rows TEXT NOT NULL CHECK (rows GLOB '{*}'),
	PRIMARY KEY (move_id, part)
) STRICT;

CREATE INDEX import_parts_project ON import_parts (project_id);

-- Moves that were given up here; the other shard is told until it has answered.
CREATE TABLE move_discards (
	move_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(move_id) = 32 AND move_id NOT GLOB '*[^0-9a-f]*'),
	project_id TEXT NOT NULL
	    CHECK (length(project_id) = 26 AND project_id GLOB 'prj_*' AND substr(project_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	move_to INTEGER NOT NULL CHECK (move_to BETWEEN 0 AND 63)
) STRICT;

CREATE TRIGGER project_state_begin BEFORE INSERT ON project_state
WHEN NEW.phase NOT IN ('live', 'incoming')
BEGIN
	SELECT RAISE(ABORT, 'project_state: a project begins live or incoming');
END;

CREATE TRIGGER project_state_phases BEFORE UPDATE OF phase ON project_state
WHEN NEW.phase <> OLD.phase AND (OLD.phase, NEW.phase) NOT IN (VALUES
    ('live', 'frozen'), ('live', 'removing'), ('frozen', 'live'), ('frozen', 'moved'), ('incoming', 'live'))
BEGIN
	SELECT RAISE(ABORT, 'project_state: illegal change of phase');
END;

-- The last step done: 0 and 1 of a frozen project, which calls in flight may change and nothing
-- may change any more; 4 to 6 of one that has moved.
CREATE TRIGGER project_state_steps BEFORE UPDATE ON project_state
WHEN (NEW.phase = 'frozen' AND NEW.move_step NOT IN (0, 1)) OR (NEW.phase = 'moved' AND NEW.move_step NOT IN (4, 5, 6))
    OR (NEW.move_id IS NOT NULL AND OLD.move_id IS NOT NULL AND (NEW.move_id <> OLD.move_id
        OR NEW.move_to IS NOT OLD.move_to OR NEW.move_step < OLD.move_step))
BEGIN
	SELECT RAISE(ABORT, 'project_state: the steps of a move go forward');
END;

-- Rows of a project that is being moved stay as they are: pages that are read one after another
-- are of one moment.
DROP TRIGGER project_runs_begin;
CREATE TRIGGER project_runs_begin BEFORE INSERT ON project_runs
WHEN (NEW.status, NEW.dispatch_status, NEW.index_sync) NOT IN (VALUES
    ('executable', 'pending', 'needs_create'), ('pending', 'blocked', 'needs_create'))
    AND (SELECT phase FROM project_state WHERE project_id = NEW.project_id) IS NOT 'incoming'
BEGIN
	SELECT RAISE(ABORT, 'project_runs: a run begins executable or pending');
END;

CREATE TRIGGER project_runs_moving_insert BEFORE INSERT ON project_runs
WHEN (SELECT phase IN ('frozen', 'moved') FROM project_state WHERE project_id = NEW.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_runs: the project is being moved');
END;

CREATE TRIGGER project_runs_moving_update BEFORE UPDATE ON project_runs
WHEN (SELECT phase IN ('incoming', 'moved') OR (phase = 'frozen' AND move_step > 0)
    FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_runs: the project is being moved');
END;

CREATE TRIGGER project_runs_moving_delete BEFORE DELETE ON project_runs
WHEN (SELECT phase IN ('incoming', 'frozen') FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_runs: the project is being moved');
END;

CREATE TRIGGER project_config_moving_update BEFORE UPDATE ON project_config
WHEN (SELECT phase NOT IN ('live', 'removing') FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_config: the project is being moved');
END;

CREATE TRIGGER project_webhooks_moving_insert BEFORE INSERT ON project_webhooks
WHEN (SELECT phase IN ('frozen', 'moved') FROM project_state WHERE project_id = NEW.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_webhooks: the project is being moved');
END;

CREATE TRIGGER project_webhooks_moving_update BEFORE UPDATE ON project_webhooks
WHEN (SELECT phase NOT IN ('live', 'removing') FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_webhooks: the project is being moved');
END;

CREATE TRIGGER project_webhooks_moving_delete BEFORE DELETE ON project_webhooks
WHEN (SELECT phase IN ('incoming', 'frozen') FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_webhooks: the project is being moved');
END;

CREATE TRIGGER project_webhook_deliveries_moving_insert BEFORE INSERT ON project_webhook_deliveries
WHEN (SELECT phase IN ('frozen', 'moved') FROM project_state WHERE project_id = NEW.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_webhook_deliveries: the project is being moved');
END;

CREATE TRIGGER project_webhook_deliveries_moving_update BEFORE UPDATE ON project_webhook_deliveries
WHEN (SELECT phase NOT IN ('live', 'removing') FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_webhook_deliveries: the project is being moved');
END;

CREATE TRIGGER project_webhook_deliveries_moving_delete BEFORE DELETE ON project_webhook_deliveries
WHEN (SELECT phase IN ('incoming', 'frozen') FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_webhook_deliveries: the project is being moved');
END;
