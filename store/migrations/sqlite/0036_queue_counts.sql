-- +goose Up

-- The status page of operators shows counts of all targets of the queue. This index contains every column that the counts need, in the order of
-- their groups. Without the index, SQLite would sort all targets.
CREATE INDEX fetch_targets_counts ON fetch_targets (bucket, source, kind, lane, state, status, fetched_at, requested_at, attempts, next_at, route);

-- +goose Down
DROP INDEX fetch_targets_counts;
