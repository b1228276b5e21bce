-- +goose Up
-- What a source calls an account where that is not the platform's own id: the Graph API's id of an Instagram account,
-- TikTok's open_id. Handles change hands, so that whoever is asked for by a handle is known again by it.
ALTER TABLE accounts ADD COLUMN source_id text;
CREATE INDEX accounts_source ON accounts (organisation_id, platform, source_id) WHERE source_id IS NOT NULL;
ALTER TABLE fetch_targets ADD COLUMN source_id text;

-- +goose Down
ALTER TABLE fetch_targets DROP COLUMN source_id;
DROP INDEX accounts_source;
ALTER TABLE accounts DROP COLUMN source_id;
