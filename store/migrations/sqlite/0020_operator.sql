-- +goose Up
-- operator is true if the organisation belongs to the operator of the installation. Its page of operations shows the state of collecting for
-- all organisations.
ALTER TABLE organisations ADD COLUMN operator boolean NOT NULL DEFAULT false;

-- +goose Down
ALTER TABLE organisations DROP COLUMN operator;
