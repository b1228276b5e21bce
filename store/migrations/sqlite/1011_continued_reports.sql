-- +goose Up

-- The id of the earlier report that a report continues. It is null if the report continues none. Reports are never deleted, so it is not a foreign key.
ALTER TABLE reports ADD COLUMN continues_report_id text;

-- +goose Down
ALTER TABLE reports DROP COLUMN continues_report_id;
