-- +goose Up
-- How often in a row sources said of a target that it is not there, or not to be shown, and which of the two. Failures that say
-- nothing of the target are counted by attempts alone, so that an outage confirms nothing.
ALTER TABLE fetch_targets ADD COLUMN refused_as text NOT NULL DEFAULT '';
ALTER TABLE fetch_targets ADD COLUMN refusals integer NOT NULL DEFAULT 0;
UPDATE fetch_targets SET refused_as = 'gone', refusals = attempts WHERE state = 'gone';

-- +goose Down
ALTER TABLE fetch_targets DROP COLUMN refusals;
ALTER TABLE fetch_targets DROP COLUMN refused_as;
