-- A copy that is given up goes bit by bit: only what is frozen has to stay as it is.

DROP TRIGGER project_runs_moving_delete;
CREATE TRIGGER project_runs_moving_delete BEFORE DELETE ON project_runs
WHEN (SELECT phase = 'frozen' FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_runs: the project is being moved');
END;

DROP TRIGGER project_webhooks_moving_delete;
CREATE TRIGGER project_webhooks_moving_delete BEFORE DELETE ON project_webhooks
WHEN (SELECT phase = 'frozen' FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_webhooks: the project is being moved');
END;

DROP TRIGGER project_webhook_deliveries_moving_delete;
CREATE TRIGGER project_webhook_deliveries_moving_delete BEFORE DELETE ON project_webhook_deliveries
WHEN (SELECT phase = 'frozen' FROM project_state WHERE project_id = OLD.project_id)
BEGIN
	SELECT RAISE(ABORT, 'project_webhook_deliveries: the project is being moved');
END;
