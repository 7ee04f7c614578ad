-- Webhooks: custody of sealed secrets, the ledger of deliveries, and attempts that were refused
-- (spec webhooks 10).

CREATE TABLE project_webhooks (
	webhook_id TEXT PRIMARY KEY NOT NULL
	    CHECK (length(webhook_id) = 26 AND webhook_id GLOB 'whk_*' AND substr(webhook_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	project_id TEXT NOT NULL REFERENCES project_state (project_id) ON DELETE CASCADE,
	provider TEXT NOT NULL CHECK (provider IN ('github', 'gitlab', 'gitea')),
	enabled INTEGER NOT NULL CHECK (enabled IN (0, 1)),
	config_json TEXT CHECK (config_json GLOB '{"instanceUrl":"?*"}'
	    AND length(CAST(config_json AS BLOB)) <= 4096),
	secret_ciphertext TEXT NOT NULL CHECK (secret_ciphertext <> ''),
	secret_nonce TEXT NOT NULL CHECK (secret_nonce <> ''),
	secret_key_version INTEGER NOT NULL CHECK (secret_key_version >= 1),
	created_at INTEGER NOT NULL,
	updated_at INTEGER NOT NULL CHECK (updated_at >= created_at),
	UNIQUE (project_id, provider),
	CHECK (provider <> 'github' OR config_json IS NULL),
	CHECK (provider <> 'gitea' OR config_json IS NOT NULL)
) STRICT;

-- updated_at is the version that a delivery was verified against.
CREATE TRIGGER project_webhooks_grows BEFORE UPDATE ON project_webhooks
WHEN NEW.updated_at < OLD.updated_at OR NEW.webhook_id <> OLD.webhook_id
    OR NEW.project_id <> OLD.project_id OR NEW.provider <> OLD.provider
    OR NEW.created_at <> OLD.created_at
BEGIN
	SELECT RAISE(ABORT, 'project_webhooks: the version only grows, and what it is of stays');
END;

-- They belong to project and provider, not to the webhook, and outlive it.
CREATE TABLE project_webhook_deliveries (
	project_id TEXT NOT NULL REFERENCES project_state (project_id) ON DELETE CASCADE,
	provider TEXT NOT NULL CHECK (provider IN ('github', 'gitlab', 'gitea')),
	delivery_id TEXT NOT NULL
	    CHECK (length(delivery_id) BETWEEN 1 AND 256 AND delivery_id NOT GLOB '*[^ -~]*'),
	event_kind TEXT NOT NULL CHECK (event_kind IN ('push', 'ping', 'other')),
	event_name TEXT NOT NULL CHECK (length(CAST(event_name AS BLOB)) BETWEEN 1 AND 128),
	outcome TEXT NOT NULL CHECK (outcome IN ('accepted', 'ignored_ping', 'ignored_event',
	    'ignored_branch', 'queue_full')),
	reason TEXT NOT NULL CHECK (length(CAST(reason AS BLOB)) BETWEEN 1 AND 300),
	repository_url TEXT NOT NULL CHECK (length(CAST(repository_url AS BLOB)) BETWEEN 1 AND 2048),
	ref TEXT CHECK (length(CAST(ref AS BLOB)) BETWEEN 1 AND 255),
	branch TEXT CHECK (length(CAST(branch AS BLOB)) BETWEEN 1 AND 255),
	commit_sha TEXT CHECK (length(commit_sha) BETWEEN 7 AND 64 AND commit_sha NOT GLOB '*[^0-9a-f]*'),
	before_sha TEXT CHECK (length(before_sha) BETWEEN 7 AND 64 AND before_sha NOT GLOB '*[^0-9a-f]*'),
	body_sha256 BLOB NOT NULL CHECK (length(body_sha256) = 32),
	body_bytes INTEGER NOT NULL CHECK (body_bytes >= 0),
	run_id TEXT
	    CHECK (length(run_id) = 26 AND run_id GLOB 'run_*' AND substr(run_id, 5) NOT GLOB '*[^0-9A-Za-z]*'),
	received_at INTEGER NOT NULL,
	PRIMARY KEY (project_id, provider, delivery_id),
	CHECK ((run_id IS NOT NULL) = (outcome = 'accepted')),
	CHECK (outcome NOT IN ('accepted', 'queue_full')
	    OR (event_kind = 'push' AND branch IS NOT NULL AND commit_sha IS NOT NULL))
) STRICT;

CREATE INDEX project_webhook_deliveries_received ON project_webhook_deliveries (received_at);
CREATE INDEX project_webhook_deliveries_newest
    ON project_webhook_deliveries (project_id, provider, received_at);

-- What was decided stays; one that met a full queue may be tried again with the same body.
CREATE TRIGGER project_webhook_deliveries_stays BEFORE UPDATE ON project_webhook_deliveries
WHEN OLD.outcome <> 'queue_full' OR NEW.outcome NOT IN ('queue_full', 'accepted')
    OR NEW.project_id <> OLD.project_id OR NEW.provider <> OLD.provider
    OR NEW.delivery_id <> OLD.delivery_id OR NEW.body_sha256 <> OLD.body_sha256
    OR NEW.body_bytes <> OLD.body_bytes
    OR (NEW.outcome = 'queue_full' AND NEW.reason <> OLD.reason)
BEGIN
	SELECT RAISE(ABORT, 'project_webhook_deliveries: what was decided stays');
END;

-- seq grows with each attempt that is added to a row: the greatest is the newest.
CREATE TABLE project_webhook_refusals (
	webhook_id TEXT NOT NULL REFERENCES project_webhooks (webhook_id) ON DELETE CASCADE,
	seq INTEGER NOT NULL CHECK (seq >= 1),
	at INTEGER NOT NULL,
	reason TEXT NOT NULL CHECK (reason IN ('unsupported_media_type', 'too_large', 'timeout',
	    'missing_header', 'signature_mismatch', 'bad_json', 'bad_payload', 'repo_mismatch',
	    'delivery_conflict', 'stale_verification')),
	hint TEXT CHECK (length(CAST(hint AS BLOB)) BETWEEN 1 AND 1024),
	event_name TEXT CHECK (length(CAST(event_name AS BLOB)) <= 512),
	delivery_id TEXT CHECK (length(CAST(delivery_id AS BLOB)) <= 512),
	body_bytes INTEGER CHECK (body_bytes >= 0),
	client_address TEXT NOT NULL CHECK (length(CAST(client_address AS BLOB)) BETWEEN 1 AND 64),
	count INTEGER NOT NULL CHECK (count >= 1),
	PRIMARY KEY (webhook_id, seq)
) STRICT, WITHOUT ROWID;
