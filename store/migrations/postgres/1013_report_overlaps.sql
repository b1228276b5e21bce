-- +goose Up

-- gained_days says on which days each video of a report gained views, and first_gain_date is the first of these days. overlaps_json names the earlier reports
-- that count the same views. All three are null for older reports. See the file reportoverlaps.go of the package store.
ALTER TABLE reports ADD COLUMN gained_days bytea;
ALTER TABLE reports ADD COLUMN first_gain_date date;
ALTER TABLE reports ADD COLUMN overlaps_json text;

-- +goose Down
ALTER TABLE reports DROP COLUMN overlaps_json;
ALTER TABLE reports DROP COLUMN first_gain_date;
ALTER TABLE reports DROP COLUMN gained_days;
