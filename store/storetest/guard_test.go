package storetest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestCheckStatement_acceptsStatementsThatFollowTheRules(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"a column without the name of its table":                                  `SELECT * FROM videos WHERE organisation_id = $1 AND id = $2`,
		"a column with a quoted table name":                                       `SELECT * FROM "videos" WHERE "videos"."organisation_id" = ? ORDER BY "videos"."id" LIMIT 1`,
		"a table name after the schema name and a dot":                            `SELECT * FROM public.videos v WHERE v.organisation_id = $1`,
		"a comparison that begins with the parameter":                             `SELECT 1 FROM videos v WHERE $1 = v.organisation_id`,
		"a parameter that is cast to uuid":                                        `SELECT 1 FROM videos v WHERE v.organisation_id = CAST($1 AS uuid) AND v.organisation_id = $2::uuid`,
		"a condition in two pairs of parentheses":                                 `SELECT 1 FROM videos v WHERE ((v.organisation_id = ? AND (v.removed OR v.private)))`,
		"a condition after a BETWEEN":                                             `SELECT 1 FROM snapshots_daily WHERE day BETWEEN ? AND ? AND organisation_id = ?`,
		"a table joined to the first table by organisation_id":                    `SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id AND a.id = v.linked_account_id WHERE v.organisation_id = ?`,
		"three joined tables with equal organisation_id":                          `SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id JOIN account_days d ON d.organisation_id = a.organisation_id WHERE d.organisation_id = ?`,
		"a joined table with USING (organisation_id, id)":                         `SELECT 1 FROM videos v JOIN video_hashtags h USING (organisation_id, id) WHERE v.organisation_id = ?`,
		"two tables in FROM, each with its own condition":                         `SELECT 1 FROM videos v, accounts a WHERE v.organisation_id = ? AND a.organisation_id = ?`,
		"a left join on organisation_id":                                          `SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = v.organisation_id WHERE v.organisation_id = ?`,
		"a subquery that takes its organisation_id from the outer query":          `SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM video_hashtags h WHERE h.organisation_id = v.organisation_id)`,
		"a selected subquery that takes its organisation_id from the outer query": `SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = v.organisation_id AND d.video_id = v.id) FROM videos v WHERE v.organisation_id = ?`,
		"a subquery in FROM with its own condition":                               `SELECT COUNT(*) FROM (SELECT id FROM videos WHERE organisation_id = ?) AS x`,
		"a UNION with a condition in both queries":                                `SELECT id FROM videos WHERE organisation_id = ? UNION ALL SELECT id FROM accounts WHERE organisation_id = ? ORDER BY 1`,
		"an UPDATE with a condition":                                              `UPDATE videos SET removed = ? WHERE videos.organisation_id = ? AND id IN (?,?)`,
		"an UPDATE with a condition, and with new values from a list":             `WITH u(id, n) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS bigint[])))) UPDATE videos SET latest_views = u.n FROM u WHERE videos.organisation_id = ? AND videos.id = u.id`,
		"a table joined with a list of keys":                                      `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS double precision[])))) SELECT 1 FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id`,
		"a subquery that takes its organisation_id from a list of keys":           `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS uuid[])))) SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id) FROM wanted`,
		"an UPDATE joined with a list of keys":                                    `WITH u(organisation_id, id, n) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS uuid[])), (SELECT CAST(? AS bigint[])))) UPDATE videos SET latest_views = u.n FROM u WHERE videos.organisation_id = u.organisation_id AND videos.id = u.id`,
		"a table joined with a list of keys in JSON":                              `WITH wanted(organisation_id, id) AS (SELECT CAST(value ->> 0 AS text), CAST(value ->> 1 AS double precision) FROM json_each(?)) SELECT 1 FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id`,
		"a DELETE with a condition":                                               `DELETE FROM collections WHERE organisation_id = ? AND id = ?`,
		"an INSERT that names organisation_id in its conflict target":             `INSERT INTO "videos" ("organisation_id","id") VALUES ($1,$2),($3,$4) ON CONFLICT ("organisation_id","id") DO UPDATE SET "removed" = "excluded"."removed" RETURNING "id"`,
		"an INSERT whose SELECT has a condition":                                  `INSERT INTO account_days (organisation_id, account_id) SELECT a.organisation_id, a.id FROM accounts a WHERE a.organisation_id = ? ON CONFLICT (organisation_id, account_id, day) DO NOTHING`,
		"a recursive query with a condition in both halves":                       `WITH RECURSIVE b AS (SELECT c.id FROM collections c WHERE c.organisation_id = ? UNION SELECT d.id FROM collections d JOIN b ON b.id = d.parent_id WHERE d.organisation_id = ?) SELECT id FROM b`,
		"an UPDATE of a table that has no organisation_id":                        `UPDATE fetch_targets SET token = NULL WHERE external_id IN (?) AND token = ?`,
		"an UPDATE of fetch_targets that skips locked rows":                       `WITH due AS MATERIALIZED (SELECT bucket FROM fetch_targets WHERE lane = ? LIMIT ? FOR UPDATE SKIP LOCKED) UPDATE fetch_targets SET token = ? FROM due WHERE fetch_targets.bucket = due.bucket RETURNING fetch_targets.source`,
		"a literal that contains now() and OR":                                    `SELECT 1 FROM videos WHERE organisation_id = ? AND title <> 'it''s now() OR random()'`,
		"a comment that contains now() and OR":                                    "SELECT 1 /* OR now() */ FROM videos -- OR TRUE\n WHERE organisation_id = ?",
		"an OR inside of a CASE, after a condition":                               `SELECT 1 FROM videos WHERE organisation_id = ? AND CASE WHEN removed OR private THEN 1 ELSE 0 END = ?`,
		"a condition beside IS NOT DISTINCT FROM":                                 `SELECT 1 FROM videos WHERE organisation_id = ? AND title IS NOT DISTINCT FROM ?`,
		"CREATE TABLE for a partition of one month":                               `CREATE TABLE IF NOT EXISTS snapshots_daily_202601 PARTITION OF snapshots_daily FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`,
		"LOCK TABLE for a partition of one month":                                 `LOCK TABLE snapshots_daily_202601 IN SHARE ROW EXCLUSIVE MODE`,
		"DROP TABLE for a partition of one month":                                 `DROP TABLE snapshots_daily_202601`,
		"SET LOCAL lock_timeout":                                                  `SET LOCAL lock_timeout = '2s'`,
		"SET LOCAL statement_timeout":                                             `SET LOCAL statement_timeout = 0`,
		"ATTACH PARTITION for a partition of one month":                           `ALTER TABLE snapshots_daily ATTACH PARTITION snapshots_daily_202601 FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`,
		"ALTER TABLE that drops a constraint":                                     `ALTER TABLE events DROP CONSTRAINT events_organisation_id_fkey`,
		"a query of a partition, with a condition":                                `SELECT 1 FROM snapshots_daily_202601 WHERE organisation_id = ?`,
		"columns with the names 'date' and 'now'":                                 `SELECT date, now FROM videos WHERE organisation_id = ?`,
		"a savepoint":                          `SAVEPOINT sp1`,
		"EXPLAIN of a query with a condition":  `EXPLAIN QUERY PLAN SELECT 1 FROM videos WHERE organisation_id = ?`,
		"two statements with a condition each": `DELETE FROM videos WHERE organisation_id = ?; DELETE FROM accounts WHERE organisation_id = ?;`,
		"an advisory lock":                     `SELECT pg_advisory_xact_lock(7261350812)`,
		"an EXISTS inside of an EXISTS, each compared with its outer query":          `SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM collections c WHERE c.organisation_id = v.organisation_id AND EXISTS (SELECT 1 FROM collection_videos m WHERE m.organisation_id = c.organisation_id AND m.video_id = v.id))`,
		"a LATERAL subquery that takes its organisation_id from the preceding table": `SELECT 1 FROM videos v, LATERAL (SELECT 1 FROM accounts a WHERE a.organisation_id = v.organisation_id) x WHERE v.organisation_id = ?`,
		"an UPDATE whose subquery takes its organisation_id from the updated table":  `UPDATE accounts SET total_views = (SELECT SUM(v.latest_views) FROM videos v WHERE v.organisation_id = accounts.organisation_id) WHERE organisation_id = ?`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, storetest.CheckStatement(statement))
		})
	}
}

