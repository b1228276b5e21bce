-- +goose Up

-- One row for each hash of a collection. The hash is in the URL of the share page. The key of a collection begins with its organisation, which the
-- hash does not show, so this table finds the collection of a hash.
CREATE TABLE share_pages (
  hash            text NOT NULL PRIMARY KEY,
  organisation_id text NOT NULL,
  collection_id   text NOT NULL
);
INSERT INTO share_pages (hash, organisation_id, collection_id) SELECT hash, organisation_id, id FROM collections WHERE hash IS NOT NULL;

-- +goose Down
DROP TABLE share_pages;
