-- +goose Up

-- The column labels_version rises with every change of the organisation's data that can change labels: see labelCache in package store.
ALTER TABLE organisation_totals ADD COLUMN labels_version bigint NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE organisation_totals DROP COLUMN labels_version;
