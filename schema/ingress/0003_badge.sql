-- Badges: whether everybody may see how the newest run of the default branch went.

ALTER TABLE project_index ADD COLUMN badge_public INTEGER NOT NULL DEFAULT 0
    CHECK (badge_public IN (0, 1));

CREATE INDEX run_index_branch ON run_index (project_id, branch, queued_at DESC, run_id DESC);
