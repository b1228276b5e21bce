-- +goose Up

-- counted_since is the day on which a video with counts got another account, or on which a stopped video was tracked again. Earlier rows of
-- account_days can lack the video. counted_since is NULL if neither has happened since this migration.
ALTER TABLE videos ADD COLUMN counted_since text;
-- first_day is the day of the earliest point that the weekly point replaces. It is NULL if this day is unknown.
ALTER TABLE snapshots_weekly ADD COLUMN first_day text;

-- +goose Down
ALTER TABLE snapshots_weekly DROP COLUMN first_day;
ALTER TABLE videos DROP COLUMN counted_since;
