-- +goose Up

-- How often a share page was opened again after it was closed. It is part of the signature of a visitor's pass, so a pass ends when the page is closed.
ALTER TABLE share_pages ADD COLUMN reopened integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE share_pages DROP COLUMN reopened;
