package storetest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestCheckStatement_acceptsStatementsThatKeepTheRules(t *testing.T) {
	t.Parallel()
	for name, statement := range map[string]string{
		"select bound by the column without alias":         `SELECT * FROM videos WHERE organisation_id = $1 AND id = $2`,
		"select bound by a qualified and quoted column":    `SELECT * FROM "videos" WHERE "videos"."organisation_id" = ? ORDER BY "videos"."id" LIMIT 1`,
		"select from a table with a schema name":           `SELECT * FROM public.videos v WHERE v.organisation_id = $1`,
		"parameter on the left of the equals sign":         `SELECT 1 FROM videos v WHERE $1 = v.organisation_id`,
		"parameter with a cast":                            `SELECT 1 FROM videos v WHERE v.organisation_id = CAST($1 AS uuid) AND v.organisation_id = $2::uuid`,
		"condition in parentheses":                         `SELECT 1 FROM videos v WHERE ((v.organisation_id = ? AND (v.removed OR v.private)))`,
		"condition after a BETWEEN":                        `SELECT 1 FROM snapshots_daily WHERE day BETWEEN ? AND ? AND organisation_id = ?`,
		"table bound by a join":                            `SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id AND a.id = v.linked_account_id WHERE v.organisation_id = ?`,
		"table bound by a chain of joins":                  `SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id JOIN account_days d ON d.organisation_id = a.organisation_id WHERE d.organisation_id = ?`,
		"table bound by USING with organisation_id":        `SELECT 1 FROM videos v JOIN video_hashtags h USING (organisation_id, id) WHERE v.organisation_id = ?`,
		"tables joined by a comma, each bound":             `SELECT 1 FROM videos v, accounts a WHERE v.organisation_id = ? AND a.organisation_id = ?`,
		"left join bound in its ON clause":                 `SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = v.organisation_id WHERE v.organisation_id = ?`,
		"subquery bound by the outer query":                `SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM video_hashtags h WHERE h.organisation_id = v.organisation_id)`,
		"bound subquery in the column list":                `SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = v.organisation_id AND d.video_id = v.id) FROM videos v WHERE v.organisation_id = ?`,
		"bound subquery in the FROM clause":                `SELECT COUNT(*) FROM (SELECT id FROM videos WHERE organisation_id = ?) AS x`,
		"union of two bound queries":                       `SELECT id FROM videos WHERE organisation_id = ? UNION ALL SELECT id FROM accounts WHERE organisation_id = ? ORDER BY 1`,
		"bound update":                                     `UPDATE videos SET removed = ? WHERE videos.organisation_id = ? AND id IN (?,?)`,
		"update from VALUES, bound by a parameter":         `WITH u(id, n) AS (VALUES (?, ?)) UPDATE videos SET latest_views = u.n FROM u WHERE videos.organisation_id = ? AND videos.id = u.id`,
		"table bound by a list of organisations":           `WITH wanted(organisation_id, id) AS (VALUES (CAST(? AS uuid), ?), (?, ?)) SELECT 1 FROM wanted CROSS JOIN videos v WHERE v.organisation_id = wanted.organisation_id AND v.id = wanted.id`,
		"subquery bound by a list of organisations":        `WITH wanted(organisation_id, id) AS (VALUES (?, ?)) SELECT (SELECT MAX(d.views) FROM snapshots_daily d WHERE d.organisation_id = wanted.organisation_id AND d.video_id = wanted.id) FROM wanted`,
		"update bound by a list of organisations":          `WITH u(organisation_id, id, n) AS (VALUES (?, ?, ?)) UPDATE videos SET latest_views = u.n FROM u WHERE videos.organisation_id = u.organisation_id AND videos.id = u.id`,
		"bound delete":                                     `DELETE FROM collections WHERE organisation_id = ? AND id = ?`,
		"insert with organisation_id":                      `INSERT INTO "videos" ("organisation_id","id") VALUES ($1,$2),($3,$4) ON CONFLICT ("organisation_id","id") DO UPDATE SET "removed" = "excluded"."removed" RETURNING "id"`,
		"insert from a bound query":                        `INSERT INTO account_days (organisation_id, account_id) SELECT a.organisation_id, a.id FROM accounts a WHERE a.organisation_id = ? ON CONFLICT (organisation_id, account_id, day) DO NOTHING`,
		"recursive query bound in both halves":             `WITH RECURSIVE b AS (SELECT c.id FROM collections c WHERE c.organisation_id = ? UNION SELECT d.id FROM collections d JOIN b ON b.id = d.parent_id WHERE d.organisation_id = ?) SELECT id FROM b`,
		"update of a coordinator table":                    `UPDATE fetch_targets SET token = NULL WHERE external_id IN (?) AND token = ?`,
		"claim of targets, which are no organisation data": `WITH due AS MATERIALIZED (SELECT bucket FROM fetch_targets WHERE lane = ? LIMIT ? FOR UPDATE SKIP LOCKED) UPDATE fetch_targets SET token = ? FROM due WHERE fetch_targets.bucket = due.bucket RETURNING fetch_targets.source`,
		"keywords in a string literal":                     `SELECT 1 FROM videos WHERE organisation_id = ? AND title <> 'it''s now() OR random()'`,
		"keywords in a comment":                            "SELECT 1 /* OR now() */ FROM videos -- OR TRUE\n WHERE organisation_id = ?",
		"condition beside a CASE that contains an OR":      `SELECT 1 FROM videos WHERE organisation_id = ? AND CASE WHEN removed OR private THEN 1 ELSE 0 END = ?`,
		"IS NOT DISTINCT FROM":                             `SELECT 1 FROM videos WHERE organisation_id = ? AND title IS NOT DISTINCT FROM ?`,
		"creation of a partition":                          `CREATE TABLE IF NOT EXISTS snapshots_daily_202601 PARTITION OF snapshots_daily FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`,
		"lock of a partition":                              `LOCK TABLE snapshots_daily_202601 IN SHARE ROW EXCLUSIVE MODE`,
		"drop of a partition":                              `DROP TABLE snapshots_daily_202601`,
		"SET LOCAL lock_timeout":                           `SET LOCAL lock_timeout = '2s'`,
		"SET LOCAL statement_timeout":                      `SET LOCAL statement_timeout = 0`,
		"attachment of a partition":                        `ALTER TABLE snapshots_daily ATTACH PARTITION snapshots_daily_202601 FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')`,
		"bound select from a partition":                    `SELECT 1 FROM snapshots_daily_202601 WHERE organisation_id = ?`,
		"columns with the names of volatile functions":     `SELECT date, now FROM videos WHERE organisation_id = ?`,
		"a savepoint":                                      `SAVEPOINT sp1`,
		"an explained statement":                           `EXPLAIN QUERY PLAN SELECT 1 FROM videos WHERE organisation_id = ?`,
		"two bound statements":                             `DELETE FROM videos WHERE organisation_id = ?; DELETE FROM accounts WHERE organisation_id = ?;`,
		"advisory lock":                                    `SELECT pg_advisory_xact_lock(7261350812)`,
		"bound EXISTS inside a bound EXISTS":               `SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM collections c WHERE c.organisation_id = v.organisation_id AND EXISTS (SELECT 1 FROM collection_videos m WHERE m.organisation_id = c.organisation_id AND m.video_id = v.id))`,
		"lateral subquery bound by a table beside it":      `SELECT 1 FROM videos v, LATERAL (SELECT 1 FROM accounts a WHERE a.organisation_id = v.organisation_id) x WHERE v.organisation_id = ?`,
		"update with a bound subquery":                     `UPDATE accounts SET total_views = (SELECT SUM(v.latest_views) FROM videos v WHERE v.organisation_id = accounts.organisation_id) WHERE organisation_id = ?`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, storetest.CheckStatement(statement))
		})
	}
}

