-- +goose Up

-- The column source_id is a source's own id of an account, if the source does not use the platform's id. Examples are the Graph API's id of an
-- Instagram account and the open_id of TikTok. Another account can use a handle later, so the id identifies the account.
ALTER TABLE accounts ADD COLUMN source_id text;
CREATE INDEX accounts_source ON accounts (organisation_id, platform, source_id) WHERE source_id IS NOT NULL;
ALTER TABLE fetch_targets ADD COLUMN source_id text;

-- +goose Down
ALTER TABLE fetch_targets DROP COLUMN source_id;
DROP INDEX accounts_source;
ALTER TABLE accounts DROP COLUMN source_id;
