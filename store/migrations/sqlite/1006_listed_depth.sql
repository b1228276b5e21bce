-- +goose Up

-- How many of an account's newest existing videos its earlier trackings have requested from a source, at most. It leaves out the present tracking. It is NULL until an account
-- that was fetched is tracked again.
ALTER TABLE accounts ADD COLUMN listed_depth integer;

-- +goose Down
ALTER TABLE accounts DROP COLUMN listed_depth;