func TestCheckStatement_refusesStatementsThatBreakARule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ statement, wantError string }{
		"drop of a table":                                             {`DROP TABLE snapshots_daily`, "one month's partition"},
		"drop of a partition and a table":                             {`DROP TABLE snapshots_daily_202601, videos`, "one month's partition"},
		"ALTER TABLE that drops a column":                             {`ALTER TABLE videos DROP COLUMN title`, "one month's partition"},
		"attachment of a table that is not a partition":               {`ALTER TABLE snapshots_daily ATTACH PARTITION videos DEFAULT`, "one month's partition"},
		"SET without LOCAL":                                           {`SET lock_timeout = '2s'`, "one month's partition"},
		"select without a condition":                                  {`SELECT * FROM videos`, "videos is not bound"},
		"select with a condition on the id only":                      {`SELECT * FROM videos WHERE id = ?`, "videos is not bound"},
		"update with a condition on the id only":                      {`UPDATE videos SET removed = ? WHERE id = ?`, "videos is not bound"},
		"update without a condition":                                  {`UPDATE videos SET removed = ?`, "videos is not bound"},
		"delete with a condition on the id only":                      {`DELETE FROM videos WHERE id = ?`, "videos is not bound"},
		"delete with an unbound table in USING":                       {`DELETE FROM videos USING accounts a WHERE videos.organisation_id = ?`, "a is not bound"},
		"table joined by the id only":                                 {`SELECT 1 FROM videos v JOIN accounts a ON a.id = v.linked_account_id WHERE v.organisation_id = ?`, "a is not bound"},
		"tables joined by a comma, one unbound":                       {`SELECT 1 FROM videos v, accounts a WHERE v.organisation_id = ? AND a.id = v.linked_account_id`, "a is not bound"},
		"two tables bound to each other only":                         {`SELECT 1 FROM videos v JOIN accounts a ON a.organisation_id = v.organisation_id`, "v is not bound"},
		"organisation_id compared with itself":                        {`SELECT 1 FROM videos v WHERE v.organisation_id = v.organisation_id`, "v is not bound"},
		"organisation_id compared with another column":                {`SELECT 1 FROM videos v WHERE v.organisation_id = v.id`, "v is not bound"},
		"organisation_id compared with a literal":                     {`SELECT 1 FROM videos v WHERE v.organisation_id = '0190'`, "v is not bound"},
		"organisation_id compared by >=":                              {`SELECT 1 FROM videos v WHERE v.organisation_id >= ?`, "v is not bound"},
		"negated condition":                                           {`SELECT 1 FROM videos v WHERE NOT v.organisation_id = ?`, "v is not bound"},
		"negated condition in parentheses":                            {`SELECT 1 FROM videos v WHERE NOT (v.organisation_id = ?)`, "v is not bound"},
		"organisation_id in a list of parameters":                     {`SELECT 1 FROM videos v WHERE v.organisation_id IN (?, ?)`, "v is not bound"},
		"organisation_id in an array parameter":                       {`SELECT 1 FROM videos v WHERE v.organisation_id = ANY($1)`, "v is not bound"},
		"list of organisations that does not bind the table":          {`WITH wanted(organisation_id, id) AS (VALUES (?, ?)) SELECT 1 FROM wanted CROSS JOIN videos v WHERE v.id = wanted.id`, "v is not bound"},
		"list without organisation_id":                                {`WITH wanted(id) AS (VALUES (?)) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "v is not bound"},
		"list of literals":                                            {`WITH wanted(organisation_id) AS (VALUES ('0190')) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "v is not bound"},
		"list with a subquery":                                        {`WITH wanted(organisation_id) AS (VALUES ((SELECT id FROM organisations LIMIT 1))) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "v is not bound"},
		"union of a list and a query":                                 {`WITH wanted(organisation_id) AS (VALUES (?) UNION ALL SELECT id FROM organisations) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "v is not bound"},
		"query instead of a list":                                     {`WITH wanted(organisation_id) AS (SELECT id FROM organisations) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id`, "v is not bound"},
		"list compared beside an OR":                                  {`WITH wanted(organisation_id) AS (VALUES (?)) SELECT 1 FROM wanted JOIN videos v ON v.organisation_id = wanted.organisation_id OR v.removed`, "v is not bound"},
		"condition beside an OR":                                      {`SELECT 1 FROM videos v WHERE v.organisation_id = ? OR v.id = ?`, "v is not bound"},
		"condition beside an OR in parentheses":                       {`SELECT 1 FROM videos v WHERE (v.organisation_id = ? AND v.removed OR v.private) AND v.id = ?`, "v is not bound"},
		"condition in a CASE":                                         {`SELECT 1 FROM videos v WHERE CASE WHEN v.removed AND v.organisation_id = ? AND v.private THEN 1 END = ?`, "v is not bound"},
		"condition in the column list":                                {`SELECT v.organisation_id = ? FROM videos v`, "v is not bound"},
		"condition in a comment":                                      {"SELECT 1 FROM videos v WHERE v.id = ? -- AND v.organisation_id = ?", "v is not bound"},
		"condition in a string literal":                               {`SELECT 1 FROM videos v WHERE v.title = 'v.organisation_id = ?'`, "v is not bound"},
		"condition on another alias":                                  {`SELECT 1 FROM videos v WHERE videos.organisation_id = ?`, "v is not bound"},
		"condition without alias in a join of two tables":             {`SELECT 1 FROM videos v JOIN fetch_targets t ON t.external_id = v.external_id WHERE organisation_id = ?`, "v is not bound"},
		"condition on the left table in the ON clause of a left join": {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = v.organisation_id AND v.organisation_id = ?`, "v is not bound"},
		"condition on the joined table of a left join only":           {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.organisation_id = ? AND a.organisation_id = v.organisation_id`, "v is not bound"},
		"left join by the id only":                                    {`SELECT 1 FROM videos v LEFT JOIN accounts a ON a.id = v.linked_account_id WHERE v.organisation_id = ?`, "a is not bound"},
		"right join":                                                  {`SELECT 1 FROM videos v RIGHT JOIN accounts a ON a.organisation_id = v.organisation_id WHERE v.organisation_id = ?`, "right"},
		"natural join":                                                {`SELECT 1 FROM videos v NATURAL JOIN accounts a WHERE v.organisation_id = ?`, "natural"},
		"USING without the organisation":                              {`SELECT 1 FROM videos v JOIN video_hashtags h USING (id) WHERE v.organisation_id = ?`, "h is not bound"},
		"unbound table in a group of joins":                           {`SELECT 1 FROM (videos v JOIN accounts a ON a.id = v.linked_account_id) WHERE v.organisation_id = ?`, "a is not bound"},
		"table used twice and bound once":                             {`SELECT 1 FROM videos a JOIN videos b ON b.id = a.id WHERE a.organisation_id = ?`, "b is not bound"},
		"unbound subquery":                                            {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND v.id IN (SELECT video_id FROM collection_videos WHERE collection_id = ?)`, "collection_videos is not bound"},
		"unbound EXISTS":                                              {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND EXISTS (SELECT 1 FROM video_hashtags h WHERE h.video_id = v.id)`, "h is not bound"},
		"unbound EXISTS beside an OR":                                 {`SELECT 1 FROM videos v WHERE v.organisation_id = ? AND (v.removed OR EXISTS (SELECT 1 FROM video_hashtags h WHERE h.video_id = v.id))`, "h is not bound"},
		"unbound subquery in the FROM clause":                         {`SELECT 1 FROM (SELECT * FROM videos) AS v WHERE v.organisation_id = ?`, "videos is not bound"},
		"table bound to a subquery only":                              {`SELECT 1 FROM videos v JOIN (SELECT organisation_id FROM organisations) o ON o.organisation_id = v.organisation_id`, "v is not bound"},
		"subquery without LATERAL bound by a table beside it":         {`SELECT 1 FROM videos v, (SELECT 1 FROM accounts a WHERE a.organisation_id = v.organisation_id) x WHERE v.organisation_id = ?`, "a is not bound"},
		"unbound subquery in the column list":                         {`SELECT (SELECT COUNT(*) FROM videos) FROM organisations`, "videos is not bound"},
		"unbound subquery in ORDER BY":                                {`SELECT 1 FROM videos v WHERE v.organisation_id = ? ORDER BY (SELECT MAX(views) FROM snapshots_daily d WHERE d.video_id = v.id)`, "d is not bound"},
		"unbound query in a WITH clause":                              {`WITH x AS (SELECT id FROM videos) SELECT id FROM x`, "videos is not bound"},
		"union with an unbound half":                                  {`SELECT id FROM videos WHERE organisation_id = ? UNION SELECT id FROM accounts WHERE id = ?`, "accounts is not bound"},
		"recursive query with an unbound half":                        {`WITH RECURSIVE b AS (SELECT c.organisation_id, c.id FROM collections c WHERE c.organisation_id = ? UNION SELECT d.organisation_id, d.id FROM collections d JOIN b ON b.organisation_id = d.organisation_id AND b.id = d.parent_id) SELECT id FROM b`, "d is not bound"},
		"update with an unbound table in FROM":                        {`UPDATE videos SET latest_views = a.total_views FROM accounts a WHERE videos.organisation_id = ? AND a.id = videos.linked_account_id`, "a is not bound"},
		"update with an unbound subquery in SET":                      {`UPDATE accounts SET total_views = (SELECT SUM(latest_views) FROM videos) WHERE organisation_id = ?`, "videos is not bound"},
		"insert from an unbound query":                                {`INSERT INTO account_days (organisation_id, account_id) SELECT organisation_id, id FROM accounts`, "accounts is not bound"},
		"insert without organisation_id":                              {`INSERT INTO videos (id, title) VALUES (?, ?)`, "insert into videos without organisation_id"},
		"insert without column names":                                 {`INSERT INTO videos VALUES (?, ?)`, "cannot read"},
		"insert with DEFAULT VALUES":                                  {`INSERT INTO videos DEFAULT VALUES`, "does not name its columns"},
		"conflict target without organisation_id":                     {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`, "conflict target"},
		"ON CONFLICT without a conflict target":                       {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT DO NOTHING`, "conflict target"},
		"subquery in DO UPDATE":                                       {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET title = (SELECT name FROM organisations)`, "subquery in ON CONFLICT"},
		"subquery in VALUES":                                          {`INSERT INTO videos (organisation_id, id) VALUES (?, (SELECT id FROM organisations LIMIT 1))`, "subquery in VALUES"},
		"update of organisation_id":                                   {`UPDATE videos SET organisation_id = ? WHERE organisation_id = ?`, "organisation_id of a row is changed"},
		"update of organisation_id and another column":                {`UPDATE videos SET (title, organisation_id) = (?, ?) WHERE organisation_id = ?`, "organisation_id of a row is changed"},
		"update of organisation_id on conflict":                       {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET "organisation_id" = "excluded"."organisation_id"`, "organisation_id of a row is changed"},
		"now()":                                                       {`UPDATE videos SET latest_updated_at = now() WHERE organisation_id = ?`, "now: bind"},
		"NOW () with a blank":                                         {`UPDATE videos SET latest_updated_at = NOW () WHERE organisation_id = ?`, "now: bind"},
		"random()":                                                    {`UPDATE videos SET latest_views = random() WHERE organisation_id = ?`, "random: bind"},
		"gen_random_uuid() on conflict":                               {`INSERT INTO videos (organisation_id, id) VALUES (?, ?) ON CONFLICT (organisation_id, id) DO UPDATE SET id = gen_random_uuid()`, "gen_random_uuid: bind"},
		"clock function in a statement without tables":                {`SELECT clock_timestamp()`, "clock_timestamp: bind"},
		"CURRENT_TIMESTAMP":                                           {`DELETE FROM quota_windows WHERE win < CURRENT_TIMESTAMP`, "current_timestamp: bind"},
		"clock function of SQLite":                                    {`DELETE FROM quota_windows WHERE win < date('now')`, "date: bind"},
		"sequence":                                                    {`INSERT INTO quota_windows (source, win, used) VALUES (?, ?, nextval('s'))`, "nextval: bind"},
		"quoted clock function":                                       {`SELECT "now"()`, "now: bind"},
		"table that is not in store.Tables":                           {`SELECT 1 FROM video_notes WHERE organisation_id = ?`, `table "video_notes" is not classified`},
		"unbound select from a partition":                             {`SELECT 1 FROM snapshots_daily_202601 WHERE day = ?`, "snapshots_daily_202601 is not bound"},
		"unbound quoted table":                                        {`SELECT 1 FROM "videos" WHERE "id" = ?`, "videos is not bound"},
		"unbound table with a schema name":                            {`SELECT 1 FROM public . "videos" WHERE id = ?`, "videos is not bound"},
		"unbound table in upper case":                                 {`SELECT 1 FROM VIDEOS WHERE ID = ?`, "videos is not bound"},
		"second statement unbound":                                    {`SELECT 1; SELECT * FROM videos`, "videos is not bound"},
		"explained statement without a condition":                     {`EXPLAIN ANALYZE DELETE FROM videos`, "videos is not bound"},
		"CREATE TABLE AS SELECT":                                      {`CREATE TABLE video_copies AS SELECT * FROM videos`, "copies rows"},
		"CREATE VIEW":                                                 {`CREATE VIEW all_videos AS TABLE videos`, "copies rows"},
		"TRUNCATE":                                                    {`TRUNCATE videos`, `begins with "truncate"`},
		"MERGE":                                                       {`MERGE INTO videos USING accounts a ON true WHEN MATCHED THEN DELETE`, `begins with "merge"`},
		"TABLE":                                                       {`TABLE videos`, `begins with "table"`},
		"function in the FROM clause":                                 {`SELECT 1 FROM json_each(?)`, "json_each() in place of a table"},
		"parenthesis that is not closed":                              {`SELECT 1 FROM videos WHERE (organisation_id = ?`, "parenthesis is not closed"},
		"closing parenthesis without an opening one":                  {`SELECT 1 FROM videos) WHERE organisation_id = ?`, "parenthesis was not opened"},
		"quote that is not closed":                                    {`SELECT 1 FROM videos WHERE title = 'a AND organisation_id = ?`, "quote is not closed"},
		"comment inside a comment":                                    {`SELECT 1 FROM videos /* /* */ WHERE organisation_id = ? */`, "comment"},
		"string in dollar quotes":                                     {`SELECT 1 FROM videos WHERE title = $$ WHERE organisation_id = ? $$`, "dollar"},
		"string with escapes":                                         {`SELECT 1 FROM videos WHERE title = E'\' AND organisation_id = ? --'`, "escapes"},
		"unbound table beside a WITH clause":                          {`WITH v AS (SELECT 1) SELECT 1 FROM videos`, "videos is not bound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := storetest.CheckStatement(c.statement)
			require.ErrorContains(t, err, c.wantError)
			require.ErrorContains(t, err, c.statement)
		})
	}
}

