-- +goose Up

-- The column operator is true if the organisation belongs to the operator of the installation. The dashboard of this organisation has the page
-- Operations. This page shows the state of the queue and of the sources for all organisations.
ALTER TABLE organisations ADD COLUMN operator boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE organisations DROP COLUMN operator;
