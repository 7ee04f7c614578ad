-- Whether the index is whole, and the work of filling it from the shards (spec project 13, 18).

CREATE TABLE index_state (
	one INTEGER PRIMARY KEY NOT NULL CHECK (one = 1),
	complete INTEGER NOT NULL CHECK (complete IN (0, 1)),
	-- Counts the readings of all shards; a project carries the number of the one that met it last.
	pass INTEGER NOT NULL CHECK (pass >= 0),
	-- The newest rebuild; it goes on until finished_at is there.
	job_id TEXT CHECK (length(job_id) = 32 AND job_id NOT GLOB '*[^0-9a-f]*'),
	reason TEXT CHECK (reason IN ('new_store', 'restored', 'empty', 'asked')),
	started_at INTEGER,
	finished_at INTEGER,
	projects INTEGER NOT NULL CHECK (projects >= 0),
	runs INTEGER NOT NULL CHECK (runs >= 0),
	removed INTEGER NOT NULL CHECK (removed >= 0),
	CHECK ((job_id IS NULL) = (reason IS NULL)),
	CHECK ((job_id IS NULL) = (started_at IS NULL)),
	CHECK (finished_at IS NULL OR job_id IS NOT NULL)
) STRICT;

-- A store that has been in use has a whole index; beside a new one shards may have more.
INSERT INTO index_state (one, complete, pass, projects, runs, removed)
SELECT 1, EXISTS (SELECT 1 FROM users) OR EXISTS (SELECT 1 FROM project_index), 0, 0, 0, 0;

ALTER TABLE project_index ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;

-- Projects that were removed while a rebuild went on: a page that was read before does not bring
-- them back.
CREATE TABLE index_removed (
	project_id TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;
