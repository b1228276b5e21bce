-- +goose Up
-- sources are the sources of the collector with their budgets, as JSON. Each collector writes them with its heartbeat.
ALTER TABLE collectors ADD COLUMN sources text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE collectors DROP COLUMN sources;
