-- +goose Up

-- The index has the column route after the other columns by which the status page groups the targets. So SQLite counts the last fetches of each source
-- without sorting all targets.
DROP INDEX fetch_targets_counts;
CREATE INDEX fetch_targets_counts ON fetch_targets (bucket, source, kind, lane, state, status, route, fetched_at, requested_at, attempts, next_at);

-- +goose Down
DROP INDEX fetch_targets_counts;
CREATE INDEX fetch_targets_counts ON fetch_targets (bucket, source, kind, lane, state, status, fetched_at, requested_at, attempts, next_at, route);
