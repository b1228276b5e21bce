-- +goose Up

-- What the share page of a report shows. The column has the same meaning as that of collections.
ALTER TABLE reports ADD COLUMN display_settings text;

-- +goose Down
ALTER TABLE reports DROP COLUMN display_settings;
