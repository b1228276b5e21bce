-- +goose Up

-- The table share_pages has one row for each hash of a collection. The key of a collection contains its organisation, but the URL of the share page
-- contains only the hash. The server reads the organisation and the collection of a hash from this table.
CREATE TABLE share_pages (
  hash            text NOT NULL PRIMARY KEY,
  organisation_id text NOT NULL,
  collection_id   text NOT NULL
);
INSERT INTO share_pages (hash, organisation_id, collection_id) SELECT hash, organisation_id, id FROM collections WHERE hash IS NOT NULL;

-- +goose Down
DROP TABLE share_pages;