func TestCheckStatement_refusesStatementsThatBreakARule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ statement, because string }{
		"DROP TABLE for the whole table":                                                  {`DROP TABLE snapshots_daily`, "DROP is allowed only to change the partition of one month"},
		"DROP TABLE for a partition and another table":                                    {`DROP TABLE snapshots_daily_202601, videos`, "DROP is allowed only to change the partition of one month"},
		"ALTER TABLE that drops a column":                                                 {`ALTER TABLE videos DROP COLUMN title`, "ALTER is allowed only to change the partition of one month"},
		"ATTACH PARTITION for another table":                                              {`ALTER TABLE snapshots_daily ATTACH PARTITION videos DEFAULT`, "ALTER is allowed only to change the partition of one month"},
		"SET without LOCAL":                                                               {`SET lock_timeout = '2s'`, "SET is allowed only to change the partition of one month"},
		"a query without a condition":                                                     {`SELECT * FROM videos`, `the statement does not restrict the table "videos" to one organisation`},
		"a query with a condition on the id only":                                         {`SELECT * FROM videos WHERE id = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"an UPDATE with a condition on the id only":                                       {`UPDATE videos SET removed = ? WHERE id = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"an UPDATE without a condition":                                                   {`UPDATE videos SET removed = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"a DELETE with a condition on the id only":                                        {`DELETE FROM videos WHERE id = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"a DELETE whose USING table has no condition":                                     {`DELETE FROM videos USING accounts a WHERE videos.organisation_id = ?`, `the statement does not restrict the table "a" to one organisation`},
		"a table joined by its id only":                                                   {`SELECT 1 FROM videos v JOIN accounts a ON a.id = v.linked_account_id WHERE v.organisation_id = ?`, `the statement does not restrict the table "a" to one organisation`},
		"a second table in FROM without a condition":                                      {`SELECT 1 FROM videos v, accounts a WHERE v.organisation_id = ? AND a.id = v.linked_account_id`, `the statement does not restrict the table "a" to one organisation`},
		"two joined tables that are only compared with each other":                        {`SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id`, `the statement does not restrict the table "v" to one organisation`},
		"organisation_id compared with itself":                                            {`SELECT 1 FROM videos v WHERE v.organisation_id = v.organisation_id`, `the statement does not restrict the table "v" to one organisation`},
		"organisation_id compared with another column":                                    {`SELECT 1 FROM videos v WHERE v.organisation_id = v.id`, `the statement does not restrict the table "v" to one organisation`},
		"organisation_id compared with a literal":                                         {`SELECT 1 FROM videos v WHERE v.organisation_id = '0190'`, `the statement does not restrict the table "v" to one organisation`},
		"organisation_id compared by >=":                                                  {`SELECT 1 FROM videos v WHERE v.organisation_id >= ?`, `the statement does not restrict the table "v" to one organisation`},
		"a condition after NOT":                                                           {`SELECT 1 FROM videos v WHERE NOT v.organisation_id = ?`, `the statement does not restrict the table "v" to one organisation`},
		"a condition in parentheses after NOT":                                            {`SELECT 1 FROM videos v WHERE NOT (v.organisation_id = ?)`, `the statement does not restrict the table "v" to one organisation`},
		"organisation_id IN a list of parameters":                                         {`SELECT 1 FROM videos v WHERE v.organisation_id IN (?, ?)`, `the statement does not restrict the table "v" to one organisation`},
		"organisation_id compared with ANY of an array":                                   {`SELECT 1 FROM videos v WHERE v.organisation_id = ANY($1)`, `the statement does not restrict the table "v" to one organisation`},
		"a table joined with a list of keys by the id only":                               {`WITH wanted(organisation_id, id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS uuid[])))) SELECT 1 FROM wanted CROSS JOIN videos v WHERE v.id = wanted.id`, `the statement does not restrict the table "v" to one organisation`},
		"a list of keys without a column organisation_id":                                 {`WITH wanted(id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, `the statement does not restrict the table "v" to one organisation`},
		"a list that is made with VALUES":                                                 {`WITH wanted(organisation_id) AS (VALUES (?)) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, `the statement does not restrict the table "v" to one organisation`},
		"a list that is made from an array literal":                                       {`WITH wanted(organisation_id) AS (SELECT * FROM unnest((SELECT CAST('{0190}' AS uuid[])))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "a FROM clause has the function unnest()"},
		"a list that is made from an array of selected ids":                               {`WITH wanted(organisation_id) AS (SELECT * FROM unnest((SELECT CAST(ARRAY(SELECT id FROM organisations) AS uuid[])))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "a FROM clause has the function unnest()"},
		"a list combined with a query by UNION ALL":                                       {`WITH wanted(organisation_id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[]))) UNION ALL SELECT id FROM organisations) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "a FROM clause has the function unnest()"},
		"a list in JSON, of which only a constant organisation_id is selected":            {`WITH wanted(organisation_id) AS (SELECT CAST('0190' AS text) FROM json_each(?)) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "a FROM clause has the function json_each()"},
		"a list in JSON that contains the rows of a table":                                {`WITH wanted(organisation_id) AS (SELECT CAST(value ->> 0 AS text) FROM json_each((SELECT json_group_array(id) FROM organisations))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "a FROM clause has the function json_each()"},
		"a WITH query that selects the ids of all organisations":                          {`WITH wanted(organisation_id) AS (SELECT id FROM organisations) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, `the statement does not restrict the table "v" to one organisation`},
		"an OR after a comparison with a list":                                            {`WITH wanted(organisation_id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id OR v.removed`, `the statement does not restrict the table "v" to one organisation`},
		"a condition beside an OR":                                                        {`SELECT 1 FROM videos v WHERE v.organisation_id = ? OR v.id = ?`, `the statement does not restrict the table "v" to one organisation`},
		"a condition and an OR in the same parentheses":                                   {`SELECT 1 FROM videos v WHERE (v.organisation_id = ? AND v.removed OR v.private) AND v.id = ?`, `the statement does not restrict the table "v" to one organisation`},
		"a condition inside of a CASE":                                                    {`SELECT 1 FROM videos v WHERE CASE WHEN v.removed AND v.organisation_id = ? AND v.private THEN 1 END = ?`, `the statement does not restrict the table "v" to one organisation`},
		"a comparison in the selected columns":                                            {`SELECT v.organisation_id = ? FROM videos v`, `the statement does not restrict the table "v" to one organisation`},
		"a condition in a comment":                                                        {"SELECT 1 FROM videos v WHERE v.id = ? -- AND v.organisation_id = ?", `the statement does not restrict the table "v" to one organisation`},
		"a condition in a literal":                                                        {`SELECT 1 FROM videos v WHERE v.title = 'v.organisation_id = ?'`, `the statement does not restrict the table "v" to one organisation`},
		"a condition on a name that is not the alias of the table":                        {`SELECT 1 FROM videos v WHERE videos.organisation_id = ?`, `the statement does not restrict the table "v" to one organisation`},
		"a column without the name of its table in a query of two tables":                 {`SELECT 1 FROM videos v JOIN fetch_targets t ON t.external_id = v.external_id WHERE organisation_id = ?`, `the statement does not restrict the table "v" to one organisation`},
		"a LEFT JOIN whose ON restricts only the left table":                              {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = v.organisation_id AND v.organisation_id = ?`, `the statement does not restrict the table "v" to one organisation`},
		"a LEFT JOIN whose ON restricts only the right table":                             {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = ? AND a.organisation_id = v.organisation_id`, `the statement does not restrict the table "v" to one organisation`},
		"a LEFT JOIN by the id only":                                                      {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.id = v.linked_account_id WHERE v.organisation_id = ?`, `the statement does not restrict the table "a" to one organisation`},
		"a RIGHT JOIN":                                                                    {`SELECT 1 FROM videos v RIGHT JOIN accounts a ON a.organisation_id = v.organisation_id WHERE v.organisation_id = ?`, "right"},
		"a NATURAL JOIN":                                                                  {`SELECT 1 FROM videos v NATURAL JOIN accounts a WHERE v.organisation_id = ?`, "natural"},
		"a join with USING (id)":                                                          {`SELECT 1 FROM videos v JOIN video_hashtags h USING (id) WHERE v.organisation_id = ?`, `the statement does not restrict the table "h" to one organisation`},
		"a JOIN in parentheses, by the id only":                                           {`SELECT 1 FROM (videos v JOIN accounts a ON a.id = v.linked_account_id) WHERE v.organisation_id = ?`, `the statement does not restrict the table "a" to one organisation`},
		"a table joined with itself, with only one condition":                             {`SELECT 1 FROM videos a JOIN videos b ON b.id = a.id WHERE a.organisation_id = ?`, `the statement does not restrict the table "b" to one organisation`},
		"an IN subquery without a condition":                                              {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND v.id IN (SELECT video_id FROM collection_videos WHERE collection_id = ?)`, `the statement does not restrict the table "collection_videos" to one organisation`},
		"an EXISTS subquery without a condition":                                          {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM video_hashtags h WHERE h.video_id = v.id)`, `the statement does not restrict the table "h" to one organisation`},
		"an EXISTS subquery that has no condition, after an OR":                           {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND (v.removed OR EXISTS (SELECT 1 FROM video_hashtags h WHERE h.video_id = v.id))`, `the statement does not restrict the table "h" to one organisation`},
		"a FROM subquery without a condition":                                             {`SELECT 1 FROM (SELECT * FROM videos) AS v WHERE v.organisation_id = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"a table joined with a subquery whose table has no condition":                     {`SELECT 1 FROM videos v JOIN (SELECT organisation_id FROM organisations) o ON o.organisation_id = v.organisation_id`, `the statement does not restrict the table "v" to one organisation`},
		"a subquery in FROM, without LATERAL, that refers to a table before the subquery": {`SELECT 1 FROM videos v, (SELECT 1 FROM accounts a WHERE a.organisation_id = v.organisation_id) x WHERE v.organisation_id = ?`, `the statement does not restrict the table "a" to one organisation`},
		"a selected subquery that has no condition":                                       {`SELECT (SELECT COUNT(*) FROM videos) FROM organisations`, `the statement does not restrict the table "videos" to one organisation`},
		"an ORDER BY subquery without a condition":                                        {`SELECT 1 FROM videos v WHERE v.organisation_id = ? ORDER BY (SELECT MAX(views) FROM snapshots_daily d WHERE d.video_id = v.id)`, `the statement does not restrict the table "d" to one organisation`},
		"a WITH query without a condition":                                                {`WITH x AS (SELECT id FROM videos) SELECT id FROM x`, `the statement does not restrict the table "videos" to one organisation`},
		"a UNION with a condition in the first query only":                                {`SELECT id FROM videos WHERE organisation_id = ? UNION SELECT id FROM accounts WHERE id = ?`, `the statement does not restrict the table "accounts" to one organisation`},
		"a recursive query with a condition in the first half only":                       {`WITH RECURSIVE b AS (SELECT c.organisation_id, c.id FROM collections c WHERE c.organisation_id = ? UNION SELECT d.organisation_id, d.id FROM collections d JOIN b ON b.organisation_id = d.organisation_id AND b.id = d.parent_id) SELECT id FROM b`, `the statement does not restrict the table "d" to one organisation`},
		"an UPDATE whose second table, in FROM, has no condition":                         {`UPDATE videos SET latest_views = a.total_views FROM accounts a WHERE videos.organisation_id = ? AND a.id = videos.linked_account_id`, `the statement does not restrict the table "a" to one organisation`},
		"an UPDATE whose SET has a subquery without a condition":                          {`UPDATE accounts SET total_views = (SELECT SUM(latest_views) FROM videos) WHERE organisation_id = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"an INSERT whose SELECT has no condition":                                         {`INSERT INTO account_days (organisation_id, account_id) SELECT organisation_id, id FROM accounts`, `the statement does not restrict the table "accounts" to one organisation`},
		"an INSERT without the column organisation_id":                                    {`INSERT INTO videos (id, title) VALUES (?, ?)`, "the column list of an insert into videos lacks organisation_id"},
		"an INSERT without a list of columns":                                             {`INSERT INTO videos VALUES (?, ?)`, "cannot read"},
		"an INSERT of DEFAULT VALUES":                                                     {`INSERT INTO videos DEFAULT VALUES`, "an INSERT does not name its columns"},
		"a conflict target without organisation_id":                                       {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, "conflict target"},
		"ON CONFLICT without a conflict target":                                           {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT DO NOTHING`, "conflict target"},
		"a subquery in DO UPDATE":                                                         {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET title = (SELECT name FROM organisations)`, "an INSERT has a subquery in ON CONFLICT"},
		"a subquery in VALUES":                                                            {`INSERT INTO videos (organisation_id, id) VALUES (?, (SELECT id FROM organisations LIMIT 1))`, "an INSERT has a subquery in VALUES"},
		"an UPDATE that changes organisation_id":                                          {`UPDATE videos SET organisation_id = ? WHERE organisation_id = ?`, "organisation_id of a row is changed"},
		"an UPDATE that changes organisation_id in a list of columns":                     {`UPDATE videos SET (title, organisation_id) = (?, ?) WHERE organisation_id = ?`, "organisation_id of a row is changed"},
		"a DO UPDATE that changes organisation_id":                                        {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET "organisation_id" = "excluded"."organisation_id"`, "organisation_id of a row is changed"},
		"now()": {`UPDATE videos SET latest_updated_at = now() WHERE organisation_id = ?`, `"now" is not allowed`},
		"NOW () with a blank before the parentheses": {`UPDATE videos SET latest_updated_at = NOW () WHERE organisation_id = ?`, `"now" is not allowed`},
		"random()":                      {`UPDATE videos SET latest_views = random() WHERE organisation_id = ?`, `"random" is not allowed`},
		"gen_random_uuid() on conflict": {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET id = gen_random_uuid()`, `"gen_random_uuid" is not allowed`},
		"clock_timestamp() in a query without a table":          {`SELECT clock_timestamp()`, `"clock_timestamp" is not allowed`},
		"CURRENT_TIMESTAMP":                                     {`DELETE FROM quota_windows WHERE win < CURRENT_TIMESTAMP`, `"current_timestamp" is not allowed`},
		"SQLite's clock":                                        {`DELETE FROM quota_windows WHERE win < date('now')`, `"date" is not allowed`},
		"nextval() of a sequence":                               {`INSERT INTO quota_windows (source, win, used) VALUES (?, ?, nextval('s'))`, `"nextval" is not allowed`},
		"a function with a quoted name":                         {`SELECT "now"()`, `"now" is not allowed`},
		"a table that db.Tables does not list":                  {`SELECT 1 FROM video_notes WHERE organisation_id = ?`, `table "video_notes" is missing in db.Tables`},
		"a query of a partition, without a condition":           {`SELECT 1 FROM snapshots_daily_202601 WHERE day = ?`, `the statement does not restrict the table "snapshots_daily_202601" to one organisation`},
		"a quoted table without a condition":                    {`SELECT 1 FROM "videos" WHERE "id" = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"a schema name, a dot and a table, without a condition": {`SELECT 1 FROM public . "videos" WHERE id = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"a table name in capital letters, without a condition":  {`SELECT 1 FROM VIDEOS WHERE ID = ?`, `the statement does not restrict the table "videos" to one organisation`},
		"two statements, the second without a condition":        {`SELECT 1; SELECT * FROM videos`, `the statement does not restrict the table "videos" to one organisation`},
		"EXPLAIN of a DELETE without a condition":               {`EXPLAIN ANALYZE DELETE FROM videos`, `the statement does not restrict the table "videos" to one organisation`},
		"CREATE TABLE that copies the rows of a table":          {`CREATE TABLE video_copies AS SELECT * FROM videos`, "copies rows"},
		"CREATE VIEW":                   {`CREATE VIEW all_videos AS TABLE videos`, "copies rows"},
		"TRUNCATE":                      {`TRUNCATE videos`, `a statement begins with "truncate"`},
		"MERGE":                         {`MERGE INTO videos USING accounts a ON true WHEN MATCHED THEN DELETE`, `a statement begins with "merge"`},
		"TABLE":                         {`TABLE videos`, `a statement begins with "table"`},
		"a function in FROM":            {`SELECT 1 FROM json_each(?)`, "a FROM clause has the function json_each()"},
		"an unclosed parenthesis":       {`SELECT 1 FROM videos WHERE (organisation_id = ?`, "a parenthesis is not closed"},
		"an extra parenthesis":          {`SELECT 1 FROM videos) WHERE organisation_id = ?`, "a parenthesis was not opened"},
		"a quote that is not closed":    {`SELECT 1 FROM videos WHERE title = 'a AND organisation_id = ?`, "a quote is not closed"},
		"a comment inside of a comment": {`SELECT 1 FROM videos /* /* */ WHERE organisation_id = ? */`, "comment"},
		"a string between dollar signs": {`SELECT 1 FROM videos WHERE title = $$ WHERE organisation_id = ? $$`, "dollar"},
		"a string with escapes":         {`SELECT 1 FROM videos WHERE title = E'\' AND organisation_id = ? --'`, "escapes"},
		"a query without a condition, after a WITH query named v": {`WITH v AS (SELECT 1) SELECT 1 FROM videos`, `the statement does not restrict the table "videos" to one organisation`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := storetest.CheckStatement(c.statement)
			require.ErrorContains(t, err, c.because)
			require.ErrorContains(t, err, c.statement)
		})
	}
}

func TestCheckRouting_acceptsStatementsForOneOrganisation(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"a list of keys whose SELECT locks rows":                       `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) SELECT v.* FROM wanted CROSS JOIN videos v WHERE v.organisation_id = ? AND v.id = wanted.id FOR UPDATE OF v`,
		"a subquery that compares organisation_id with a parameter":    `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = ? AND d.video_id = wanted.id) FROM wanted`,
		"an UPDATE joined with a list of keys":                         `WITH u(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) UPDATE videos SET removed = ? FROM u WHERE videos.organisation_id = ? AND videos.id = u.id`,
		"an INSERT of two rows of VALUES":                              `INSERT INTO videos (organisation_id, id) VALUES (?, ?), (?, ?) ON CONFLICT (organisation_id, id) DO NOTHING`,
		"an INSERT whose SELECT has a condition":                       `INSERT INTO account_days (organisation_id, account_id) SELECT a.organisation_id, a.id FROM accounts a WHERE a.organisation_id = ? AND NOT a.removed`,
		"an INSERT whose SELECT reads a subquery that has a condition": `INSERT INTO snapshots_weekly (organisation_id, video_id) SELECT r.organisation_id, r.video_id FROM (SELECT d.organisation_id, d.video_id FROM snapshots_daily d WHERE d.organisation_id = ?) r WHERE r.video_id > ?`,
		"a LEFT JOIN on organisation_id":                               `SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = v.organisation_id AND a.id = v.linked_account_id WHERE v.organisation_id = ?`,
		"a coordinator table joined with a list of keys":               `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) UPDATE webhook_queue SET due_at = ? FROM wanted WHERE webhook_queue.organisation_id = wanted.organisation_id`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, storetest.CheckStatement(statement))
			require.NoError(t, storetest.CheckRouting(statement))
		})
	}
}

