-- +goose Up

-- The table source_tokens has the refresh tokens of sources. The platform replaces a refresh token at each use. The source encrypts its token.
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
