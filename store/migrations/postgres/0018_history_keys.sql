-- +goose Up

-- The primary keys contain the counts. So PostgreSQL can read a history from the index, without the table. In the tables, the points of a video are
-- far apart, because they are stored in the order in which they were fetched.
ALTER TABLE snapshots_weekly DROP CONSTRAINT snapshots_weekly_pkey, ADD PRIMARY KEY (organisation_id, video_id, week) INCLUDE (day, views, likes, comments, shares, bookmarks, source, fetched_at);
ALTER TABLE snapshots_daily DROP CONSTRAINT snapshots_daily_pkey, ADD PRIMARY KEY (organisation_id, video_id, day) INCLUDE (views, likes, comments, shares, bookmarks, source, fetched_at);

-- PostgreSQL reads an index without its table only after a vacuum of the table.
ALTER TABLE snapshots_weekly SET (autovacuum_vacuum_insert_scale_factor = 0.02);
-- +goose StatementBegin
DO $$
DECLARE partition regclass;
BEGIN
  FOR partition IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'snapshots_daily'::regclass LOOP
    EXECUTE format('ALTER TABLE %s SET (autovacuum_vacuum_insert_scale_factor = 0.02)', partition);
  END LOOP;
END $$;
-- +goose StatementEnd

-- +goose Down
ALTER TABLE snapshots_weekly DROP CONSTRAINT snapshots_weekly_pkey, ADD PRIMARY KEY (organisation_id, video_id, week);
ALTER TABLE snapshots_daily DROP CONSTRAINT snapshots_daily_pkey, ADD PRIMARY KEY (organisation_id, video_id, day);
