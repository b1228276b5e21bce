-- +goose Up

-- From this migration on, outlier_multiplier and the columns increase_… are NULL if their values are not known. Before, they were 0. views_gained_7d
-- is latest_views minus the views of seven days before the last fetch. SQLite cannot make a column nullable, so on both engines new columns replace
-- the old ones.
ALTER TABLE videos RENAME COLUMN outlier_multiplier TO old_outlier_multiplier;
ALTER TABLE videos RENAME COLUMN increase_1d TO old_increase_1d;
ALTER TABLE videos RENAME COLUMN increase_7d TO old_increase_7d;
ALTER TABLE videos RENAME COLUMN increase_14d TO old_increase_14d;
ALTER TABLE videos RENAME COLUMN increase_30d TO old_increase_30d;
ALTER TABLE videos ADD COLUMN outlier_multiplier real;
ALTER TABLE videos ADD COLUMN increase_1d real;
ALTER TABLE videos ADD COLUMN increase_7d real;
ALTER TABLE videos ADD COLUMN increase_14d real;
ALTER TABLE videos ADD COLUMN increase_30d real;
ALTER TABLE videos ADD COLUMN views_gained_7d integer;
-- A value other than 0 was known and stays. For a 0, the points of the video and the median of its account show whether the value was known. f.day
-- is the day of the last fetch. f.counted is the day of the last point that has views. b.v7 is the number of views of the last point that is at
-- least 7 days older than f.day.
UPDATE videos SET
  increase_1d = CASE WHEN old_increase_1d <> 0 THEN old_increase_1d ELSE CAST(latest_views - b.v1 AS real) / NULLIF(b.v1, 0) * 100 END,
  increase_7d = CASE WHEN old_increase_7d <> 0 THEN old_increase_7d ELSE CAST(latest_views - b.v7 AS real) / NULLIF(b.v7, 0) * 100 END,
  increase_14d = CASE WHEN old_increase_14d <> 0 THEN old_increase_14d ELSE CAST(latest_views - b.v14 AS real) / NULLIF(b.v14, 0) * 100 END,
  increase_30d = CASE WHEN old_increase_30d <> 0 THEN old_increase_30d ELSE CAST(latest_views - b.v30 AS real) / NULLIF(b.v30, 0) * 100 END,
  views_gained_7d = latest_views - b.v7,
  outlier_multiplier = CASE WHEN old_outlier_multiplier <> 0 THEN old_outlier_multiplier WHEN latest_views = 0 AND EXISTS (SELECT 1 FROM accounts a
    WHERE a.organisation_id = videos.organisation_id AND a.id = videos.linked_account_id AND a.median_views > 0) THEN 0 END
FROM (
  SELECT f.organisation_id, f.id,
    CASE WHEN f.counted > date(f.day, '-1 day') THEN COALESCE((SELECT d.views FROM snapshots_daily d WHERE d.organisation_id = f.organisation_id AND d.video_id = f.id AND d.day <= date(f.day, '-1 day') AND d.views IS NOT NULL ORDER BY d.day DESC LIMIT 1),
      (SELECT w.views FROM snapshots_weekly w WHERE w.organisation_id = f.organisation_id AND w.video_id = f.id AND w.day <= date(f.day, '-1 day') AND w.views IS NOT NULL ORDER BY w.day DESC LIMIT 1)) END AS v1,
    CASE WHEN f.counted > date(f.day, '-7 days') THEN COALESCE((SELECT d.views FROM snapshots_daily d WHERE d.organisation_id = f.organisation_id AND d.video_id = f.id AND d.day <= date(f.day, '-7 days') AND d.views IS NOT NULL ORDER BY d.day DESC LIMIT 1),
      (SELECT w.views FROM snapshots_weekly w WHERE w.organisation_id = f.organisation_id AND w.video_id = f.id AND w.day <= date(f.day, '-7 days') AND w.views IS NOT NULL ORDER BY w.day DESC LIMIT 1)) END AS v7,
    CASE WHEN f.counted > date(f.day, '-14 days') THEN COALESCE((SELECT d.views FROM snapshots_daily d WHERE d.organisation_id = f.organisation_id AND d.video_id = f.id AND d.day <= date(f.day, '-14 days') AND d.views IS NOT NULL ORDER BY d.day DESC LIMIT 1),
      (SELECT w.views FROM snapshots_weekly w WHERE w.organisation_id = f.organisation_id AND w.video_id = f.id AND w.day <= date(f.day, '-14 days') AND w.views IS NOT NULL ORDER BY w.day DESC LIMIT 1)) END AS v14,
    CASE WHEN f.counted > date(f.day, '-30 days') THEN COALESCE((SELECT d.views FROM snapshots_daily d WHERE d.organisation_id = f.organisation_id AND d.video_id = f.id AND d.day <= date(f.day, '-30 days') AND d.views IS NOT NULL ORDER BY d.day DESC LIMIT 1),
      (SELECT w.views FROM snapshots_weekly w WHERE w.organisation_id = f.organisation_id AND w.video_id = f.id AND w.day <= date(f.day, '-30 days') AND w.views IS NOT NULL ORDER BY w.day DESC LIMIT 1)) END AS v30
  FROM (SELECT v.organisation_id, v.id, date(v.latest_updated_at / 1000000, 'unixepoch') AS day,
      COALESCE((SELECT d.day FROM snapshots_daily d WHERE d.organisation_id = v.organisation_id AND d.video_id = v.id AND d.views IS NOT NULL ORDER BY d.day DESC LIMIT 1),
      (SELECT w.day FROM snapshots_weekly w WHERE w.organisation_id = v.organisation_id AND w.video_id = v.id AND w.views IS NOT NULL ORDER BY w.day DESC LIMIT 1)) AS counted
    FROM videos v WHERE v.latest_updated_at IS NOT NULL AND v.latest_views IS NOT NULL) f) b
