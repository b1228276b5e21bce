-- +goose Up

-- From this migration on, a sum is NULL if the count was not known of any video, or of any account. Before, such a sum was 0. A stored 0 stays if an
-- account had a known value on that day or on an earlier day. known has the first day with a known value for each organisation.
CREATE TABLE days (
  organisation_id text    NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  day             text    NOT NULL,
  videos          integer NOT NULL,
  views           integer,
  likes           integer,
  comments        integer,
  shares          integer,
  bookmarks       integer,
  accounts        integer NOT NULL DEFAULT 0,
  followers       integer,
  following       integer,
  PRIMARY KEY (organisation_id, day)
);
INSERT INTO days (organisation_id, day, videos, views, likes, comments, shares, bookmarks, accounts, followers, following)
SELECT d.organisation_id, d.day, d.videos, CASE WHEN d.views <> 0 OR known.views <= d.day THEN d.views END,
  CASE WHEN d.likes <> 0 OR known.likes <= d.day THEN d.likes END,
  CASE WHEN d.comments <> 0 OR known.comments <= d.day THEN d.comments END,
  CASE WHEN d.shares <> 0 OR known.shares <= d.day THEN d.shares END,
  CASE WHEN d.bookmarks <> 0 OR known.bookmarks <= d.day THEN d.bookmarks END,
  d.accounts, CASE WHEN d.followers <> 0 OR known.followers <= d.day THEN d.followers END,
  CASE WHEN d.following <> 0 OR known.following <= d.day THEN d.following END
FROM organisation_days d LEFT JOIN (
  SELECT a.organisation_id, MIN(CASE WHEN a.views IS NOT NULL THEN a.day END) AS views,
    MIN(CASE WHEN a.likes IS NOT NULL THEN a.day END) AS likes,
    MIN(CASE WHEN a.comments IS NOT NULL THEN a.day END) AS comments,
    MIN(CASE WHEN a.shares IS NOT NULL THEN a.day END) AS shares,
    MIN(CASE WHEN a.bookmarks IS NOT NULL THEN a.day END) AS bookmarks,
    MIN(CASE WHEN a.followers IS NOT NULL THEN a.day END) AS followers,
    MIN(CASE WHEN a.following IS NOT NULL THEN a.day END) AS following
  FROM account_days a GROUP BY a.organisation_id) known
ON known.organisation_id = d.organisation_id ORDER BY d.organisation_id, d.day;
DROP TABLE organisation_days;
ALTER TABLE days RENAME TO organisation_days;
-- The new values change the API's responses, so ETags that were sent before must not match any more.
UPDATE organisation_totals SET version = version + 1;
-- A fetch finds in this index whether the organisation has an account whose latest_following_count is known.
CREATE INDEX accounts_following ON accounts (organisation_id, latest_following_count DESC);

-- +goose Down
DROP INDEX accounts_following;
CREATE TABLE days (
  organisation_id text    NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  day             text    NOT NULL,
  videos          integer NOT NULL,
  views           integer NOT NULL,
  likes           integer NOT NULL,
  comments        integer NOT NULL,
  shares          integer NOT NULL,
  bookmarks       integer NOT NULL,
  accounts        integer NOT NULL DEFAULT 0,
  followers       integer NOT NULL DEFAULT 0,
  following       integer NOT NULL DEFAULT 0,
  PRIMARY KEY (organisation_id, day)
);
INSERT INTO days (organisation_id, day, videos, views, likes, comments, shares, bookmarks, accounts, followers, following)
SELECT organisation_id, day, videos, COALESCE(views, 0), COALESCE(likes, 0), COALESCE(comments, 0), COALESCE(shares, 0), COALESCE(bookmarks, 0), accounts, COALESCE(followers, 0), COALESCE(following, 0) FROM organisation_days ORDER BY organisation_id, day;
DROP TABLE organisation_days;
ALTER TABLE days RENAME TO organisation_days;
