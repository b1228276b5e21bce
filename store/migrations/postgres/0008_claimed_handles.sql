-- +goose Up

-- The column handle is the account handle in the subscriber's link. No source has confirmed it. The column handle_at is when the link was tracked,
-- or when the handle was last tried. After this migration, the handle in a video's target is always a handle that a source has confirmed.
ALTER TABLE fetch_subscriptions ADD COLUMN handle text NOT NULL DEFAULT '';
ALTER TABLE fetch_subscriptions ADD COLUMN handle_at bigint NOT NULL DEFAULT 0;
-- The column preview is the number of an account's videos that are fetched while the organisation has no paid subscription. 0 means the default.
ALTER TABLE fetch_subscriptions ADD COLUMN preview integer NOT NULL DEFAULT 0;
UPDATE fetch_subscriptions SET handle = COALESCE((SELECT t.handle FROM fetch_targets t
 WHERE t.bucket = fetch_subscriptions.bucket AND t.source = fetch_subscriptions.source
   AND t.kind = fetch_subscriptions.kind AND t.external_id = fetch_subscriptions.external_id), '');
UPDATE fetch_subscriptions SET handle = (SELECT v.username FROM videos v
 WHERE v.organisation_id = fetch_subscriptions.organisation_id AND v.id = fetch_subscriptions.subject_id)
 WHERE kind = 'video' AND EXISTS (SELECT 1 FROM videos v
 WHERE v.organisation_id = fetch_subscriptions.organisation_id AND v.id = fetch_subscriptions.subject_id AND v.username <> '');
UPDATE fetch_targets SET handle = '' WHERE kind = 'video';

-- +goose Down
UPDATE fetch_targets SET handle = COALESCE((SELECT MAX(s.handle) FROM fetch_subscriptions s
 WHERE s.bucket = fetch_targets.bucket AND s.source = fetch_targets.source
   AND s.kind = fetch_targets.kind AND s.external_id = fetch_targets.external_id), '') WHERE kind = 'video' AND handle = '';
ALTER TABLE fetch_subscriptions DROP COLUMN preview;
ALTER TABLE fetch_subscriptions DROP COLUMN handle_at;
ALTER TABLE fetch_subscriptions DROP COLUMN handle;