WHERE videos.organisation_id = b.organisation_id AND videos.id = b.id;
-- The new columns change the API's responses about videos, so ETags that were sent before must not match any more.
UPDATE organisation_totals SET version = version + 1;
ALTER TABLE videos DROP COLUMN old_outlier_multiplier;
ALTER TABLE videos DROP COLUMN old_increase_1d;
ALTER TABLE videos DROP COLUMN old_increase_7d;
ALTER TABLE videos DROP COLUMN old_increase_14d;
ALTER TABLE videos DROP COLUMN old_increase_30d;
CREATE INDEX videos_outlier_multiplier ON videos (organisation_id, outlier_multiplier DESC, id DESC);
CREATE INDEX videos_increase_1d ON videos (organisation_id, increase_1d DESC, id DESC);
CREATE INDEX videos_increase_7d ON videos (organisation_id, increase_7d DESC, id DESC);
CREATE INDEX videos_increase_14d ON videos (organisation_id, increase_14d DESC, id DESC);
CREATE INDEX videos_increase_30d ON videos (organisation_id, increase_30d DESC, id DESC);
CREATE INDEX videos_views_gained_7d ON videos (organisation_id, views_gained_7d DESC, id DESC);

-- +goose Down
DROP INDEX videos_outlier_multiplier;
DROP INDEX videos_increase_1d;
DROP INDEX videos_increase_7d;
DROP INDEX videos_increase_14d;
DROP INDEX videos_increase_30d;
DROP INDEX videos_views_gained_7d;
ALTER TABLE videos DROP COLUMN views_gained_7d;
ALTER TABLE videos RENAME COLUMN outlier_multiplier TO old_outlier_multiplier;
ALTER TABLE videos RENAME COLUMN increase_1d TO old_increase_1d;
ALTER TABLE videos RENAME COLUMN increase_7d TO old_increase_7d;
ALTER TABLE videos RENAME COLUMN increase_14d TO old_increase_14d;
ALTER TABLE videos RENAME COLUMN increase_30d TO old_increase_30d;
ALTER TABLE videos ADD COLUMN outlier_multiplier real NOT NULL DEFAULT 0;
ALTER TABLE videos ADD COLUMN increase_1d real NOT NULL DEFAULT 0;
ALTER TABLE videos ADD COLUMN increase_7d real NOT NULL DEFAULT 0;
ALTER TABLE videos ADD COLUMN increase_14d real NOT NULL DEFAULT 0;
ALTER TABLE videos ADD COLUMN increase_30d real NOT NULL DEFAULT 0;
UPDATE videos SET outlier_multiplier = COALESCE(old_outlier_multiplier, 0), increase_1d = COALESCE(old_increase_1d, 0), increase_7d = COALESCE(old_increase_7d, 0), increase_14d = COALESCE(old_increase_14d, 0), increase_30d = COALESCE(old_increase_30d, 0);
ALTER TABLE videos DROP COLUMN old_outlier_multiplier;
ALTER TABLE videos DROP COLUMN old_increase_1d;
ALTER TABLE videos DROP COLUMN old_increase_7d;
ALTER TABLE videos DROP COLUMN old_increase_14d;
ALTER TABLE videos DROP COLUMN old_increase_30d;
