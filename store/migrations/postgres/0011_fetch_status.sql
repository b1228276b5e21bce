-- +goose Up

-- The column fetch_status says whether a video or account can be fetched: see FetchStatus in package queue. It is '' for an account that is stored
-- only because videos are linked to it. The column fetch_reason explains the status. It is '' if the status needs no explanation.
ALTER TABLE videos ADD COLUMN fetch_status text NOT NULL DEFAULT 'pending';
ALTER TABLE videos ADD COLUMN fetch_reason text NOT NULL DEFAULT '';
ALTER TABLE videos ADD COLUMN last_attempt_at bigint;
ALTER TABLE videos ADD COLUMN next_fetch_at bigint;
ALTER TABLE accounts ADD COLUMN fetch_status text NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN fetch_reason text NOT NULL DEFAULT '';
ALTER TABLE accounts ADD COLUMN last_attempt_at bigint;
ALTER TABLE accounts ADD COLUMN next_fetch_at bigint;

-- The column status is the fetch status of a target, for operators. Before this migration, a target does not say whether a refused video is
-- private or restricted.
ALTER TABLE fetch_targets ADD COLUMN status text NOT NULL DEFAULT 'pending';
UPDATE fetch_targets SET status = CASE
  WHEN state = 'gone' THEN 'gone'
  WHEN state = 'parked' AND refusals = 0 AND attempts = 0 THEN 'unsupported'
  WHEN attempts > 1 THEN 'failing'
  WHEN fetched_at IS NOT NULL THEN 'ok'
  ELSE 'pending' END;

UPDATE videos SET last_attempt_at = latest_updated_at,
  fetch_status = CASE WHEN removed THEN 'stopped' WHEN latest_updated_at IS NOT NULL THEN 'ok' ELSE 'pending' END;
UPDATE accounts SET last_attempt_at = checked_at,
  fetch_status = CASE WHEN removed THEN 'stopped' WHEN NOT tracked THEN '' WHEN checked_at IS NOT NULL THEN 'ok' ELSE 'pending' END;
UPDATE videos SET next_fetch_at = t.next_at, fetch_status = CASE
    WHEN t.status IN ('gone', 'unsupported') THEN t.status
    WHEN t.status = 'failing' AND t.refused_as = 'refused' AND videos.private THEN 'private'
    WHEN t.status = 'failing' AND t.refused_as = 'refused' AND videos.not_safe THEN 'restricted'
    WHEN t.status = 'failing' THEN t.status
    ELSE videos.fetch_status END
 FROM fetch_subscriptions s JOIN fetch_targets t ON t.bucket = s.bucket AND t.source = s.source AND t.kind = s.kind AND t.external_id = s.external_id
 WHERE s.kind = 'video' AND s.organisation_id = videos.organisation_id AND s.subject_id = videos.id AND NOT videos.removed;
UPDATE accounts SET next_fetch_at = t.next_at, fetch_status = CASE
    WHEN t.status IN ('gone', 'unsupported') THEN t.status
    WHEN t.status = 'failing' AND t.refused_as = 'refused' AND accounts.private THEN 'private'
    WHEN t.status = 'failing' THEN t.status
    ELSE accounts.fetch_status END
 FROM fetch_subscriptions s JOIN fetch_targets t ON t.bucket = s.bucket AND t.source = s.source AND t.kind = s.kind AND t.external_id = s.external_id
 WHERE s.kind = 'account' AND s.organisation_id = accounts.organisation_id AND s.subject_id = accounts.id AND accounts.tracked;

CREATE INDEX videos_fetch ON videos (organisation_id, fetch_status, next_fetch_at);
CREATE INDEX accounts_fetch ON accounts (organisation_id, fetch_status, next_fetch_at);

-- The column serves has the groups of targets that the collector's sources can fetch: see Form in package queue.
ALTER TABLE collectors ADD COLUMN serves text NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE collectors DROP COLUMN serves;
DROP INDEX accounts_fetch;
DROP INDEX videos_fetch;
ALTER TABLE fetch_targets DROP COLUMN status;
ALTER TABLE accounts DROP COLUMN next_fetch_at;
ALTER TABLE accounts DROP COLUMN last_attempt_at;
ALTER TABLE accounts DROP COLUMN fetch_reason;
ALTER TABLE accounts DROP COLUMN fetch_status;
ALTER TABLE videos DROP COLUMN next_fetch_at;
ALTER TABLE videos DROP COLUMN last_attempt_at;
ALTER TABLE videos DROP COLUMN fetch_reason;
ALTER TABLE videos DROP COLUMN fetch_status;
