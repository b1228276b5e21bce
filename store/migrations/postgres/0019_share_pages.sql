-- +goose Up
-- One row for each hash of a collection. The hash is in the URL of the share page and does not tell the organisation, by which collections are stored.
CREATE TABLE share_pages (
  hash            text COLLATE "C" NOT NULL PRIMARY KEY,
  organisation_id uuid NOT NULL,
  collection_id   uuid NOT NULL
);
INSERT INTO share_pages (hash, organisation_id, collection_id) SELECT hash, organisation_id, id FROM collections WHERE hash IS NOT NULL;

-- +goose Down
DROP TABLE share_pages;
