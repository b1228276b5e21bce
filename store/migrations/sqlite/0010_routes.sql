-- +goose Up

-- The column route is the source that is called next for a target. The column answers has the answers of the sources that were called before, as
-- JSON that the collector writes. The column asked_by is the organisation that requested the target and waits for it in the interactive lane.
ALTER TABLE fetch_targets ADD COLUMN route text NOT NULL DEFAULT '';
ALTER TABLE fetch_targets ADD COLUMN answers text;
ALTER TABLE fetch_targets ADD COLUMN asked_by text;
DROP INDEX fetch_targets_due;
CREATE INDEX fetch_targets_due ON fetch_targets (bucket, route, lane, next_at, kind);
CREATE INDEX fetch_targets_waiting ON fetch_targets (bucket, route, turn, next_at) WHERE lane = 0;

-- The table fetch_routes has the first source to call for the targets of each platform and kind. Collectors write it when they start.
CREATE TABLE fetch_routes (
  source text NOT NULL,
  kind   text NOT NULL,
  route  text NOT NULL,
  PRIMARY KEY (source, kind)
);

-- Each source has its own queue. So the table org_turns stores, for each source and organisation, the highest turn that a target of the
-- organisation has had.
DROP TABLE org_turns;
CREATE TABLE org_turns (
  route           text   NOT NULL,
  organisation_id text   NOT NULL,
  turn            integer NOT NULL,
  PRIMARY KEY (route, organisation_id)
);

-- +goose Down
DROP TABLE org_turns;
CREATE TABLE org_turns (
  source          text   NOT NULL,
  kind            text   NOT NULL,
  organisation_id text   NOT NULL,
  turn            integer NOT NULL,
  PRIMARY KEY (source, kind, organisation_id)
);
DROP TABLE fetch_routes;
DROP INDEX fetch_targets_waiting;
DROP INDEX fetch_targets_due;
CREATE INDEX fetch_targets_due ON fetch_targets (bucket, source, kind, lane, next_at);
ALTER TABLE fetch_targets DROP COLUMN asked_by;
ALTER TABLE fetch_targets DROP COLUMN answers;
ALTER TABLE fetch_targets DROP COLUMN route;
