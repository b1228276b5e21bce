-- +goose Up
-- refusals is the number of consecutive answers of sources that a target does not exist or is private. refused_as is which of the two
-- answers it was. Other failures are counted only in attempts, so that the outage of a source does not confirm such an answer.
ALTER TABLE fetch_targets ADD COLUMN refused_as text NOT NULL DEFAULT '';
ALTER TABLE fetch_targets ADD COLUMN refusals integer NOT NULL DEFAULT 0;
UPDATE fetch_targets SET refused_as = 'gone', refusals = attempts WHERE state = 'gone';

-- +goose Down
ALTER TABLE fetch_targets DROP COLUMN refusals;
ALTER TABLE fetch_targets DROP COLUMN refused_as;