// Some of the refused statements name no organisation. Others take the organisation from a list. On a real cluster, such statements failed or
// ran on all shards.
func TestCheckRouting_refusesStatementsThatTakeTheOrganisationFromAList(t *testing.T) {
	t.Parallel()
	const list = `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) `
	for name, c := range map[string]struct{ statement, because string }{
		"a list of keys whose SELECT locks rows":                                  {list + `SELECT v.* FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id FOR UPDATE OF v`, `the statement does not restrict the table "v" to one organisation`},
		"a subquery that takes its organisation_id from a list of keys":           {list + `SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id) FROM wanted`, `the statement does not restrict the table "d" to one organisation`},
		"an UPDATE joined with a list of keys":                                    {list + `UPDATE videos SET removed = ? FROM wanted WHERE videos.organisation_id = wanted.organisation_id AND videos.id = wanted.id`, `the statement does not restrict the table "videos" to one organisation`},
		"a subquery that takes its organisation_id from the outer query":          {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM video_hashtags h WHERE h.organisation_id = v.organisation_id)`, `the statement does not restrict the table "h" to one organisation`},
		"an INSERT from a list of keys":                                           {list + `INSERT INTO videos (organisation_id, id) SELECT organisation_id, id FROM wanted WHERE true`, "an INSERT into videos selects rows without restricting them to one organisation"},
		"an INSERT whose subquery takes its organisation_id from the outer query": {list + `INSERT INTO account_days (organisation_id, account_id, day) SELECT a.organisation_id, a.id, (SELECT MAX(d.day) FROM account_days d WHERE d.organisation_id = a.organisation_id) FROM wanted CROSS JOIN accounts a WHERE a.organisation_id = ?`, `the statement does not restrict the table "d" to one organisation`},
		"a UNION with a condition in the first query only":                        {`SELECT id FROM videos WHERE organisation_id = ? UNION SELECT id FROM accounts`, `the statement does not restrict the table "accounts" to one organisation`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := storetest.CheckRouting(c.statement)
			require.ErrorContains(t, err, c.because)
			require.ErrorContains(t, err, c.statement)
		})
	}
}

// The guard must refuse these statements for lists of every length. On a real Citus cluster, the two statements
// that begin with WITH failed if the list had two or more rows.
func TestCheckRouting_refusesStatementsThatFailedOnARealCluster(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"locked rows joined with a list that is made with VALUES": `WITH wanted(organisation_id, id) AS (VALUES {rows}) SELECT v.* FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id FOR UPDATE OF v`,
		"two subqueries compared with a list that is made with VALUES": `WITH wanted(organisation_id, id) AS (VALUES {rows}) SELECT wanted.id, (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id)
 - (SELECT MIN(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id) FROM wanted`,
		"locked rows joined with VALUES in the FROM clause": `SELECT v.* FROM (VALUES {rows}) AS wanted(organisation_id, id), videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id FOR UPDATE OF v`,
	} {
		// Citus replaced a list of one row by constants, so the statements with such a list worked.
		for length, rows := range []string{"(?, ?)", "(?, ?), (?, ?)", "(?, ?), (?, ?), (?, ?)"} {
			t.Run(fmt.Sprintf("%s, with %d rows in the list", name, length+1), func(t *testing.T) {
				t.Parallel()
				broken := strings.ReplaceAll(statement, "{rows}", rows)
				require.ErrorContains(t, storetest.CheckRouting(broken), "organisation_id = ? is missing")
				require.NoError(t, storetest.CheckRouting(strings.NewReplacer("v.organisation_id = wanted.organisation_id", "v.organisation_id = ?",
					"d.organisation_id = wanted.organisation_id", "d.organisation_id = ?").Replace(broken)))
			})
		}
	}
}

// Each condition of a statement names one organisation, and so does each inserted row. The Guard must refuse a statement whose conditions or
// rows name different organisations.
func TestGuard_refusesParametersOfSeveralOrganisations(t *testing.T) {
	t.Parallel()
	a, b := uuid.New(), uuid.New()
	for name, c := range map[string]struct {
		statement string
		args      []any // arguments with which the statement is accepted, because they contain only one organisation
		at        []int // positions in args that contain an organisation; the test changes the organisation at one position at a time
		routed    bool  // true if CheckRouting refuses the changed arguments and CheckStatement accepts them
	}{
		"two conditions with different organisations":                            {`SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = ? WHERE v.organisation_id = ? AND v.title = ?`, []any{a, a, "title"}, []int{0, 1}, false},
		"numbered parameters in a query and its subquery":                        {`SELECT 1 FROM videos v WHERE v.title = $3 AND v.organisation_id = $2 AND EXISTS (SELECT 1 FROM accounts a WHERE a.organisation_id = $1)`, []any{a, &a, "title"}, []int{0, 1}, false},
		"a condition in a query and a condition in its subquery":                 {`SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = ?) FROM videos v WHERE v.organisation_id = ?`, []any{a, a.String()}, []int{0, 1}, false},
		"conditions in both queries of a UNION":                                  {`SELECT id FROM videos WHERE organisation_id = ? UNION ALL SELECT id FROM accounts WHERE organisation_id = CAST(? AS uuid)`, []any{a, pgtype.UUID{Bytes: a, Valid: true}}, []int{0, 1}, false},
		"conditions in a WITH query and in the UPDATE after it":                  {`WITH x AS (SELECT id FROM videos WHERE organisation_id = ?) UPDATE accounts SET total_views = ? FROM x WHERE accounts.organisation_id = ? AND accounts.id = x.id`, []any{a, 5, a}, []int{0, 2}, false},
		"an INSERT for one organisation whose SELECT reads another organisation": {`INSERT INTO video_hashtags (tag, organisation_id, video_id) SELECT ?, ?, v.id FROM videos v WHERE v.organisation_id = ?`, []any{"tag", a, a}, []int{1, 2}, false},
		"two rows of VALUES with different organisations":                        {`INSERT INTO videos (id, organisation_id) VALUES (?, ?), (?, ?)`, []any{1, a, 2, a}, []int{1, 3}, true},
		"two statements in one text with different organisations":                {`DELETE FROM videos WHERE organisation_id = ?; DELETE FROM accounts WHERE organisation_id = ?`, []any{a, a}, []int{0, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, storetest.CheckRouting(c.statement, c.args...))
			for _, i := range c.at {
				mixed := slices.Clone(c.args)
				mixed[i] = b
				require.ErrorContains(t, storetest.CheckRouting(c.statement, mixed...), "the statement has parameters of several organisations")
				err := storetest.CheckStatement(c.statement, mixed...)
				require.Equal(t, c.routed, err == nil, "%v", err)
			}
		})
	}
}

func FuzzCheckStatement(f *testing.F) {
	for _, s := range []string{
		`SELECT * FROM videos v LEFT JOIN accounts a ON a.id = v.id WHERE v.organisation_id = ?`,
		`WITH RECURSIVE x(a) AS MATERIALIZED (VALUES (1)) INSERT INTO videos AS v (organisation_id) SELECT $1 ON CONFLICT (a) DO UPDATE SET a = b WHERE c RETURNING *`,
		`UPDATE "videos" SET (a, b) = (1, 2) FROM (x JOIN y USING (z)), LATERAL (SELECT 1) WHERE CASE WHEN a BETWEEN 1 AND 2 THEN 3 END`,
		`DELETE FROM a USING b WHERE c /* */ -- d`, `(SELECT 1) UNION`, `WITH`, `INSERT INTO`, `EXPLAIN`, `''''`, "`", `$1$`, `a.b.`, `((`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// CheckStatement must accept s with the valid statement "SELECT 1" appended exactly if it accepts s
		// alone.
		alone, extended := storetest.CheckStatement(s), storetest.CheckStatement(s+"\n;SELECT 1")
		require.Equal(t, alone == nil, extended == nil, "%v / %v", alone, extended)
	})
}

func TestStore_refusesAStatementWithoutAConditionOnTheOrganisation(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierBasic, store.SubscriptionActive)
		require.NoError(t, err)
		inspected, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: func(s string, _ []any) error {
			// Remove the condition on the organisation from the statement.
			return storetest.CheckStatement(strings.Replace(s, "videos.organisation_id =", "videos.id <>", 1))
		}})
		require.NoError(t, err)
		defer func() { require.NoError(t, inspected.Close()) }()
		_, err = inspected.Org(o.ID).Video(t.Context(), store.Ref{ID: store.NewID()})
		require.Error(t, err)
		require.NotErrorIs(t, err, store.ErrNotFound, "a statement that breaks a rule must not run: %v", err)
	})
}

func TestBeforeStatement_runsTheFunctionOnlyOnce(t *testing.T) {
	t.Parallel()
	g, calls := &storetest.Guard{}, 0
	g.BeforeStatement("FROM organisations", func() { calls++ })
	require.NoError(t, g.Inspect("SELECT 1", nil))
	require.Zero(t, calls)
	require.NoError(t, g.Inspect("SELECT 1 FROM organisations", nil))
	require.NoError(t, g.Inspect("SELECT 1 FROM organisations", nil))
	require.Equal(t, 1, calls)
	require.Len(t, g.Statements(), 3)
	require.Empty(t, g.Statements(), "a second call of Statements must return only the statements since the first call")
}
