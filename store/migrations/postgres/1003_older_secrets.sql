-- +goose Up

-- The secrets before previous_secret that are still valid, encrypted, as JSON. It is empty if there are none.
ALTER TABLE webhooks ADD COLUMN older_secrets text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE webhooks DROP COLUMN older_secrets;
