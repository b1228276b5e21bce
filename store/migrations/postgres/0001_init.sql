-- +goose Up

-- Reference tables are small and rarely written. A sharded database would copy them to every node.
CREATE TABLE organisations (
  id           uuid   NOT NULL PRIMARY KEY,
  name         text   NOT NULL,
  tier         text   NOT NULL CHECK (tier IN ('limited', 'basic', 'premium')),
  subscription text   NOT NULL CHECK (subscription IN ('active', 'none')),
  created_at   bigint NOT NULL
);

CREATE TABLE api_tokens (
  id              uuid   NOT NULL PRIMARY KEY,
  organisation_id uuid   NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  name            text   NOT NULL,
  hash            bytea  NOT NULL UNIQUE,
  scopes          text   NOT NULL,
  created_at      bigint NOT NULL,
  expires_at      bigint,
  revoked_at      bigint
);
CREATE INDEX api_tokens_organisation ON api_tokens (organisation_id, id);

CREATE TABLE settings (
  name  text  NOT NULL PRIMARY KEY,
  value bytea NOT NULL
);

-- Distributed tables have the data of organisations. A sharded database would shard them by organisation_id, so organisation_id is the first
-- column of every key.
CREATE TABLE accounts (
  organisation_id uuid    NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id              uuid    NOT NULL,
  platform        text    NOT NULL,
  external_id     text,
  username        text    COLLATE "C" NOT NULL,
  handle_current  boolean NOT NULL,
  name            text,
  link            text    NOT NULL,
  created_at      bigint  NOT NULL,
  tracked                boolean NOT NULL DEFAULT false,
  removed                boolean NOT NULL DEFAULT false,
  tracking_type          text,
  tracked_at             bigint,
  discovered_at          bigint,
  checked_at             bigint,
  private                boolean NOT NULL DEFAULT false,
  empty                  boolean NOT NULL DEFAULT false,
  bio                    text,
  profile_link           text,
  latest_followers_count bigint,
  latest_following_count bigint,
  mean_views             double precision,
  median_views           double precision,
  median_views_non_zero  double precision,
  most_viewed            bigint,
  percent_outperform_10x double precision,
  percent_outperform_25x double precision,
  total_videos_tracked   bigint NOT NULL DEFAULT 0,
  total_views            bigint,
  total_likes            bigint,
  total_comments         bigint,
  total_bookmarks        bigint,
  total_shares           bigint,
  last_uploaded_at       date,
  PRIMARY KEY (organisation_id, id)
);
CREATE UNIQUE INDEX accounts_external ON accounts (organisation_id, platform, external_id) WHERE external_id IS NOT NULL;
CREATE UNIQUE INDEX accounts_username ON accounts (organisation_id, platform, username) WHERE handle_current;

CREATE TABLE videos (
  organisation_id    uuid             NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id                 uuid             NOT NULL,
  platform           text             NOT NULL,
  external_id        text             NOT NULL,
  link               text             NOT NULL,
  username           text             NOT NULL,
  linked_account_id  uuid,
  created_at         bigint           NOT NULL,
  removed            boolean          NOT NULL,
  pending            boolean          NOT NULL,
  direct             boolean          NOT NULL DEFAULT true,
  uploaded_at        date,
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
  latest_views       bigint,
  latest_likes       bigint,
  latest_comments    bigint,
  latest_bookmarks   bigint,
  latest_shares      bigint,
  latest_engagement  bigint,
  latest_updated_at  bigint,
  outlier_multiplier double precision NOT NULL,
  increase_1d        double precision NOT NULL,
  increase_7d        double precision NOT NULL,
  increase_14d       double precision NOT NULL,
  increase_30d       double precision NOT NULL,
  PRIMARY KEY (organisation_id, id),
  FOREIGN KEY (organisation_id, linked_account_id) REFERENCES accounts (organisation_id, id)
);
CREATE UNIQUE INDEX videos_external ON videos (organisation_id, platform, external_id);
CREATE INDEX videos_created ON videos (organisation_id, created_at DESC, id DESC);
CREATE INDEX videos_updated ON videos (organisation_id, latest_updated_at DESC NULLS LAST, id DESC);
CREATE INDEX videos_uploaded ON videos (organisation_id, uploaded_at DESC NULLS LAST, id DESC);
CREATE INDEX videos_views ON videos (organisation_id, latest_views DESC NULLS LAST, id DESC);
CREATE INDEX videos_username ON videos (organisation_id, username, created_at DESC);
CREATE INDEX videos_account ON videos (organisation_id, linked_account_id, latest_views);

