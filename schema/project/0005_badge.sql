-- Whether everybody may see how the newest run of the default branch went.

ALTER TABLE project_config ADD COLUMN badge_public INTEGER NOT NULL DEFAULT 0
    CHECK (badge_public IN (0, 1));
