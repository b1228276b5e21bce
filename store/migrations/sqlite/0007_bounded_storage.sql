-- +goose Up

-- The column bytes is the size of the row, which counts toward the organisation's limit. The column encoding is the encoding of the column body:
-- '' means plain, 'zstd' means compressed.
ALTER TABLE idempotency_keys ADD COLUMN bytes integer NOT NULL DEFAULT 0;
ALTER TABLE idempotency_keys ADD COLUMN encoding text NOT NULL DEFAULT '';
UPDATE idempotency_keys SET bytes = 400 + 2 * length(key) + COALESCE(length(body), 0);
-- The index contains the column bytes. So the database can add up this column without reading the bodies.
DROP INDEX idempotency_keys_created;
CREATE INDEX idempotency_keys_created ON idempotency_keys (organisation_id, created_at, bytes);

-- The table idempotency_usage has the sum of the column bytes of idempotency_keys for each organisation.
CREATE TABLE idempotency_usage (
  organisation_id text    NOT NULL PRIMARY KEY REFERENCES organisations (id) ON DELETE CASCADE,
  bytes           integer NOT NULL
);
INSERT INTO idempotency_usage (organisation_id, bytes) SELECT organisation_id, SUM(bytes) FROM idempotency_keys GROUP BY organisation_id;

-- The column updated_at is when the count of a quota window last changed. The name of a window does not show how old the window is, so updated_at
-- is needed to find old windows.
ALTER TABLE quota_windows ADD COLUMN updated_at integer NOT NULL DEFAULT 0;
UPDATE quota_windows SET updated_at = CAST(strftime('%s', 'now') AS integer) * 1000000;

CREATE INDEX short_links_resolved ON short_links (resolved_at);

-- The table clock_state has the time of the clock by which rows are deleted, as a collector last wrote it. It also has the time since which this
-- clock has run without a jump.
CREATE TABLE clock_state (
  name         text    NOT NULL PRIMARY KEY,
  steady_since integer NOT NULL,
  seen_at      integer NOT NULL
);

-- +goose Down
DROP TABLE clock_state;
DROP INDEX short_links_resolved;
ALTER TABLE quota_windows DROP COLUMN updated_at;
DROP TABLE idempotency_usage;
DELETE FROM idempotency_keys WHERE encoding <> '';
DROP INDEX idempotency_keys_created;
CREATE INDEX idempotency_keys_created ON idempotency_keys (organisation_id, created_at);
ALTER TABLE idempotency_keys DROP COLUMN encoding;
ALTER TABLE idempotency_keys DROP COLUMN bytes;
