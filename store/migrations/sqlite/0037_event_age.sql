-- +goose Up

-- Old events are found in the order of their positions, by the primary key.
DROP INDEX events_age;

-- +goose Down
CREATE INDEX events_age ON events (organisation_id, created_at, position);
