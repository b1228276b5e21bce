-- +goose Up

-- The column added_at is when the hashtag was added to the collection. In rows that are older than this migration, it is when the collection was
-- created.
ALTER TABLE collection_hashtags ADD COLUMN added_at bigint NOT NULL DEFAULT 0;
UPDATE collection_hashtags SET added_at = (SELECT c.created_at FROM collections c
  WHERE c.organisation_id = collection_hashtags.organisation_id AND c.id = collection_hashtags.collection_id);

-- One row for each report, whose numbers never change. The column content is the compressed document, and checksum is the SHA-256 of the document.
-- If a collection is deleted, its reports stay. So collection_id is not a foreign key.
CREATE TABLE reports (
  organisation_id  uuid    NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id               uuid    NOT NULL,
  number           bigint  NOT NULL,
  collection_id    uuid    NOT NULL,
  collection_name  text    NOT NULL,
  include_children boolean NOT NULL,
  start_date       date    NOT NULL,
  end_date         date    NOT NULL,
  created_by       uuid    NOT NULL,
  created_at       bigint  NOT NULL,
  checksum         text    NOT NULL,
  bytes            bigint  NOT NULL,
  content          bytea   NOT NULL,
  PRIMARY KEY (organisation_id, id)
);
CREATE UNIQUE INDEX reports_number ON reports (organisation_id, number);
CREATE INDEX reports_collection ON reports (organisation_id, collection_id, number);

-- +goose Down
DROP TABLE reports;
ALTER TABLE collection_hashtags DROP COLUMN added_at;
