-- +goose Up

-- Only SQLite needs an index to count the targets of the queue. PostgreSQL counts them without sorting all targets.

-- +goose Down
