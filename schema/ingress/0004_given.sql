-- A name that is kept for a project which is being given to another owner: the row is never
-- confirmed, and goes when the shard of that project tells of its new owner.

ALTER TABLE project_index ADD COLUMN kept_for TEXT;
