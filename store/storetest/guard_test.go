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
		"by its own name":                  `SELECT * FROM videos WHERE organisation_id = $1 AND id = $2`,
		"qualified and quoted":             `SELECT * FROM "videos" WHERE "videos"."organisation_id" = ? ORDER BY "videos"."id" LIMIT 1`,
		"of a schema":                      `SELECT * FROM public.videos v WHERE v.organisation_id = $1`,
		"the parameter first":              `SELECT 1 FROM videos v WHERE $1 = v.organisation_id`,
		"a cast parameter":                 `SELECT 1 FROM videos v WHERE v.organisation_id = CAST($1 AS uuid) AND v.organisation_id = $2::uuid`,
		"in parentheses":                   `SELECT 1 FROM videos v WHERE ((v.organisation_id = ? AND (v.removed OR v.private)))`,
		"after a BETWEEN":                  `SELECT 1 FROM snapshots_daily WHERE day BETWEEN ? AND ? AND organisation_id = ?`,
		"bound by a join":                  `SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id AND a.id = v.linked_account_id WHERE v.organisation_id = ?`,
		"bound by a chain of joins":        `SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id JOIN account_days d ON d.organisation_id = a.organisation_id WHERE d.organisation_id = ?`,
		"bound by USING":                   `SELECT 1 FROM videos v JOIN video_hashtags h USING (organisation_id, id) WHERE v.organisation_id = ?`,
		"joined by a comma":                `SELECT 1 FROM videos v, accounts a WHERE v.organisation_id = ? AND a.organisation_id = ?`,
		"a left join":                      `SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = v.organisation_id WHERE v.organisation_id = ?`,
		"a subquery bound from outside":    `SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM video_hashtags h WHERE h.organisation_id = v.organisation_id)`,
		"a subquery in the columns":        `SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = v.organisation_id AND d.video_id = v.id) FROM videos v WHERE v.organisation_id = ?`,
		"a subquery for a table":           `SELECT COUNT(*) FROM (SELECT id FROM videos WHERE organisation_id = ?) AS x`,
		"a union":                          `SELECT id FROM videos WHERE organisation_id = ? UNION ALL SELECT id FROM accounts WHERE organisation_id = ? ORDER BY 1`,
		"an update":                        `UPDATE videos SET removed = ? WHERE videos.organisation_id = ? AND id IN (?,?)`,
		"an update from values":            `WITH u(id, n) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS bigint[])))) UPDATE videos SET latest_views = u.n FROM u WHERE videos.organisation_id = ? AND videos.id = u.id`,
		"bound by a list":                  `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS double precision[])))) SELECT 1 FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id`,
		"a subquery bound by a list":       `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS uuid[])))) SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id) FROM wanted`,
		"an update from a list":            `WITH u(organisation_id, id, n) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS uuid[])), (SELECT CAST(? AS bigint[])))) UPDATE videos SET latest_views = u.n FROM u WHERE videos.organisation_id = u.organisation_id AND videos.id = u.id`,
		"bound by a list in JSON":          `WITH wanted(organisation_id, id) AS (SELECT CAST(value ->> 0 AS text), CAST(value ->> 1 AS double precision) FROM json_each(?)) SELECT 1 FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id`,
		"a delete":                         `DELETE FROM collections WHERE organisation_id = ? AND id = ?`,
		"an insert":                        `INSERT INTO "videos" ("organisation_id","id") VALUES ($1,$2),($3,$4) ON CONFLICT ("organisation_id","id") DO UPDATE SET "removed" = "excluded"."removed" RETURNING "id"`,
		"an insert from a query":           `INSERT INTO account_days (organisation_id, account_id) SELECT a.organisation_id, a.id FROM accounts a WHERE a.organisation_id = ? ON CONFLICT (organisation_id, account_id, day) DO NOTHING`,
		"a recursive query bound twice":    `WITH RECURSIVE b AS (SELECT c.id FROM collections c WHERE c.organisation_id = ? UNION SELECT d.id FROM collections d JOIN b ON b.id = d.parent_id WHERE d.organisation_id = ?) SELECT id FROM b`,
		"a table without organisations":    `UPDATE fetch_targets SET token = NULL WHERE external_id IN (?) AND token = ?`,
		"a claim":                          `WITH due AS MATERIALIZED (SELECT bucket FROM fetch_targets WHERE lane = ? LIMIT ? FOR UPDATE SKIP LOCKED) UPDATE fetch_targets SET token = ? FROM due WHERE fetch_targets.bucket = due.bucket RETURNING fetch_targets.source`,
		"a word in a literal":              `SELECT 1 FROM videos WHERE organisation_id = ? AND title <> 'it''s now() OR random()'`,
		"a word in a comment":              "SELECT 1 /* OR now() */ FROM videos -- OR TRUE\n WHERE organisation_id = ?",
		"a CASE with an OR":                `SELECT 1 FROM videos WHERE organisation_id = ? AND CASE WHEN removed OR private THEN 1 ELSE 0 END = ?`,
		"IS NOT DISTINCT FROM":             `SELECT 1 FROM videos WHERE organisation_id = ? AND title IS NOT DISTINCT FROM ?`,
		"a partition created":              `CREATE TABLE IF NOT EXISTS snapshots_daily_202601 PARTITION OF snapshots_daily FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`,
		"a partition locked":               `LOCK TABLE snapshots_daily_202601 IN SHARE ROW EXCLUSIVE MODE`,
		"a partition dropped":              `DROP TABLE snapshots_daily_202601`,
		"a limit on the wait for a lock":   `SET LOCAL lock_timeout = '2s'`,
		"a limit on a statement":           `SET LOCAL statement_timeout = 0`,
		"a partition attached":             `ALTER TABLE snapshots_daily ATTACH PARTITION snapshots_daily_202601 FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`,
		"a constraint removed":             `ALTER TABLE events DROP CONSTRAINT events_organisation_id_fkey`,
		"a partition":                      `SELECT 1 FROM snapshots_daily_202601 WHERE organisation_id = ?`,
		"a column named like a function":   `SELECT date, now FROM videos WHERE organisation_id = ?`,
		"a savepoint":                      `SAVEPOINT sp1`,
		"an explained statement":           `EXPLAIN QUERY PLAN SELECT 1 FROM videos WHERE organisation_id = ?`,
		"two statements":                   `DELETE FROM videos WHERE organisation_id = ?; DELETE FROM accounts WHERE organisation_id = ?;`,
		"an advisory lock":                 `SELECT pg_advisory_xact_lock(7261350812)`,
		"an EXISTS two levels down":        `SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM collections c WHERE c.organisation_id = v.organisation_id AND EXISTS (SELECT 1 FROM collection_videos m WHERE m.organisation_id = c.organisation_id AND m.video_id = v.id))`,
		"a lateral subquery":               `SELECT 1 FROM videos v, LATERAL (SELECT 1 FROM accounts a WHERE a.organisation_id = v.organisation_id) x WHERE v.organisation_id = ?`,
		"an update with a bound subselect": `UPDATE accounts SET total_views = (SELECT SUM(v.latest_views) FROM videos v WHERE v.organisation_id = accounts.organisation_id) WHERE organisation_id = ?`,
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
		"a table dropped":                             {`DROP TABLE snapshots_daily`, "only on the partition of one month"},
		"a partition dropped with others":             {`DROP TABLE snapshots_daily_202601, videos`, "only on the partition of one month"},
		"a table changed":                             {`ALTER TABLE videos DROP COLUMN title`, "only on the partition of one month"},
		"another table attached":                      {`ALTER TABLE snapshots_daily ATTACH PARTITION videos DEFAULT`, "only on the partition of one month"},
		"a setting beyond the transaction":            {`SET lock_timeout = '2s'`, "only on the partition of one month"},
		"no condition":                                {`SELECT * FROM videos`, "the table videos to one organisation"},
		"by id alone":                                 {`SELECT * FROM videos WHERE id = ?`, "the table videos to one organisation"},
		"update by id alone":                          {`UPDATE videos SET removed = ? WHERE id = ?`, "the table videos to one organisation"},
		"update of all":                               {`UPDATE videos SET removed = ?`, "the table videos to one organisation"},
		"delete by id alone":                          {`DELETE FROM videos WHERE id = ?`, "the table videos to one organisation"},
		"delete with USING":                           {`DELETE FROM videos USING accounts a WHERE videos.organisation_id = ?`, "the table a to one organisation"},
		"joined by id alone":                          {`SELECT 1 FROM videos v JOIN accounts a ON a.id = v.linked_account_id WHERE v.organisation_id = ?`, "the table a to one organisation"},
		"joined by a comma":                           {`SELECT 1 FROM videos v, accounts a WHERE v.organisation_id = ? AND a.id = v.linked_account_id`, "the table a to one organisation"},
		"joined to each other alone":                  {`SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id`, "the table v to one organisation"},
		"compared with itself":                        {`SELECT 1 FROM videos v WHERE v.organisation_id = v.organisation_id`, "the table v to one organisation"},
		"compared with another column":                {`SELECT 1 FROM videos v WHERE v.organisation_id = v.id`, "the table v to one organisation"},
		"compared with a literal":                     {`SELECT 1 FROM videos v WHERE v.organisation_id = '0190'`, "the table v to one organisation"},
		"compared by >=":                              {`SELECT 1 FROM videos v WHERE v.organisation_id >= ?`, "the table v to one organisation"},
		"negated":                                     {`SELECT 1 FROM videos v WHERE NOT v.organisation_id = ?`, "the table v to one organisation"},
		"negated in parentheses":                      {`SELECT 1 FROM videos v WHERE NOT (v.organisation_id = ?)`, "the table v to one organisation"},
		"IN a list of parameters":                     {`SELECT 1 FROM videos v WHERE v.organisation_id IN (?, ?)`, "the table v to one organisation"},
		"any of an array":                             {`SELECT 1 FROM videos v WHERE v.organisation_id = ANY($1)`, "the table v to one organisation"},
		"next to a list":                              {`WITH wanted(organisation_id, id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])), (SELECT CAST(? AS uuid[])))) SELECT 1 FROM wanted CROSS JOIN videos v WHERE v.id = wanted.id`, "the table v to one organisation"},
		"a list without organisations":                {`WITH wanted(id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "the table v to one organisation"},
		"a list of values":                            {`WITH wanted(organisation_id) AS (VALUES (?)) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "the table v to one organisation"},
		"a list of literals":                          {`WITH wanted(organisation_id) AS (SELECT * FROM unnest((SELECT CAST('{0190}' AS uuid[])))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "unnest() in place of a table"},
		"a list of subqueries":                        {`WITH wanted(organisation_id) AS (SELECT * FROM unnest((SELECT CAST(ARRAY(SELECT id FROM organisations) AS uuid[])))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "unnest() in place of a table"},
		"a list and a query":                          {`WITH wanted(organisation_id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[]))) UNION ALL SELECT id FROM organisations) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "unnest() in place of a table"},
		"a list in JSON with a constant":              {`WITH wanted(organisation_id) AS (SELECT CAST('0190' AS text) FROM json_each(?)) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "json_each() in place of a table"},
		"a list in JSON of rows":                      {`WITH wanted(organisation_id) AS (SELECT CAST(value ->> 0 AS text) FROM json_each((SELECT json_group_array(id) FROM organisations))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "json_each() in place of a table"},
		"a query in place of a list":                  {`WITH wanted(organisation_id) AS (SELECT id FROM organisations) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "the table v to one organisation"},
		"a list next to an OR":                        {`WITH wanted(organisation_id) AS (SELECT * FROM unnest((SELECT CAST(? AS uuid[])))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id OR v.removed`, "the table v to one organisation"},
		"next to an OR":                               {`SELECT 1 FROM videos v WHERE v.organisation_id = ? OR v.id = ?`, "the table v to one organisation"},
		"next to an OR in parentheses":                {`SELECT 1 FROM videos v WHERE (v.organisation_id = ? AND v.removed OR v.private) AND v.id = ?`, "the table v to one organisation"},
		"in a CASE":                                   {`SELECT 1 FROM videos v WHERE CASE WHEN v.removed AND v.organisation_id = ? AND v.private THEN 1 END = ?`, "the table v to one organisation"},
		"in the columns":                              {`SELECT v.organisation_id = ? FROM videos v`, "the table v to one organisation"},
		"in a comment":                                {"SELECT 1 FROM videos v WHERE v.id = ? -- AND v.organisation_id = ?", "the table v to one organisation"},
		"in a literal":                                {`SELECT 1 FROM videos v WHERE v.title = 'v.organisation_id = ?'`, "the table v to one organisation"},
		"with another alias":                          {`SELECT 1 FROM videos v WHERE videos.organisation_id = ?`, "the table v to one organisation"},
		"unqualified between two tables":              {`SELECT 1 FROM videos v JOIN fetch_targets t ON t.external_id = v.external_id WHERE organisation_id = ?`, "the table v to one organisation"},
		"only in the ON of a left join":               {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = v.organisation_id AND v.organisation_id = ?`, "the table v to one organisation"},
		"a left join that binds only its right table": {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = ? AND a.organisation_id = v.organisation_id`, "the table v to one organisation"},
		"a left join by id alone":                     {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.id = v.linked_account_id WHERE v.organisation_id = ?`, "the table a to one organisation"},
		"a right join":                                {`SELECT 1 FROM videos v RIGHT JOIN accounts a ON a.organisation_id = v.organisation_id WHERE v.organisation_id = ?`, "right"},
		"a natural join":                              {`SELECT 1 FROM videos v NATURAL JOIN accounts a WHERE v.organisation_id = ?`, "natural"},
		"USING without the organisation":              {`SELECT 1 FROM videos v JOIN video_hashtags h USING (id) WHERE v.organisation_id = ?`, "the table h to one organisation"},
		"in a group of joins":                         {`SELECT 1 FROM (videos v JOIN accounts a ON a.id = v.linked_account_id) WHERE v.organisation_id = ?`, "the table a to one organisation"},
		"twice, bound once":                           {`SELECT 1 FROM videos a JOIN videos b ON b.id = a.id WHERE a.organisation_id = ?`, "the table b to one organisation"},
		"in a subquery":                               {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND v.id IN (SELECT video_id FROM collection_videos WHERE collection_id = ?)`, "the table collection_videos to one organisation"},
		"in an EXISTS":                                {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM video_hashtags h WHERE h.video_id = v.id)`, "the table h to one organisation"},
		"in an EXISTS next to an OR":                  {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND (v.removed OR EXISTS (SELECT 1 FROM video_hashtags h WHERE h.video_id = v.id))`, "the table h to one organisation"},
		"in a subquery for a table":                   {`SELECT 1 FROM (SELECT * FROM videos) AS v WHERE v.organisation_id = ?`, "the table videos to one organisation"},
		"bound to a subquery":                         {`SELECT 1 FROM videos v JOIN (SELECT organisation_id FROM organisations) o ON o.organisation_id = v.organisation_id`, "the table v to one organisation"},
		"not lateral, bound by a sibling":             {`SELECT 1 FROM videos v, (SELECT 1 FROM accounts a WHERE a.organisation_id = v.organisation_id) x WHERE v.organisation_id = ?`, "the table a to one organisation"},
		"in the columns' subquery":                    {`SELECT (SELECT COUNT(*) FROM videos) FROM organisations`, "the table videos to one organisation"},
		"in an ORDER BY":                              {`SELECT 1 FROM videos v WHERE v.organisation_id = ? ORDER BY (SELECT MAX(views) FROM snapshots_daily d WHERE d.video_id = v.id)`, "the table d to one organisation"},
		"in a WITH":                                   {`WITH x AS (SELECT id FROM videos) SELECT id FROM x`, "the table videos to one organisation"},
		"in one half of a union":                      {`SELECT id FROM videos WHERE organisation_id = ? UNION SELECT id FROM accounts WHERE id = ?`, "the table accounts to one organisation"},
		"in the recursive half":                       {`WITH RECURSIVE b AS (SELECT c.organisation_id, c.id FROM collections c WHERE c.organisation_id = ? UNION SELECT d.organisation_id, d.id FROM collections d JOIN b ON b.organisation_id = d.organisation_id AND b.id = d.parent_id) SELECT id FROM b`, "the table d to one organisation"},
		"the FROM of an update":                       {`UPDATE videos SET latest_views = a.total_views FROM accounts a WHERE videos.organisation_id = ? AND a.id = videos.linked_account_id`, "the table a to one organisation"},
		"the SET of an update":                        {`UPDATE accounts SET total_views = (SELECT SUM(latest_views) FROM videos) WHERE organisation_id = ?`, "the table videos to one organisation"},
		"an insert from all":                          {`INSERT INTO account_days (organisation_id, account_id) SELECT organisation_id, id FROM accounts`, "the table accounts to one organisation"},
		"an insert without the column":                {`INSERT INTO videos (id, title) VALUES (?, ?)`, "insert into videos lacks organisation_id"},
		"an insert without columns":                   {`INSERT INTO videos VALUES (?, ?)`, "cannot read"},
		"an insert of defaults":                       {`INSERT INTO videos DEFAULT VALUES`, "does not name its columns"},
		"a conflict target without it":                {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, "conflict target"},
		"no conflict target":                          {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT DO NOTHING`, "conflict target"},
		"a subquery in DO UPDATE":                     {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET title = (SELECT name FROM organisations)`, "subquery in ON CONFLICT"},
		"a subquery in VALUES":                        {`INSERT INTO videos (organisation_id, id) VALUES (?, (SELECT id FROM organisations LIMIT 1))`, "subquery in VALUES"},
		"a moved row":                                 {`UPDATE videos SET organisation_id = ? WHERE organisation_id = ?`, "organisation_id of a row is changed"},
		"a row moved among others":                    {`UPDATE videos SET (title, organisation_id) = (?, ?) WHERE organisation_id = ?`, "organisation_id of a row is changed"},
		"a row moved on conflict":                     {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET "organisation_id" = "excluded"."organisation_id"`, "organisation_id of a row is changed"},
		"now()":                                       {`UPDATE videos SET latest_updated_at = now() WHERE organisation_id = ?`, "now is not allowed"},
		"NOW () with a blank":                         {`UPDATE videos SET latest_updated_at = NOW () WHERE organisation_id = ?`, "now is not allowed"},
		"random()":                                    {`UPDATE videos SET latest_views = random() WHERE organisation_id = ?`, "random is not allowed"},
		"gen_random_uuid() on conflict":               {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET id = gen_random_uuid()`, "gen_random_uuid is not allowed"},
		"a clock in any statement":                    {`SELECT clock_timestamp()`, "clock_timestamp is not allowed"},
		"CURRENT_TIMESTAMP":                           {`DELETE FROM quota_windows WHERE win < CURRENT_TIMESTAMP`, "current_timestamp is not allowed"},
		"SQLite's clock":                              {`DELETE FROM quota_windows WHERE win < date('now')`, "date is not allowed"},
		"a sequence":                                  {`INSERT INTO quota_windows (source, win, used) VALUES (?, ?, nextval('s'))`, "nextval is not allowed"},
		"a quoted function":                           {`SELECT "now"()`, "now is not allowed"},
		"an unclassified table":                       {`SELECT 1 FROM video_notes WHERE organisation_id = ?`, `table "video_notes" is not classified`},
		"a partition without the condition":           {`SELECT 1 FROM snapshots_daily_202601 WHERE day = ?`, "the table snapshots_daily_202601 to one organisation"},
		"a quoted table":                              {`SELECT 1 FROM "videos" WHERE "id" = ?`, "the table videos to one organisation"},
		"a table of a schema":                         {`SELECT 1 FROM public . "videos" WHERE id = ?`, "the table videos to one organisation"},
		"a table in capitals":                         {`SELECT 1 FROM VIDEOS WHERE ID = ?`, "the table videos to one organisation"},
		"the second of two statements":                {`SELECT 1; SELECT * FROM videos`, "the table videos to one organisation"},
		"an explained statement":                      {`EXPLAIN ANALYZE DELETE FROM videos`, "the table videos to one organisation"},
		"a copied table":                              {`CREATE TABLE video_copies AS SELECT * FROM videos`, "copies rows"},
		"a view":                                      {`CREATE VIEW all_videos AS TABLE videos`, "copies rows"},
		"TRUNCATE":                                    {`TRUNCATE videos`, `begins with "truncate"`},
		"MERGE":                                       {`MERGE INTO videos USING accounts a ON true WHEN MATCHED THEN DELETE`, `begins with "merge"`},
		"TABLE":                                       {`TABLE videos`, `begins with "table"`},
		"a set-returning function":                    {`SELECT 1 FROM json_each(?)`, "json_each() in place of a table"},
		"an unclosed parenthesis":                     {`SELECT 1 FROM videos WHERE (organisation_id = ?`, "parenthesis is not closed"},
		"an extra parenthesis":                        {`SELECT 1 FROM videos) WHERE organisation_id = ?`, "parenthesis was not opened"},
		"an open quote":                               {`SELECT 1 FROM videos WHERE title = 'a AND organisation_id = ?`, "quote is not closed"},
		"a comment in a comment":                      {`SELECT 1 FROM videos /* /* */ WHERE organisation_id = ? */`, "comment"},
		"a string in dollar signs":                    {`SELECT 1 FROM videos WHERE title = $$ WHERE organisation_id = ? $$`, "dollar"},
		"an escaped string":                           {`SELECT 1 FROM videos WHERE title = E'\' AND organisation_id = ? --'`, "escapes"},
		"shadowed by a WITH of another name":          {`WITH v AS (SELECT 1) SELECT 1 FROM videos`, "the table videos to one organisation"},
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
		"rows locked with a list":          `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) SELECT v.* FROM wanted CROSS JOIN videos v WHERE v.organisation_id = ? AND v.id = wanted.id FOR UPDATE OF v`,
		"a subquery with a parameter":      `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = ? AND d.video_id = wanted.id) FROM wanted`,
		"an update from a list":            `WITH u(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) UPDATE videos SET removed = ? FROM u WHERE videos.organisation_id = ? AND videos.id = u.id`,
		"an insert of values":              `INSERT INTO videos (organisation_id, id) VALUES (?, ?), (?, ?) ON CONFLICT (organisation_id, id) DO NOTHING`,
		"an insert from a table":           `INSERT INTO account_days (organisation_id, account_id) SELECT a.organisation_id, a.id FROM accounts a WHERE a.organisation_id = ? AND NOT a.removed`,
		"an insert from a subquery":        `INSERT INTO snapshots_weekly (organisation_id, video_id) SELECT r.organisation_id, r.video_id FROM (SELECT d.organisation_id, d.video_id FROM snapshots_daily d WHERE d.organisation_id = ?) r WHERE r.video_id > ?`,
		"bound by a join":                  `SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = v.organisation_id AND a.id = v.linked_account_id WHERE v.organisation_id = ?`,
		"a list of a table without shards": `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) UPDATE webhook_queue SET due_at = ? FROM wanted WHERE webhook_queue.organisation_id = wanted.organisation_id`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, storetest.CheckStatement(statement))
			require.NoError(t, storetest.CheckRouting(statement))
		})
	}
}

