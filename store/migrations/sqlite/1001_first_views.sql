-- +goose Up

-- The first views of a video are the views at the end of the first day on which they were known. The views minus the first views are the views that
-- the video has gained since then. first_views is NULL if the views are unknown, or were known before this migration.
ALTER TABLE videos ADD COLUMN first_views integer;
-- The sum of the first views of all videos of the organisation.
ALTER TABLE organisation_totals ADD COLUMN first_views integer NOT NULL DEFAULT 0;
-- This sum at the end of the day. It is NULL for days before this migration.
ALTER TABLE organisation_days ADD COLUMN first_views integer;

-- +goose Down
ALTER TABLE organisation_days DROP COLUMN first_views;
ALTER TABLE organisation_totals DROP COLUMN first_views;
ALTER TABLE videos DROP COLUMN first_views;
