-- +goose Up
-- A source's credential that the platform exchanges for a new one at each use. It is sealed by the source.
CREATE TABLE source_tokens (
  source     text   NOT NULL,
  account    text   NOT NULL,
  sealed     bytea  NOT NULL,
  version    bigint NOT NULL,
  held_until bigint NOT NULL,
  updated_at bigint NOT NULL,
  PRIMARY KEY (source, account)
);

-- +goose Down
DROP TABLE source_tokens;
