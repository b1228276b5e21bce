-- +goose Up
ALTER TABLE collections ADD COLUMN share_expires_at bigint; -- when the share page closes; null if it stays open
ALTER TABLE share_pages ADD COLUMN opened_at bigint;        -- when a visitor last opened the page, accurate to ten minutes; null if the page was never opened

-- +goose Down
ALTER TABLE share_pages DROP COLUMN opened_at;
ALTER TABLE collections DROP COLUMN share_expires_at;
