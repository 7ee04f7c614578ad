-- Projects that were removed here.  Whoever gave one to this shard keeps saying so, and what was
-- removed is told by this from what was lost.

CREATE TABLE removed_projects (
	project_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(project_id) = 26 AND project_id GLOB 'prj_*' AND substr(project_id, 5) NOT GLOB '*[^0-9A-Za-z]*')
) STRICT, WITHOUT ROWID;

CREATE TRIGGER project_state_removed AFTER DELETE ON project_state
WHEN OLD.phase = 'removing'
BEGIN
	INSERT OR IGNORE INTO removed_projects (project_id) VALUES (OLD.project_id);
END;
