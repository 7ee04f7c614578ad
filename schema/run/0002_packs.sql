-- Chunks whose text lies in log.zst alone, in recorded frames: what a run that prints faster
-- than rows can be written leaves of them.  One row is a run of chunks of one stream, step
-- and time; in order of seq these rows and those of run_logs are the hot tail.

CREATE TABLE log_packs (
	last_seq INTEGER PRIMARY KEY,
	first_seq INTEGER NOT NULL CHECK (first_seq >= 1 AND first_seq <= last_seq),
	first_byte INTEGER NOT NULL CHECK (first_byte >= 0), -- of the first chunk in the log
	text_size INTEGER NOT NULL CHECK (text_size >= 1),
	stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr', 'system')),
	step INTEGER CHECK (step BETWEEN 1 AND 20),
	created_at INTEGER NOT NULL,
	sizes BLOB NOT NULL,                                 -- of each chunk, two bytes, high first
	CHECK (length(sizes) = 2 * (last_seq - first_seq + 1) AND length(sizes) <= 256)
) STRICT;

-- Null when there is neither row nor pack.
CREATE VIEW log_newest AS
SELECT max(seq) AS seq FROM
    (SELECT max(seq) AS seq FROM run_logs UNION ALL SELECT max(last_seq) FROM log_packs);

DROP TRIGGER log_is_contiguous;
CREATE TRIGGER log_is_contiguous BEFORE INSERT ON run_logs
WHEN NEW.seq <> coalesce((SELECT seq + 1 FROM log_newest), (SELECT next_seq FROM log_state))
    OR (SELECT status FROM run_meta) IN ('passed', 'failed', 'canceled')
BEGIN
	SELECT RAISE(ABORT, 'log lines are contiguous and none follows the end of the run');
END;

CREATE TRIGGER packs_are_contiguous BEFORE INSERT ON log_packs
WHEN NEW.first_seq <> coalesce((SELECT seq + 1 FROM log_newest), (SELECT next_seq FROM log_state))
    OR (SELECT status FROM run_meta) IN ('passed', 'failed', 'canceled')
BEGIN
	SELECT RAISE(ABORT, 'log lines are contiguous and none follows the end of the run');
END;

CREATE TRIGGER packs_are_archived BEFORE INSERT ON log_packs
WHEN NEW.first_byte + NEW.text_size > coalesce(
	(SELECT first_byte + text_size FROM log_frames ORDER BY first_byte DESC LIMIT 1), 0)
BEGIN
	SELECT RAISE(ABORT, 'a chunk without a row has its text in a recorded frame');
END;

CREATE TRIGGER packs_never_change BEFORE UPDATE ON log_packs
BEGIN
	SELECT RAISE(ABORT, 'a log line never changes');
END;

DROP TRIGGER log_drops_the_oldest;
CREATE TRIGGER log_drops_the_oldest BEFORE DELETE ON run_logs
WHEN EXISTS (SELECT 1 FROM run_logs WHERE seq < OLD.seq)
    OR EXISTS (SELECT 1 FROM log_packs WHERE last_seq < OLD.seq)
BEGIN
	SELECT RAISE(ABORT, 'the oldest log line goes first');
END;

CREATE TRIGGER packs_drop_the_oldest BEFORE DELETE ON log_packs
WHEN EXISTS (SELECT 1 FROM run_logs WHERE seq < OLD.first_seq)
    OR EXISTS (SELECT 1 FROM log_packs WHERE last_seq < OLD.last_seq)
BEGIN
	SELECT RAISE(ABORT, 'the oldest log line goes first');
END;
