-- +goose Up

-- When a source or budget was paused for the first time since its last successful call. It is NULL for pauses that began before this migration.
ALTER TABLE source_pauses ADD COLUMN paused_since bigint;

-- True if the last attempt to send to the webhook got no response. It is in this table, so that one statement can count the webhooks of all organisations.
ALTER TABLE webhook_queue ADD COLUMN unreachable boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE webhook_queue DROP COLUMN unreachable;
ALTER TABLE source_pauses DROP COLUMN paused_since;