CREATE TABLE video_hashtags (
  organisation_id uuid NOT NULL,
  tag             text NOT NULL,
  video_id        uuid NOT NULL,
  PRIMARY KEY (organisation_id, tag, video_id),
  FOREIGN KEY (organisation_id, video_id) REFERENCES videos (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX video_hashtags_video ON video_hashtags (organisation_id, video_id);

-- One row for each video and UTC day. Each month is a partition. The program creates partitions in advance and drops old partitions.
CREATE TABLE snapshots_daily (
  organisation_id uuid   NOT NULL,
  video_id        uuid   NOT NULL,
  day             date   NOT NULL,
  week            date   NOT NULL,
  views           bigint,
  likes           bigint,
  comments        bigint,
  shares          bigint,
  bookmarks       bigint,
  fetched_at      bigint NOT NULL,
  source          text   NOT NULL,
  PRIMARY KEY (organisation_id, video_id, day),
  FOREIGN KEY (organisation_id, video_id) REFERENCES videos (organisation_id, id) ON DELETE CASCADE
) PARTITION BY RANGE (day);

-- The table snapshots_weekly has one point for each week: the last point of the week. It is used for days older than 90 days.
CREATE TABLE snapshots_weekly (
  organisation_id uuid   NOT NULL,
  video_id        uuid   NOT NULL,
  week            date   NOT NULL,
  day             date   NOT NULL,
  views           bigint,
  likes           bigint,
  comments        bigint,
  shares          bigint,
  bookmarks       bigint,
  fetched_at      bigint NOT NULL,
  source          text   NOT NULL,
  PRIMARY KEY (organisation_id, video_id, week),
  FOREIGN KEY (organisation_id, video_id) REFERENCES videos (organisation_id, id) ON DELETE CASCADE
);

CREATE TABLE collections (
  organisation_id  uuid   NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  id               uuid   NOT NULL,
  parent_id        uuid,
  name             text   COLLATE "C" NOT NULL,
  access           text   NOT NULL CHECK (access IN ('private', 'public', 'protected')),
  password_hash    text,
  hash             text,
  display_settings text,
  created_by       uuid   NOT NULL,
  created_at       bigint NOT NULL,
  updated_at       bigint NOT NULL,
  PRIMARY KEY (organisation_id, id),
  FOREIGN KEY (organisation_id, parent_id) REFERENCES collections (organisation_id, id)
);
CREATE INDEX collections_name ON collections (organisation_id, name);
CREATE INDEX collections_parent ON collections (organisation_id, parent_id);

CREATE TABLE collection_hashtags (
  organisation_id uuid NOT NULL,
  collection_id   uuid NOT NULL,
  tag             text NOT NULL,
  PRIMARY KEY (organisation_id, collection_id, tag),
  CONSTRAINT collection_hashtags_collection_fkey FOREIGN KEY (organisation_id, collection_id) REFERENCES collections (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX collection_hashtags_tag ON collection_hashtags (organisation_id, tag);

CREATE TABLE collection_videos (
  organisation_id uuid   NOT NULL,
  collection_id   uuid   NOT NULL,
  video_id        uuid   NOT NULL,
  added_at        bigint NOT NULL,
  PRIMARY KEY (organisation_id, collection_id, video_id),
  CONSTRAINT collection_videos_collection_fkey FOREIGN KEY (organisation_id, collection_id) REFERENCES collections (organisation_id, id) ON DELETE CASCADE,
  CONSTRAINT collection_videos_video_fkey FOREIGN KEY (organisation_id, video_id) REFERENCES videos (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX collection_videos_video ON collection_videos (organisation_id, video_id);

CREATE TABLE collection_accounts (
  organisation_id uuid   NOT NULL,
  collection_id   uuid   NOT NULL,
  account_id      uuid   NOT NULL,
  added_at        bigint NOT NULL,
  PRIMARY KEY (organisation_id, collection_id, account_id),
  CONSTRAINT collection_accounts_collection_fkey FOREIGN KEY (organisation_id, collection_id) REFERENCES collections (organisation_id, id) ON DELETE CASCADE,
  CONSTRAINT collection_accounts_account_fkey FOREIGN KEY (organisation_id, account_id) REFERENCES accounts (organisation_id, id) ON DELETE CASCADE
);
CREATE INDEX collection_accounts_account ON collection_accounts (organisation_id, account_id);

-- The table organisation_totals has the present totals of each organisation. So the total of a list and the sums of a day are read from one row.
CREATE TABLE organisation_totals (
  organisation_id uuid   NOT NULL PRIMARY KEY REFERENCES organisations (id) ON DELETE CASCADE,
  videos          bigint NOT NULL,
  videos_removed  bigint NOT NULL,
  views           bigint NOT NULL,
  likes           bigint NOT NULL,
  comments        bigint NOT NULL,
  shares          bigint NOT NULL,
  bookmarks       bigint NOT NULL,
  accounts        bigint NOT NULL DEFAULT 0,
  accounts_removed bigint NOT NULL DEFAULT 0,
  followers       bigint NOT NULL DEFAULT 0,
  following       bigint NOT NULL DEFAULT 0
);

CREATE TABLE organisation_days (
  organisation_id uuid   NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  day             date   NOT NULL,
  videos          bigint NOT NULL,
  views           bigint NOT NULL,
  likes           bigint NOT NULL,
  comments        bigint NOT NULL,
  shares          bigint NOT NULL,
  bookmarks       bigint NOT NULL,
  accounts        bigint NOT NULL DEFAULT 0,
  followers       bigint NOT NULL DEFAULT 0,
  following       bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (organisation_id, day)
);

-- The table organisation_uploads has the number of an organisation's videos that were uploaded on each day.
CREATE TABLE organisation_uploads (
  organisation_id uuid NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  day             date NOT NULL,
  uploads         bigint NOT NULL,
  PRIMARY KEY (organisation_id, day)
);

CREATE TABLE account_days (
  organisation_id uuid NOT NULL,
  account_id      uuid NOT NULL,
  day             date NOT NULL,
  followers       bigint,
  following       bigint,
  videos          bigint NOT NULL,
  views           bigint,
  likes           bigint,
  comments        bigint,
  shares          bigint,
  bookmarks       bigint,
  PRIMARY KEY (organisation_id, account_id, day),
  FOREIGN KEY (organisation_id, account_id) REFERENCES accounts (organisation_id, id) ON DELETE CASCADE
);

-- The table idempotency_keys has the responses to requests with an Idempotency-Key header. They are kept for a day.
CREATE TABLE idempotency_keys (
  organisation_id uuid NOT NULL REFERENCES organisations (id) ON DELETE CASCADE,
  operation       text NOT NULL,
  key             text NOT NULL,
  fingerprint     bytea NOT NULL,
  effect_id       uuid NOT NULL,
  created_at      bigint NOT NULL,
  started_at      bigint NOT NULL,
  status          integer,
  content_type    text,
  body            bytea,
  PRIMARY KEY (organisation_id, operation, key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (organisation_id, created_at);

-- Coordinator tables contain the fetch queue. A sharded database would keep them on one node. A row of fetch_targets is a video or account to
-- fetch. All organisations that track the video or account share the row.
CREATE TABLE fetch_targets (
  bucket       smallint NOT NULL,
  source       text     NOT NULL,
  kind         text     NOT NULL,
  external_id  text     NOT NULL,
  handle       text     NOT NULL,
  link         text     NOT NULL,
  lane         smallint NOT NULL,
  base_lane    smallint NOT NULL,
  next_at      bigint   NOT NULL,
  requested_at bigint   NOT NULL,
  claimed_by   uuid,
  token        uuid,
  attempts     integer  NOT NULL,
  state        text     NOT NULL,
  detail       text     NOT NULL,
  fetched_at   bigint,
  details_at   bigint,
  views        bigint,
  suspect      text,
  native_id    text,
  depth        integer NOT NULL DEFAULT 0,
  PRIMARY KEY (bucket, source, kind, external_id)
) WITH (fillfactor = 70);
CREATE INDEX fetch_targets_due ON fetch_targets (bucket, source, kind, lane, next_at);
CREATE INDEX fetch_targets_claimed ON fetch_targets (claimed_by) WHERE claimed_by IS NOT NULL;

CREATE TABLE fetch_subscriptions (
  bucket          smallint NOT NULL,
  source          text     NOT NULL,
  kind            text     NOT NULL,
  external_id     text     NOT NULL,
  organisation_id uuid     NOT NULL,
  subject_id      uuid     NOT NULL,
  PRIMARY KEY (bucket, source, kind, external_id, organisation_id)
);
CREATE INDEX fetch_subscriptions_subject ON fetch_subscriptions (organisation_id, subject_id);

CREATE TABLE quota_windows (
  source        text   NOT NULL,
  win           text   NOT NULL,
  used          bigint NOT NULL,
  PRIMARY KEY (source, win)
);

CREATE TABLE source_pauses (
  source        text    NOT NULL PRIMARY KEY,
  class         text    NOT NULL,
  detail        text    NOT NULL,
  blocked_until bigint  NOT NULL,
  strikes       integer NOT NULL
);

CREATE TABLE collectors (
  id      uuid   NOT NULL PRIMARY KEY,
  seen_at bigint NOT NULL
);

CREATE TABLE short_links (
  platform    text   NOT NULL,
  code        text   NOT NULL,
  target      text   NOT NULL,
  resolved_at bigint NOT NULL,
  PRIMARY KEY (platform, code)
);

CREATE TABLE token_uses (
  token_id     uuid   NOT NULL PRIMARY KEY,
  last_used_at bigint NOT NULL
);

-- +goose Down
DROP TABLE token_uses, short_links, collectors, source_pauses, quota_windows, fetch_subscriptions, fetch_targets,
  idempotency_keys, account_days, organisation_uploads, organisation_days, organisation_totals, collection_accounts, collection_videos, collection_hashtags, collections,
  snapshots_weekly, snapshots_daily, video_hashtags, videos, accounts, settings, api_tokens, organisations;
