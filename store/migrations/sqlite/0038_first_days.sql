-- +goose Up

-- counted_since is the first day from which the rows of account_days surely include the video. It is set if the video gets another account or is
-- tracked again. It is NULL if the rows include the video from its first day.
ALTER TABLE videos ADD COLUMN counted_since text;
-- first_day is the day of the earliest point that the weekly point replaces. It is NULL if this day is unknown.
ALTER TABLE snapshots_weekly ADD COLUMN first_day text;

-- +goose Down
ALTER TABLE snapshots_weekly DROP COLUMN first_day;
ALTER TABLE videos DROP COLUMN counted_since;