func FuzzCheckStatement_resultDoesNotDependOnNextStatement(f *testing.F) {
	for _, s := range []string{
		`SELECT * FROM videos v LEFT JOIN accounts a ON a.id = v.id WHERE v.organisation_id = ?`,
		`WITH RECURSIVE x(a) AS MATERIALIZED (VALUES (1)) INSERT INTO videos AS v (organisation_id) SELECT $1 ON CONFLICT (a) DO UPDATE SET a = b WHERE c RETURNING *`,
		`UPDATE "videos" SET (a, b) = (1, 2) FROM (x JOIN y USING (z)), LATERAL (SELECT 1) WHERE CASE WHEN a BETWEEN 1 AND 2 THEN 3 END`,
		`DELETE FROM a USING b WHERE c /* */ -- d`, `(SELECT 1) UNION`, `WITH`, `INSERT INTO`, `EXPLAIN`, `''''`, "`", `$1$`, `a.b.`, `((`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		// The result for a statement must be the same if another valid statement follows.
		alone, followed := storetest.CheckStatement(s), storetest.CheckStatement(s+"\n;SELECT 1")
		require.Equal(t, alone == nil, followed == nil, "alone: %v; followed by another statement: %v", alone, followed)
	})
}

func TestStore_returnsErrorOfInspectForUnboundStatement(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierBasic, store.SubscriptionActive)
		require.NoError(t, err)
		unbound, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Inspect: func(s string) error {
			// Remove the condition on the organisation from the statement before the check.
			return storetest.CheckStatement(strings.Replace(s, "videos.organisation_id =", "videos.id <>", 1))
		}})
		require.NoError(t, err)
		defer func() { require.NoError(t, unbound.Close()) }()
		_, err = unbound.Org(o.ID).Video(t.Context(), store.VideoRef{ID: store.NewID()})
		require.Error(t, err)
		require.NotErrorIs(t, err, store.ErrNotFound, "the statement without the condition was run: %v", err)
	})
}

func TestGuardBefore_runsFunctionOnceBeforeMatchingStatement(t *testing.T) {
	t.Parallel()
	g, calls := &storetest.Guard{}, 0
	g.Before("FROM organisations", func() { calls++ })
	require.NoError(t, g.Inspect("SELECT 1"))
	require.Zero(t, calls)
	require.NoError(t, g.Inspect("SELECT 1 FROM organisations"))
	require.NoError(t, g.Inspect("SELECT 1 FROM organisations"))
	require.Equal(t, 1, calls)
	require.Len(t, g.Statements(), 3)
	require.Empty(t, g.Statements(), "Statements returns each statement only once")
}
