-- +goose Up

-- When the deletion of the organisation began. It is null for other organisations. See Store.DeleteOrganisation.
ALTER TABLE organisations ADD COLUMN deleting_since bigint;

-- +goose Down
ALTER TABLE organisations DROP COLUMN deleting_since;