// The refused statements name no organisation, or take it from a list. On a real cluster, such statements failed or ran on all shards.
func TestCheckRouting_refusesStatementsThatTakeTheOrganisationFromAList(t *testing.T) {
	t.Parallel()
	const list = `WITH wanted(organisation_id, id) AS (SELECT * FROM unnest(CAST(? AS uuid[]), CAST(? AS uuid[]))) `
	for name, c := range map[string]struct{ statement, because string }{
		"rows locked with a list":   {list + `SELECT v.* FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id FOR UPDATE OF v`, "the table v to one organisation"},
		"a subquery with a list":    {list + `SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id) FROM wanted`, "the table d to one organisation"},
		"an update from a list":     {list + `UPDATE videos SET removed = ? FROM wanted WHERE videos.organisation_id = wanted.organisation_id AND videos.id = wanted.id`, "the table videos to one organisation"},
		"a correlated subquery":     {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM video_hashtags h WHERE h.organisation_id = v.organisation_id)`, "the table h to one organisation"},
		"an insert from a list":     {list + `INSERT INTO videos (organisation_id, id) SELECT organisation_id, id FROM wanted WHERE true`, "without restricting them to one organisation"},
		"an insert of a list's max": {list + `INSERT INTO account_days (organisation_id, account_id, day) SELECT a.organisation_id, a.id, (SELECT MAX(d.day) FROM account_days d WHERE d.organisation_id = a.organisation_id) FROM wanted CROSS JOIN accounts a WHERE a.organisation_id = ?`, "the table d to one organisation"},
		"one half of a union":       {`SELECT id FROM videos WHERE organisation_id = ? UNION SELECT id FROM accounts`, "the table accounts to one organisation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := storetest.CheckRouting(c.statement)
			require.ErrorContains(t, err, c.because)
			require.ErrorContains(t, err, c.statement)
		})
	}
}

// On a real cluster of Citus, the first two statements failed with lists of two or more rows. With a list of one row they worked, because Citus
// replaced the list by constants. So the guard must refuse lists of every length.
func TestCheckRouting_refusesStatementsThatFailedOnARealCluster(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"rows locked with a list of values": `WITH wanted(organisation_id, id) AS (VALUES {rows}) SELECT v.* FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id FOR UPDATE OF v`,
		"increases with a list of values": `WITH wanted(organisation_id, id) AS (VALUES {rows}) SELECT wanted.id, (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id)
 - (SELECT MIN(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id) FROM wanted`,
		"rows locked with a list in the FROM clause": `SELECT v.* FROM (VALUES {rows}) AS wanted(organisation_id, id), videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id FOR UPDATE OF v`,
	} {
		for length, rows := range []string{"(?, ?)", "(?, ?), (?, ?)", "(?, ?), (?, ?), (?, ?)"} {
			t.Run(fmt.Sprintf("%s of length %d", name, length+1), func(t *testing.T) {
				t.Parallel()
				broken := strings.ReplaceAll(statement, "{rows}", rows)
				require.ErrorContains(t, storetest.CheckRouting(broken), "does not restrict the table")
				require.NoError(t, storetest.CheckRouting(strings.NewReplacer("v.organisation_id = wanted.organisation_id", "v.organisation_id = ?",
					"d.organisation_id = wanted.organisation_id", "d.organisation_id = ?").Replace(broken)))
			})
		}
	}
}

// Every condition or row of a statement can name a single organisation, while two of them name different organisations. The Guard must
// refuse such a statement.
func TestGuard_refusesParametersOfSeveralOrganisations(t *testing.T) {
	t.Parallel()
	a, b := uuid.New(), uuid.New()
	for name, c := range map[string]struct {
		statement string
		args      []any // arguments that are accepted, because the variable a is their only organisation
		at        []int // indexes of the variable a in args; the test replaces one of them by the variable b
		routed    bool  // true if only CheckRouting refuses the changed arguments
	}{
		"two conditions":             {`SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = ? WHERE v.organisation_id = ? AND v.title = ?`, []any{a, a, "title"}, []int{0, 1}, false},
		"numbered parameters":        {`SELECT 1 FROM videos v WHERE v.title = $3 AND v.organisation_id = $2 AND EXISTS (SELECT 1 FROM accounts a WHERE a.organisation_id = $1)`, []any{a, &a, "title"}, []int{0, 1}, false},
		"a subquery":                 {`SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = ?) FROM videos v WHERE v.organisation_id = ?`, []any{a, a.String()}, []int{0, 1}, false},
		"a union":                    {`SELECT id FROM videos WHERE organisation_id = ? UNION ALL SELECT id FROM accounts WHERE organisation_id = CAST(? AS uuid)`, []any{a, pgtype.UUID{Bytes: a, Valid: true}}, []int{0, 1}, false},
		"a query of a WITH clause":   {`WITH x AS (SELECT id FROM videos WHERE organisation_id = ?) UPDATE accounts SET total_views = ? FROM x WHERE accounts.organisation_id = ? AND accounts.id = x.id`, []any{a, 5, a}, []int{0, 2}, false},
		"a selected organisation":    {`INSERT INTO video_hashtags (tag, organisation_id, video_id) SELECT ?, ?, v.id FROM videos v WHERE v.organisation_id = ?`, []any{"tag", a, a}, []int{1, 2}, false},
		"two rows of VALUES":         {`INSERT INTO videos (id, organisation_id) VALUES (?, ?), (?, ?)`, []any{1, a, 2, a}, []int{1, 3}, true},
		"two statements in one text": {`DELETE FROM videos WHERE organisation_id = ?; DELETE FROM accounts WHERE organisation_id = ?`, []any{a, a}, []int{0, 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, storetest.CheckRouting(c.statement, c.args...))
			for _, i := range c.at {
				mixed := slices.Clone(c.args)
				mixed[i] = b
				require.ErrorContains(t, storetest.CheckRouting(c.statement, mixed...), "parameters of several organisations")
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
		// Appending an allowed statement must not change whether the text is accepted.
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
		_, err = inspected.Org(o.ID).Video(t.Context(), store.VideoRef{ID: store.NewID()})
		require.Error(t, err)
		require.NotErrorIs(t, err, store.ErrNotFound, "the statement ran although it breaks a rule: %v", err)
	})
}

func TestBefore_runsTheFunctionOnlyOnce(t *testing.T) {
	t.Parallel()
	g, calls := &storetest.Guard{}, 0
	g.Before("FROM organisations", func() { calls++ })
	require.NoError(t, g.Inspect("SELECT 1", nil))
	require.Zero(t, calls)
	require.NoError(t, g.Inspect("SELECT 1 FROM organisations", nil))
	require.NoError(t, g.Inspect("SELECT 1 FROM organisations", nil))
	require.Equal(t, 1, calls)
	require.Len(t, g.Statements(), 3)
	require.Empty(t, g.Statements(), "Statements resets the list")
}
