-- +goose Up

-- The last stored counts of a video, next to the column views. With them, the collector recognises an implausible fall of a count. They are NULL
-- until the next fetch after this migration, and for accounts.
ALTER TABLE fetch_targets ADD COLUMN likes bigint;
ALTER TABLE fetch_targets ADD COLUMN comments bigint;
ALTER TABLE fetch_targets ADD COLUMN shares bigint;
ALTER TABLE fetch_targets ADD COLUMN bookmarks bigint;

-- +goose Down
ALTER TABLE fetch_targets DROP COLUMN bookmarks;
ALTER TABLE fetch_targets DROP COLUMN shares;
ALTER TABLE fetch_targets DROP COLUMN comments;
ALTER TABLE fetch_targets DROP COLUMN likes;
