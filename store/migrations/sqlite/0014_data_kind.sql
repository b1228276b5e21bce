-- +goose Up

-- The setting data_kind says whether the numbers of the database are made up by the sandbox ("demo") or come from platforms ("real"). The first
-- stored number decides. A database that has both kinds from earlier versions is a demo database. So responses with its numbers stay marked as made up.
INSERT INTO settings (name, value)
SELECT 'data_kind', CAST(CASE WHEN EXISTS (SELECT 1 FROM snapshots_daily WHERE source = 'sandbox') OR EXISTS (SELECT 1 FROM snapshots_weekly WHERE source = 'sandbox')
  THEN 'demo' ELSE 'real' END AS blob)
 WHERE EXISTS (SELECT 1 FROM snapshots_daily) OR EXISTS (SELECT 1 FROM snapshots_weekly);

-- +goose Down
DELETE FROM settings WHERE name = 'data_kind';
