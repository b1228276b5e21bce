-- +goose Up

-- The column version rises with every change of the organisation's data: see Org.Version in package store.
ALTER TABLE organisation_totals ADD COLUMN version integer NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE organisation_totals DROP COLUMN version;
