-- supervisor.db: which processes exist, which ended and who has still to be told.

-- A process is here before it runs an instruction of its own, and until its end is recorded.
CREATE TABLE processes (
	spawn_id TEXT PRIMARY KEY NOT NULL CHECK (length(spawn_id) = 32 AND spawn_id NOT GLOB '*[^0-9a-f]*'),
	kind TEXT NOT NULL CHECK (kind IN ('resident', 'runner', 'serve')),
	address TEXT NOT NULL,
	run_id TEXT,
	project_id TEXT,
	shard INTEGER,
	attempt INTEGER,
	pid INTEGER NOT NULL CHECK (pid > 1),
	start_ticks INTEGER NOT NULL,
	boot_id TEXT NOT NULL CHECK (length(boot_id) = 36),
	spawned_at INTEGER NOT NULL,
	CHECK ((kind = 'resident') = (run_id IS NULL)),
	CHECK ((kind = 'runner') = (attempt IS NOT NULL)),
	CHECK ((kind = 'runner') = (project_id IS NOT NULL AND shard IS NOT NULL))
) STRICT;

-- At most one process of a kind for a run, and one for a resident address.
CREATE UNIQUE INDEX processes_by_address ON processes (address, kind);

-- Ends of runners that their shard has not confirmed yet (project.runnerExited).
CREATE TABLE run_exits (
	spawn_id TEXT PRIMARY KEY NOT NULL,
	run_id TEXT NOT NULL,
	project_id TEXT NOT NULL,
	shard INTEGER NOT NULL,
	attempt INTEGER NOT NULL,
	how TEXT NOT NULL CHECK (how GLOB '{*}'),
	ended_at INTEGER NOT NULL
) STRICT;

CREATE INDEX run_exits_by_run ON run_exits (run_id);

-- When the last runner of a run ended: the start of its store's retention.
CREATE TABLE ended_runs (
	run_id TEXT PRIMARY KEY NOT NULL,
	project_id TEXT NOT NULL,
	ended_at INTEGER NOT NULL
) STRICT;

CREATE INDEX ended_runs_by_time ON ended_runs (ended_at);

-- Starts, ends and restarts, the newest thousand.
CREATE TABLE history (
	id INTEGER PRIMARY KEY AUTOINCREMENT,
	at INTEGER NOT NULL,
	address TEXT NOT NULL,
	event TEXT NOT NULL CHECK (event IN
	    ('started', 'ready', 'exited', 'restarting', 'failing', 'recovered', 'stopped')),
	pid INTEGER,
	uptime_ms INTEGER,
	exit_status INTEGER,
	signal INTEGER,
	reason TEXT
) STRICT;
