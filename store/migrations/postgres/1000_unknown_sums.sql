-- +goose Up

-- From this migration on, a sum is NULL if the count was not known of any video, or of any account. Before, such a sum was 0. A stored 0 stays if an
-- account had a known value on that day or on an earlier day. known has the first day with a known value for each organisation.
ALTER TABLE organisation_days ALTER COLUMN views DROP NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN likes DROP NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN comments DROP NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN shares DROP NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN bookmarks DROP NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN followers DROP NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN following DROP NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN followers DROP DEFAULT;
ALTER TABLE organisation_days ALTER COLUMN following DROP DEFAULT;
UPDATE organisation_days d SET views = CASE WHEN d.views <> 0 OR known.views <= d.day THEN d.views END,
  likes = CASE WHEN d.likes <> 0 OR known.likes <= d.day THEN d.likes END,
  comments = CASE WHEN d.comments <> 0 OR known.comments <= d.day THEN d.comments END,
  shares = CASE WHEN d.shares <> 0 OR known.shares <= d.day THEN d.shares END,
  bookmarks = CASE WHEN d.bookmarks <> 0 OR known.bookmarks <= d.day THEN d.bookmarks END,
  followers = CASE WHEN d.followers <> 0 OR known.followers <= d.day THEN d.followers END,
  following = CASE WHEN d.following <> 0 OR known.following <= d.day THEN d.following END
FROM (
  SELECT t.organisation_id, MIN(CASE WHEN a.views IS NOT NULL THEN a.day END) AS views,
    MIN(CASE WHEN a.likes IS NOT NULL THEN a.day END) AS likes,
    MIN(CASE WHEN a.comments IS NOT NULL THEN a.day END) AS comments,
    MIN(CASE WHEN a.shares IS NOT NULL THEN a.day END) AS shares,
    MIN(CASE WHEN a.bookmarks IS NOT NULL THEN a.day END) AS bookmarks,
    MIN(CASE WHEN a.followers IS NOT NULL THEN a.day END) AS followers,
    MIN(CASE WHEN a.following IS NOT NULL THEN a.day END) AS following
  FROM organisation_totals t LEFT JOIN account_days a ON a.organisation_id = t.organisation_id GROUP BY t.organisation_id) known
WHERE known.organisation_id = d.organisation_id AND 0 IN (d.views, d.likes, d.comments, d.shares, d.bookmarks, d.followers, d.following);
-- The new values change the API's responses, so ETags that were sent before must not match any more.
UPDATE organisation_totals SET version = version + 1;
-- A fetch finds in this index whether the organisation has an account whose latest_following_count is known.
CREATE INDEX accounts_following ON accounts (organisation_id, latest_following_count DESC NULLS LAST);

-- +goose Down
DROP INDEX accounts_following;
UPDATE organisation_days SET views = COALESCE(views, 0), likes = COALESCE(likes, 0), comments = COALESCE(comments, 0), shares = COALESCE(shares, 0), bookmarks = COALESCE(bookmarks, 0), followers = COALESCE(followers, 0), following = COALESCE(following, 0);
ALTER TABLE organisation_days ALTER COLUMN followers SET DEFAULT 0;
ALTER TABLE organisation_days ALTER COLUMN following SET DEFAULT 0;
ALTER TABLE organisation_days ALTER COLUMN views SET NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN likes SET NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN comments SET NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN shares SET NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN bookmarks SET NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN followers SET NOT NULL;
ALTER TABLE organisation_days ALTER COLUMN following SET NOT NULL;
