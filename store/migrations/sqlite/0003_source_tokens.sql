-- +goose Up
-- A source's credential that the platform exchanges for a new one at each use. It is sealed by the source.
CREATE TABLE source_tokens (
  source     text    NOT NULL,
  account    text    NOT NULL,
  sealed     blob    NOT NULL,
  version    integer NOT NULL,
  held_until integer NOT NULL,
  updated_at integer NOT NULL,
  PRIMARY KEY (source, account)
);

-- +goose Down
DROP TABLE source_tokens;
