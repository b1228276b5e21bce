-- +goose Up

-- One row for each signed-in browser. The column hash is the SHA-256 of the secret in the browser's cookie. Requests of the session have the
-- rights of the token token_id.
CREATE TABLE sessions (
  hash       bytea  NOT NULL PRIMARY KEY,
  token_id   uuid   NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX sessions_expiry ON sessions (expires_at);

-- One row for each login link that was not used yet. The column hash is the SHA-256 of the secret in the link. Requests of the session that the
-- link starts have the rights of the token token_id.
CREATE TABLE login_links (
  hash       bytea  NOT NULL PRIMARY KEY,
  token_id   uuid   NOT NULL,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);

-- +goose Down
DROP TABLE login_links;
DROP TABLE sessions;
