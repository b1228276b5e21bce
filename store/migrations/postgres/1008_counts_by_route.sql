-- +goose Up

-- Only SQLite has the index fetch_targets_counts, whose columns get another order.

-- +goose Down
