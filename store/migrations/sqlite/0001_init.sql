-- +goose Up

-- Reference tables are small and rarely written. A sharded database would copy them to every node.
CREATE TABLE organisations (
  id           text   NOT NULL PRIMARY KEY,
  name         text   NOT NULL,
  tier         text   NOT NULL CHECK (tier IN ('limited', 'basic', 'premium')),
  subscription text   NOT NULL CHECK (subscription IN ('active', 'none')),
  created_at   integer NOT NULL
);

CREATE TABLE api_tokens (
  id              text   NOT NULL PRIMARY KEY,
  organisation_id text   NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  name            text   NOT NULL,
  hash            blob   NOT NULL UNIQUE,
  scopes          text   NOT NULL,
  created_at      integer NOT NULL,
  expires_at      integer,
  revoked_at      integer
);
CREATE INDEX api_tokens_organisation ON api_tokens (organisation_id, id);

CREATE TABLE settings (
  name  text  NOT NULL PRIMARY KEY,
  value blob  NOT NULL
);

-- Distributed tables have the data of organisations. A sharded database would shard them by organisation_id, so organisation_id is the first
-- column of every key.
CREATE TABLE accounts (
  organisation_id text    NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id              text    NOT NULL,
  platform        text    NOT NULL,
  external_id     text,
  username        text    NOT NULL,
  handle_current  boolean NOT NULL,
  name            text,
  link            text    NOT NULL,
  created_at      integer NOT NULL,
  tracked                boolean NOT NULL DEFAULT false,
  removed                boolean NOT NULL DEFAULT false,
  tracking_type          text,
  tracked_at             integer,
  discovered_at          integer,
  checked_at             integer,
  private                boolean NOT NULL DEFAULT false,
  empty                  boolean NOT NULL DEFAULT false,
  bio                    text,
  profile_link           text,
  latest_followers_count integer,
  latest_following_count integer,
  mean_views             real,
  median_views           real,
  median_views_non_zero  real,
  most_viewed            integer,
  percent_outperform_10x real,
  percent_outperform_25x real,
  total_videos_tracked   integer NOT NULL DEFAULT 0,
  total_views            integer,
  total_likes            integer,
  total_comments         integer,
  total_bookmarks        integer,
  total_shares           integer,
  last_uploaded_at       text,
  PRIMARY KEY (organisation_id, id)
);
CREATE UNIQUE INDEX accounts_external ON accounts (organisation_id, platform, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX accounts_username ON accounts (organisation_id, platform, username) WHERE handle_current;

CREATE TABLE videos (
  organisation_id    text             NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id                 text             NOT NULL,
  platform           text             NOT NULL,
  external_id        text             NOT NULL,
  link               text             NOT NULL,
  username           text             NOT NULL,
  linked_account_id  text,
  created_at         integer          NOT NULL,
  removed            boolean          NOT NULL,
  pending            boolean          NOT NULL,
  direct             boolean          NOT NULL DEFAULT true,
  uploaded_at        text,
  song_name          text,
  song_link          text,
  video_length       text,
  title              text             NOT NULL,
  title_folded       text             NOT NULL,
  not_safe           boolean          NOT NULL,
  private            boolean          NOT NULL,
  hidden_stats       boolean          NOT NULL,
  ad_info_shop       boolean          NOT NULL,
  ad_is_ad           boolean          NOT NULL,
  ad_product_id_shop text,
  latest_views       integer,
  latest_likes       integer,
  latest_comments    integer,
  latest_bookmarks   integer,
  latest_shares      integer,
  latest_engagement  integer,
  latest_updated_at  integer,
  outlier_multiplier real             NOT NULL,
  increase_1d        real             NOT NULL,
  increase_7d        real             NOT NULL,
  increase_14d       real             NOT NULL,
  increase_30d       real             NOT NULL,
  PRIMARY KEY (organisation_id, id),
  FOREIGN KEY (organisation_id, linked_account_id) REFERENCES accounts (organisation_id, id)
);
CREATE UNIQUE INDEX videos_external ON videos (organisation_id, platform, external_id);
CREATE INDEX videos_created ON videos (organisation_id, created_at DESC, id DESC);
CREATE INDEX videos_updated ON videos (organisation_id, latest_updated_at DESC, id DESC);
CREATE INDEX videos_uploaded ON videos (organisation_id, uploaded_at DESC, id DESC);
CREATE INDEX videos_views ON videos (organisation_id, latest_views DESC, id DESC);
CREATE INDEX videos_username ON videos (organisation_id, username, created_at DESC);
CREATE INDEX videos_account ON videos (organisation_id, linked_account_id, latest_views);

CREATE TABLE video_hashtags (
  organisation_id text NOT NULL,
  tag             text NOT NULL,
  video_id        text NOT NULL,
  PRIMARY KEY (organisation_id, tag, video_id),
  FOREIGN KEY (organisation_id, video_id) REFERENCES videos (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX video_hashtags_video ON video_hashtags (organisation_id, video_id);

-- One row for each video and UTC day, stored in the order of the primary key.
CREATE TABLE snapshots_daily (
  organisation_id text   NOT NULL,
  video_id        text   NOT NULL,
  day             text   NOT NULL,
  week            text   NOT NULL,
  views           integer,
  likes           integer,
  comments        integer,
  shares          integer,
  bookmarks       integer,
  fetched_at      integer NOT NULL,
  source          text   NOT NULL,
  PRIMARY KEY (organisation_id, video_id, day),
  FOREIGN KEY (organisation_id, video_id) REFERENCES videos (organisation_id, id) ON DELETE CASCADE
) WITHOUT ROWID;

-- The table snapshots_weekly has one point for each week: the last point of the week. It is used for days older than 90 days.
CREATE TABLE snapshots_weekly (
  organisation_id text   NOT NULL,
  video_id        text   NOT NULL,
  week            text   NOT NULL,
  day             text   NOT NULL,
  views           integer,
  likes           integer,
  comments        integer,
  shares          integer,
  bookmarks       integer,
  fetched_at      integer NOT NULL,
  source          text   NOT NULL,
  PRIMARY KEY (organisation_id, video_id, week),
  FOREIGN KEY (organisation_id, video_id) REFERENCES videos (organisation_id, id) ON DELETE CASCADE
);

CREATE TABLE collections (
  organisation_id  text   NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id               text   NOT NULL,
  parent_id        text,
  name             text   NOT NULL,
  access           text   NOT NULL CHECK (access IN ('private', 'public', 'protected')),
  password_hash    text,
  hash             text,
  display_settings text,
  created_by       text   NOT NULL,
  created_at       integer NOT NULL,
  updated_at       integer NOT NULL,
  PRIMARY KEY (organisation_id, id),
  FOREIGN KEY (organisation_id, parent_id) REFERENCES collections (organisation_id, id)
);
CREATE INDEX collections_name ON collections (organisation_id, name);
CREATE INDEX collections_parent ON collections (organisation_id, parent_id);

CREATE TABLE collection_hashtags (
  organisation_id text NOT NULL,
  collection_id   text NOT NULL,
  tag             text NOT NULL,
  PRIMARY KEY (organisation_id, collection_id, tag),
  CONSTRAINT collection_hashtags_collection_fkey FOREIGN KEY (organisation_id, collection_id) REFERENCES collections (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX collection_hashtags_tag ON collection_hashtags (organisation_id, tag);

CREATE TABLE collection_videos (
  organisation_id text   NOT NULL,
  collection_id   text   NOT NULL,
  video_id        text   NOT NULL,
  added_at        integer NOT NULL,
  PRIMARY KEY (organisation_id, collection_id, video_id),
  CONSTRAINT collection_videos_collection_fkey FOREIGN KEY (organisation_id, collection_id) REFERENCES collections (organisation_id, id) ON DELETE CASCADE,
  CONSTRAINT collection_videos_video_fkey FOREIGN KEY (organisation_id, video_id) REFERENCES videos (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX collection_videos_video ON collection_videos (organisation_id, video_id);

CREATE TABLE collection_accounts (
  organisation_id text   NOT NULL,
  collection_id   text   NOT NULL,
  account_id      text   NOT NULL,
  added_at        integer NOT NULL,
  PRIMARY KEY (organisation_id, collection_id, account_id),
  CONSTRAINT collection_accounts_collection_fkey FOREIGN KEY (organisation_id, collection_id) REFERENCES collections (organisation_id, id) ON DELETE CASCADE,
  CONSTRAINT collection_accounts_account_fkey FOREIGN KEY (organisation_id, account_id) REFERENCES accounts (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX collection_accounts_account ON collection_accounts (organisation_id, account_id);

-- The table organisation_totals has the present totals of each organisation. So the total of a list and the sums of a day are read from one row.
CREATE TABLE organisation_totals (
  organisation_id text   NOT NULL PRIMARY KEY REFERENCES organisations (id) ON DELETE CASCADE,
  videos          integer NOT NULL,
  videos_removed  integer NOT NULL,
  views           integer NOT NULL,
  likes           integer NOT NULL,
  comments        integer NOT NULL,
  shares          integer NOT NULL,
  bookmarks       integer NOT NULL,
  accounts        integer NOT NULL DEFAULT 0,
  accounts_removed integer NOT NULL DEFAULT 0,
  followers       integer NOT NULL DEFAULT 0,
  following       integer NOT NULL DEFAULT 0
);

CREATE TABLE organisation_days (
  organisation_id text   NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  day             text   NOT NULL,
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

-- The table organisation_uploads has the number of an organisation's videos that were uploaded on each day.
CREATE TABLE organisation_uploads (
  organisation_id text NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  day             text NOT NULL,
  uploads         integer NOT NULL,
  PRIMARY KEY (organisation_id, day)
);

CREATE TABLE account_days (
  organisation_id text NOT NULL,
  account_id      text NOT NULL,
  day             text NOT NULL,
  followers       integer,
  following       integer,
  videos          integer NOT NULL,
  views           integer,
  likes           integer,
  comments        integer,
  shares          integer,
  bookmarks       integer,
  PRIMARY KEY (organisation_id, account_id, day),
  FOREIGN KEY (organisation_id, account_id) REFERENCES accounts (organisation_id, id) ON DELETE CASCADE
);

-- The table idempotency_keys has the responses to requests with an Idempotency-Key header. They are kept for a day.
CREATE TABLE idempotency_keys (
  organisation_id text NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  operation       text NOT NULL,
  key             text NOT NULL,
  fingerprint     blob NOT NULL,
  effect_id       text NOT NULL,
  created_at      integer NOT NULL,
  started_at      integer NOT NULL,
  status          integer,
  content_type    text,
  body            blob,
  PRIMARY KEY (organisation_id, operation, key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (organisation_id, created_at);

-- Coordinator tables contain the fetch queue. A sharded database would keep them on one node. A row of fetch_targets is a video or account to
-- fetch. All organisations that track the video or account share the row.
CREATE TABLE fetch_targets (
  bucket       integer NOT NULL,
  source       text     NOT NULL,
  kind         text     NOT NULL,
  external_id  text     NOT NULL,
  handle       text     NOT NULL,
  link         text     NOT NULL,
  lane         integer NOT NULL,
  base_lane    integer NOT NULL,
  next_at      integer   NOT NULL,
  requested_at integer   NOT NULL,
  claimed_by   text,
  token        text,
  attempts     integer NOT NULL,
  state        text     NOT NULL,
  detail       text     NOT NULL,
  fetched_at   integer,
  details_at   integer,
  views        integer,
  suspect      text,
  native_id    text,
  depth        integer NOT NULL DEFAULT 0,
  PRIMARY KEY (bucket, source, kind, external_id)
);
CREATE INDEX fetch_targets_due ON fetch_targets (bucket, source, kind, lane, next_at);
CREATE INDEX fetch_targets_claimed ON fetch_targets (claimed_by) WHERE claimed_by IS NOT NULL;

CREATE TABLE fetch_subscriptions (
  bucket          integer NOT NULL,
  source          text     NOT NULL,
  kind            text     NOT NULL,
  external_id     text     NOT NULL,
  organisation_id text     NOT NULL,
  subject_id      text     NOT NULL,
  PRIMARY KEY (bucket, source, kind, external_id, organisation_id)
);
CREATE INDEX fetch_subscriptions_subject ON fetch_subscriptions (organisation_id, subject_id);

CREATE TABLE quota_windows (
  source        text   NOT NULL,
  win           text   NOT NULL,
  used          integer NOT NULL,
  PRIMARY KEY (source, win)
);

CREATE TABLE source_pauses (
  source        text    NOT NULL PRIMARY KEY,
  class         text    NOT NULL,
  detail        text    NOT NULL,
  blocked_until integer NOT NULL,
  strikes       integer NOT NULL
);

CREATE TABLE collectors (
  id      text   NOT NULL PRIMARY KEY,
  seen_at integer NOT NULL
);

CREATE TABLE short_links (
  platform    text   NOT NULL,
  code        text   NOT NULL,
  target      text   NOT NULL,
  resolved_at integer NOT NULL,
  PRIMARY KEY (platform, code)
);

CREATE TABLE token_uses (
  token_id     text   NOT NULL PRIMARY KEY,
  last_used_at integer NOT NULL
);

-- +goose Down
DROP TABLE token_uses;
DROP TABLE short_links;
DROP TABLE collectors;
DROP TABLE source_pauses;
DROP TABLE quota_windows;
DROP TABLE fetch_subscriptions;
DROP TABLE fetch_targets;
DROP TABLE idempotency_keys;
DROP TABLE account_days;
DROP TABLE organisation_uploads;
DROP TABLE organisation_days;
DROP TABLE organisation_totals;
DROP TABLE collection_accounts;
DROP TABLE collection_videos;
DROP TABLE collection_hashtags;
DROP TABLE collections;
DROP TABLE snapshots_weekly;
DROP TABLE snapshots_daily;
DROP TABLE video_hashtags;
DROP TABLE videos;
DROP TABLE accounts;
DROP TABLE settings;
DROP TABLE api_tokens;
DROP TABLE organisations;
