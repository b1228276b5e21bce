-- +goose Up

-- The table snapshots_weekly is sorted by its primary key, like snapshots_daily. So the points of a video are next to each other.
CREATE TABLE weekly (
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
) WITHOUT ROWID;
INSERT INTO weekly (organisation_id, video_id, week, day, views, likes, comments, shares, bookmarks, fetched_at, source) SELECT organisation_id, video_id, week, day, views, likes, comments, shares, bookmarks, fetched_at, source FROM snapshots_weekly ORDER BY organisation_id, video_id, week;
DROP TABLE snapshots_weekly;
ALTER TABLE weekly RENAME TO snapshots_weekly;

-- +goose Down
CREATE TABLE weekly (
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
INSERT INTO weekly (organisation_id, video_id, week, day, views, likes, comments, shares, bookmarks, fetched_at, source) SELECT organisation_id, video_id, week, day, views, likes, comments, shares, bookmarks, fetched_at, source FROM snapshots_weekly ORDER BY organisation_id, video_id, week;
DROP TABLE snapshots_weekly;
ALTER TABLE weekly RENAME TO snapshots_weekly;
