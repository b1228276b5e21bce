-- +goose Up

-- The length of the longest list of existing videos that successful fetches have requested in ended trackings of an account. Lists of the present tracking
-- do not count. The column is NULL until an account that was fetched is tracked again.
ALTER TABLE accounts ADD COLUMN listed_depth integer;

-- +goose Down
ALTER TABLE accounts DROP COLUMN listed_depth;
