-- +goose Up

-- The share page of a report. The columns have the same meaning as those of collections. They are who can open the page, the hash of its password,
-- the hash in its address, and when it closes.
ALTER TABLE reports ADD COLUMN access text NOT NULL DEFAULT 'private';
ALTER TABLE reports ADD COLUMN password_hash text;
ALTER TABLE reports ADD COLUMN hash text;
ALTER TABLE reports ADD COLUMN share_expires_at bigint;

-- The report to which the hash belongs. It is null if the hash belongs to the collection itself.
ALTER TABLE share_pages ADD COLUMN report_id uuid;

-- +goose Down
DELETE FROM share_pages WHERE report_id IS NOT NULL;
ALTER TABLE share_pages DROP COLUMN report_id;
ALTER TABLE reports DROP COLUMN share_expires_at;
ALTER TABLE reports DROP COLUMN hash;
ALTER TABLE reports DROP COLUMN password_hash;
ALTER TABLE reports DROP COLUMN access;
