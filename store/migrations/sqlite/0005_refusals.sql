-- +goose Up

-- The column refusals is the number of consecutive answers in which sources say that a target does not exist, or that it is private. The column refused_as
-- says which of the two answers they were. Other failures, such as an outage of a source, are counted only in the column attempts. They do not
-- confirm that a target is gone or private.
ALTER TABLE fetch_targets ADD COLUMN refused_as text NOT NULL DEFAULT '';
ALTER TABLE fetch_targets ADD COLUMN refusals integer NOT NULL DEFAULT 0;
UPDATE fetch_targets SET refused_as = 'gone', refusals = attempts WHERE state = 'gone';

-- +goose Down
ALTER TABLE fetch_targets DROP COLUMN refusals;
ALTER TABLE fetch_targets DROP COLUMN refused_as;
