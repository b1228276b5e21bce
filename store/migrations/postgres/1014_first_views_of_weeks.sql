-- +goose Up

-- first_day_views are the views of the point of first_day. They are NULL if they are unknown, or if an earlier version of ReelTally wrote the weekly point.
ALTER TABLE snapshots_weekly ADD COLUMN first_day_views bigint;

-- +goose Down
ALTER TABLE snapshots_weekly DROP COLUMN first_day_views;
