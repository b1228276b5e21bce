-- +goose Up

-- The column sources has the sources of the collector with their budgets, as JSON. Each collector writes this column with its heartbeat.
ALTER TABLE collectors ADD COLUMN sources text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE collectors DROP COLUMN sources;
