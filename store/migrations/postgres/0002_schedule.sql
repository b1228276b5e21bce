-- +goose Up

-- How a target's numbers move (store.Pace), and its place among those that somebody waits for.
ALTER TABLE fetch_targets ADD COLUMN pace smallint NOT NULL DEFAULT 0;
ALTER TABLE fetch_targets ADD COLUMN turn bigint NOT NULL DEFAULT 0;

-- The last turn that an organisation was given, of a platform and kind.
CREATE TABLE org_turns (
  source          text   NOT NULL,
  kind            text   NOT NULL,
  organisation_id uuid   NOT NULL,
  turn            bigint NOT NULL,
  PRIMARY KEY (source, kind, organisation_id)
);

-- What one process alone does now and then: claimed like a target, by moving next_at ahead.
CREATE TABLE jobs (
  name    text   NOT NULL PRIMARY KEY,
  next_at bigint NOT NULL,
  token   uuid
);

-- Where an account's numbers of a day come from.
ALTER TABLE account_days ADD COLUMN fetched_at bigint;
ALTER TABLE account_days ADD COLUMN source text;

-- +goose Down
ALTER TABLE account_days DROP COLUMN source;
ALTER TABLE account_days DROP COLUMN fetched_at;
DROP TABLE jobs;
DROP TABLE org_turns;
ALTER TABLE fetch_targets DROP COLUMN turn;
ALTER TABLE fetch_targets DROP COLUMN pace;
