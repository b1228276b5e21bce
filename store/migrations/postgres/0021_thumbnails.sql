-- +goose Up

-- The column thumbnail_url is the address of the video's picture at the platform, as the source gave it last.
ALTER TABLE videos ADD COLUMN thumbnail_url text;

-- One row for each video whose source gave the address of a picture. All organisations that track the video share the row. The column image is a
-- small JPEG copy of the picture, or NULL until a collector has fetched the picture. next_at is when a collector will next fetch the picture, or NULL
-- if no further fetch is planned.
CREATE TABLE thumbnails (
  platform    text    NOT NULL,
  external_id text    NOT NULL,
  url         text    NOT NULL,
  image       bytea,
  attempts    integer NOT NULL,
  next_at     bigint,
  PRIMARY KEY (platform, external_id)
);
CREATE INDEX thumbnails_due ON thumbnails (next_at) WHERE next_at IS NOT NULL;

-- +goose Down
DROP TABLE thumbnails;
ALTER TABLE videos DROP COLUMN thumbnail_url;
