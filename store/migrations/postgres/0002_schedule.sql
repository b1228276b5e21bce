-- +goose Up

-- The column pace says how fast the counts of a target change. The column turn is the target's place in the order of the interactive lane: targets
-- for whose fetch a user waits. The target with the lowest turn is fetched first.
ALTER TABLE fetch_targets ADD COLUMN pace smallint NOT NULL DEFAULT 0;
ALTER TABLE fetch_targets ADD COLUMN turn bigint NOT NULL DEFAULT 0;

-- The table org_turns has the highest value of the column turn that an organisation's targets have had in the interactive lane, for each platform and kind.
CREATE TABLE org_turns (
  source          text   NOT NULL,
  kind            text   NOT NULL,
  organisation_id uuid   NOT NULL,
  turn            bigint NOT NULL,
  PRIMARY KEY (source, kind, organisation_id)
);

-- The table jobs has the periodic jobs. A process claims a job by moving next_at ahead, so that only one process runs the job.
CREATE TABLE jobs (
  name    text   NOT NULL PRIMARY KEY,
  next_at bigint NOT NULL,
  token   uuid
);

-- In a row of account_days, fetched_at and source are the time and the source of the account's last fetch on that day.
ALTER TABLE account_days ADD COLUMN fetched_at bigint;
ALTER TABLE account_days ADD COLUMN source text;

-- +goose Down
ALTER TABLE account_days DROP COLUMN source;
ALTER TABLE account_days DROP COLUMN fetched_at;
DROP TABLE jobs;
DROP TABLE org_turns;
ALTER TABLE fetch_targets DROP COLUMN turn;
ALTER TABLE fetch_targets DROP COLUMN pace;
