package db_test

import (
	"context"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/migrations"
	"github.com/reeltally/reeltally/store/storetest"
)

// runOnEmptyDatabases runs a case on every engine. Each run gets a database of its own, which has no table yet.
func runOnEmptyDatabases(t *testing.T, run func(t *testing.T, db *storetest.DB)) {
	t.Helper()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			run(t, storetest.NewEmpty(t, engine))
		})
	}
}

func TestMigrations_haveTheSameNumbersOnEveryEngine(t *testing.T) {
	t.Parallel()
	names := func(engine string) (names []string) {
		files, err := fs.ReadDir(migrations.Files, engine)
		require.NoError(t, err)
		for _, f := range files {
			names = append(names, f.Name())
		}
		return names
	}
	want := names(storetest.Engines[0])
	require.NotEmpty(t, want)
	for _, engine := range storetest.Engines[1:] {
		require.Equal(t, want, names(engine), engine)
	}
}

func TestMigrations_canBeRevertedAndAppliedAgain(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		before := readCatalog(t, db)
		storetest.CreateOrgWithData(t, db)
		_, err := storetest.Migrations(t, db).DownTo(t.Context(), 0)
		require.NoError(t, err)
		left := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND name NOT LIKE 'goose%'`
		if db.Engine != "sqlite" {
			left = `SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'S') AND relname NOT LIKE 'goose%'`
		}
		require.Empty(t, storetest.Column[string](t, db, left))

		again := db.Open(t) // open the database again, as a second process would, because the first DB still has the dropped partitions in its cache
		applied, err := again.Migrate(t.Context())
		require.NoError(t, err)
		require.NotEmpty(t, applied)
		require.Equal(t, before, readCatalog(t, db))
	})
}

func TestMigrate_appliesEachMigrationOnceIfSeveralProcessesMigrate(t *testing.T) {
	t.Parallel()
	runOnEmptyDatabases(t, func(t *testing.T, db *storetest.DB) {
		const processes = 4
		var wg sync.WaitGroup
		applied, errs := make([][]int64, processes), make([]error, processes)
		for i := range processes {
			s := db.Open(t)
			wg.Go(func() { applied[i], errs[i] = s.Migrate(t.Context()) })
		}
		wg.Wait()
		var all []int64
		for i := range processes {
			require.NoError(t, errs[i])
			all = append(all, applied[i]...)
		}
		require.Len(t, all, len(storetest.Migrations(t, db).ListSources()), "exactly one process must apply each migration")
		require.NoError(t, db.CheckSchema(t.Context()))
	})
}

func TestMigrate_appliesNothingTheSecondTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		applied, err := db.Migrate(t.Context())
		require.NoError(t, err)
		require.Empty(t, applied)
	})
}

func TestMigrate_createsPartitionsOfLastMonthThisMonthAndNextMonth(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := storetest.NewOrg(t, db)
		v := storetest.Track(t, o, storetest.VideoLinks(t, 1)...)[0].ID
		today := store.DateOf(db.Clock.Now())
		for _, day := range []store.Date{today - 31, today, today + 62} {
			db.Exec(t, `INSERT INTO snapshots_daily (organisation_id, video_id, day, week, fetched_at, source) VALUES (?, ?, ?, ?, 0, 'test')`, o.ID(), v, day, day.Week())
		}
	})
}

func TestCheckSchema_acceptsNewerSchemasUntilTheNextGeneration(t *testing.T) {
	t.Parallel()
	runOnEmptyDatabases(t, func(t *testing.T, db *storetest.DB) {
		_, newest, err := storetest.Migrations(t, db).GetVersions(t.Context())
		require.NoError(t, err)

		var wrong *store.SchemaError
		require.ErrorAs(t, db.CheckSchema(t.Context()), &wrong)
		require.Equal(t, store.SchemaError{Have: 0, Want: newest}, *wrong)
		require.ErrorContains(t, wrong, "run `reeltally migrate`")

		_, err = db.Migrate(t.Context())
		require.NoError(t, err)
		require.NoError(t, db.CheckSchema(t.Context()))

		db.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, ?)`, newest+1, true)
		require.NoError(t, db.CheckSchema(t.Context()))
		applied, err := db.Migrate(t.Context())
		require.NoError(t, err)
		require.Empty(t, applied)

		next := (newest/1000 + 1) * 1000
		db.Exec(t, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (?, ?)`, next, true)
		require.ErrorAs(t, db.CheckSchema(t.Context()), &wrong)
		require.Equal(t, store.SchemaError{Have: next, Want: newest}, *wrong)
		require.ErrorContains(t, wrong, "run a newer program")
	})
}

func TestMigrate_stopsIfTheContextIsCancelled(t *testing.T) {
	t.Parallel()
	runOnEmptyDatabases(t, func(t *testing.T, db *storetest.DB) {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := db.Migrate(gone)
		require.ErrorIs(t, err, context.Canceled)
		require.Error(t, db.CheckSchema(t.Context()), "a cancelled Migrate must apply no migration")
	})
}

// Before migration 8, a target has one handle for all organisations. The migration gives each
// subscription the handle from the link that its organisation tracks.
func TestMigrate_storesTheHandleOfEachLinkInItsSubscription(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		l := storetest.ParseLink(t, "https://www.instagram.com/right/reel/CabcdefghiJ/")
		wrong, right, nameless := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		storetest.Track(t, wrong, storetest.ParseLink(t, "https://www.instagram.com/wrong/reel/CabcdefghiJ/"))
		storetest.Track(t, right, l)
		storetest.Track(t, nameless, storetest.ParseLink(t, "https://www.instagram.com/reel/CabcdefghiJ/"))
		_, err := storetest.Migrations(t, db).DownTo(t.Context(), 7)
		require.NoError(t, err)
		db.Exec(t, "UPDATE fetch_targets SET handle = 'wrong'") // before the migration, the target had the handle of the first organisation's link
		_, err = db.Migrate(t.Context())
		require.NoError(t, err)
		target := storetest.ClaimOne(t, db, link.Instagram, "video").Targets[0]
		// No source has confirmed a handle yet.
		require.Empty(t, target.Handle)
		require.ElementsMatch(t, []string{"wrong", "right"}, target.Handles)
	})
}

// Before migration 12, an unknown increase or outlier multiplier is 0.
//
// Requirements in docs/coverage.md: 11.2-03
func TestMigrate_replacesZerosOfUnknownValuesByNull(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, links := storetest.NewOrg(t, db), storetest.VideoLinks(t, 5)
		storetest.Track(t, o, links...)
		fetch := func(daysLater int, views ...*int64) {
			db.Clock.Advance(time.Duration(daysLater) * 24 * time.Hour)
			facts := map[link.Link]ingest.VideoFacts{}
			for i, n := range views {
				facts[links[i]] = ingest.VideoFacts{Views: n, Likes: new(int64(1))}
			}
			storetest.Measure(t, db, db.Clock.Now(), facts)
		}
		fetch(0, new(int64(100)), new(int64(50)), new(int64(0)), nil)
		fetch(20, new(int64(200)), new(int64(70)), new(int64(0)), new(int64(9)))
		fetch(8, new(int64(300)), new(int64(70)), new(int64(0)), nil)
		fetch(1, new(int64(300)), nil, new(int64(0)), nil) // the fifth video is never fetched
		read := func() (videos []store.Video) {
			for _, l := range links {
				videos = append(videos, storetest.VideoOf(t, o, l))
			}
			return videos
		}
		want := read()
		require.Zero(t, *want[0].Increase1d)
		require.Zero(t, *want[1].Increase7d)
		require.Zero(t, *want[2].OutlierMultiplier)
		version, err := o.Version(t.Context())
		require.NoError(t, err)

		_, err = storetest.Migrations(t, db).DownTo(t.Context(), 11)
		require.NoError(t, err)
		require.Equal(t, []float64{0}, storetest.Column[float64](t, db, "SELECT increase_7d FROM videos WHERE organisation_id = ? AND id = ?", o.ID(), want[4].ID))
		_, err = db.Migrate(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, read())
		later, err := o.Version(t.Context())
		require.NoError(t, err)
		require.Greater(t, later.Version, version.Version)
	})
}

// Older programs stored hashtags and captions for searches only in lower case. Migration 39 also composes characters and replaces ς.
func TestMigrate_foldsCaptionsAndHashtags(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, d *storetest.DB) {
		texts := slices.Sorted(maps.Keys(textsToFold))
		o, links := storetest.NewOrg(t, d), storetest.VideoLinksFrom(t, 100, len(texts))
		other := storetest.CreateOrgWithData(t, d)
		videos := storetest.Track(t, o, links...)
		c := storetest.Collection(t, o, "Campaign", nil)
		for _, lost := range []string{"account_days SET views_gained = NULL", "accounts SET views_gained = NULL", "videos SET first_views = NULL",
			"organisation_days SET first_views = NULL", "organisation_totals SET first_views = 0"} {
			d.Exec(t, "UPDATE "+lost) // as after the revert of the migrations that add these columns
		}
		unchanged := storetest.StoredRows(t, d, other)
		versions := func() []int64 {
			return storetest.Column[int64](t, d, "SELECT version FROM organisation_totals UNION ALL SELECT labels_version FROM organisation_totals")
		}
		before := versions()
		_, err := storetest.Migrations(t, d).DownTo(t.Context(), 38)
		require.NoError(t, err)
		want := map[uuid.UUID]string{}
		for i, text := range texts {
			id, old := videos[i].ID, strings.ToLower(text)
			want[id] = textsToFold[text]
			d.Exec(t, "UPDATE videos SET title = ?, title_folded = ? WHERE organisation_id = ? AND id = ?", text, old, o.ID(), id)
			d.Exec(t, "INSERT INTO video_hashtags (organisation_id, tag, video_id) VALUES (?, ?, ?), (?, 'all', ?)", o.ID(), old, id, o.ID(), id)
			d.Exec(t, "INSERT INTO collection_hashtags (organisation_id, collection_id, tag, added_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", o.ID(), c.ID, old, 100+i)
		}
		// This video has both spellings of a hashtag already.
		d.Exec(t, "INSERT INTO video_hashtags (organisation_id, tag, video_id) VALUES (?, ?, ?), (?, ?, ?)", o.ID(), "no\u0308", videos[0].ID, o.ID(), "n\u00f6", videos[0].ID)
		d.Exec(t, "INSERT INTO collection_hashtags (organisation_id, collection_id, tag, added_at) VALUES (?, ?, ?, 7), (?, ?, ?, 8)", o.ID(), c.ID, "no\u0308", o.ID(), c.ID, "n\u00f6")
		_, err = d.Migrate(t.Context())
		require.NoError(t, err)

		for id, folded := range want {
			require.Equal(t, []string{folded}, storetest.Column[string](t, d, "SELECT title_folded FROM videos WHERE organisation_id = ? AND id = ?", o.ID(), id))
			tags := []string{"all", folded}
			if id == videos[0].ID {
				tags = append(tags, "n\u00f6")
			}
			require.ElementsMatch(t, tags, storetest.Column[string](t, d, "SELECT tag FROM video_hashtags WHERE organisation_id = ? AND video_id = ?", o.ID(), id))
		}
		distinct := append(slices.Collect(maps.Values(textsToFold)), "n\u00f6")
		slices.Sort(distinct)
		require.ElementsMatch(t, slices.Compact(distinct), storetest.Column[string](t, d, "SELECT tag FROM collection_hashtags WHERE organisation_id = ?", o.ID()))
		require.Equal(t, []int64{7}, storetest.Column[int64](t, d, "SELECT added_at FROM collection_hashtags WHERE organisation_id = ? AND tag = ?", o.ID(), "n\u00f6"),
			"the hashtag must keep the time when its first spelling was added")
		require.NotSubset(t, before, versions(), "ETags and cached labels from before the migration must not be valid any more")
		require.Equal(t, unchanged, storetest.StoredRows(t, d, other))
	})
}

// Older programs stored 0 for an unknown sum of the organisation's history. Migration 1000 replaces it by NULL.
//
// Requirements in docs/coverage.md: 11.2-03
func TestMigrate_replacesZerosOfUnknownSumsByNull(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, unfetched, l := storetest.NewOrg(t, db), storetest.NewOrg(t, db), storetest.VideoLink(t, 1)
		day := storetest.Today(db)
		storetest.Track(t, o, l)
		storetest.Follow(t, o, store.TrackNewOnly, storetest.ParseLink(t, storetest.AccountURL))
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: {Likes: new(int64(0)), Comments: new(int64(3))}})
		db.Clock.Advance(24 * time.Hour)
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{l: storetest.Views(0)})
		db.Clock.Advance(24 * time.Hour)
		storetest.DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone"), Followers: new(int64(0))})
		db.Exec(t, "INSERT INTO organisation_days (organisation_id, day, videos) VALUES (?, ?, 1)", unfetched.ID(), day)
		read := func(o *store.Org) []store.OrganisationPoint {
			points, err := o.OrganisationHistory(t.Context(), day, day+2)
			require.NoError(t, err)
			for i := range points {
				points[i].ViewsGained = nil // the reverted migrations lose it
			}
			return points
		}
		counts := store.Counts{Likes: new(int64(0)), Comments: new(int64(3))}
		withViews := counts
		withViews.Views = new(int64(0))
		want := []store.OrganisationPoint{
			{Day: day + 2, Accounts: 1, Videos: 1, Followers: new(int64(0)), Counts: withViews},
			{Day: day + 1, Accounts: 1, Videos: 1, Counts: withViews},
			{Day: day, Accounts: 1, Videos: 1, Counts: counts},
		}
		require.Equal(t, want, read(o))
		version, err := o.Version(t.Context())
		require.NoError(t, err)

		_, err = storetest.Migrations(t, db).DownTo(t.Context(), 999)
		require.NoError(t, err)
		require.Equal(t, []int64{0, 0, 0}, storetest.Column[int64](t, db, "SELECT shares FROM organisation_days WHERE organisation_id = ?", o.ID()))
		_, err = db.Migrate(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, read(o))
		require.Equal(t, []store.OrganisationPoint{{Day: day, Videos: 1}}, read(unfetched))
		later, err := o.Version(t.Context())
		require.NoError(t, err)
		require.Greater(t, later.Version, version.Version)
	})
}

// presentGeneration is the first schema version of the present generation. Programs of earlier generations refuse this version, so the migrations up to
// this version need no check.
const presentGeneration = 1000

// While an installation is upgraded, programs of two releases use one database. So older programs
// must work after each migration within a generation.
func TestMigrations_doNotBreakOlderProgramsUntilTheNextGeneration(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		files, err := fs.ReadDir(migrations.Files, engine)
		require.NoError(t, err)
		for _, f := range files {
			number, err := goose.NumericComponent(f.Name())
			require.NoError(t, err)
			if number < presentGeneration || number%1000 == 0 {
				continue
			}
			content, err := fs.ReadFile(migrations.Files, engine+"/"+f.Name())
			require.NoError(t, err)
			for _, statement := range upStatements(string(content)) {
				require.Empty(t, unsafeForOlderPrograms(statement), "%s/%s can break older programs, so it must have the number of the next generation", engine, f.Name())
			}
		}
	}
}

// upStatements returns the statements of a migration before the line "-- +goose Down", without comments.
func upStatements(migration string) []string {
	up, _, _ := strings.Cut(migration, "-- +goose Down")
	var statements []string
	for statement := range strings.SplitSeq(regexp.MustCompile(`--[^\n]*`).ReplaceAllString(up, ""), ";") {
		if s := strings.Join(strings.Fields(statement), " "); s != "" {
			statements = append(statements, s)
		}
	}
	return statements
}

// harmlessStatement matches the statements CREATE TABLE, CREATE INDEX and DROP INDEX. Older programs still work after these statements. The pattern
// does not match CREATE UNIQUE INDEX.
var harmlessStatement = regexp.MustCompile(`(?i)^(CREATE INDEX|CREATE TABLE|DROP INDEX) `)

// addedColumn matches a statement that adds one column.
var addedColumn = regexp.MustCompile(`(?i)^ALTER TABLE \w+ ADD COLUMN \w+ [^,]+$`)

// unsafeForOlderPrograms returns the given statement of a migration if the statement can break older programs of the same generation. Otherwise it
// returns "".
func unsafeForOlderPrograms(statement string) string {
	upper := strings.ToUpper(statement)
	required := strings.Contains(upper, "NOT NULL") && !strings.Contains(upper, "DEFAULT")
	if harmlessStatement.MatchString(statement) || addedColumn.MatchString(statement) && !required {
		return ""
	}
	return statement
}

func TestUnsafeForOlderPrograms_returnsUnsafeStatements(t *testing.T) {
	t.Parallel()
	for _, s := range upStatements("-- +goose Up\nCREATE TABLE a (id int NOT NULL); -- a table\nCREATE INDEX b ON a (id);\nDROP INDEX b;\nALTER TABLE a ADD COLUMN c int;\nALTER TABLE a ADD COLUMN d int NOT NULL DEFAULT 0;\n-- +goose Down\nDROP TABLE a;") {
		require.Empty(t, unsafeForOlderPrograms(s), s)
	}
	for _, s := range []string{"DROP TABLE a", "ALTER TABLE a DROP COLUMN c", "ALTER TABLE a RENAME TO b", "ALTER TABLE a ADD COLUMN d int NOT NULL", "UPDATE a SET c = 1",
		"CREATE UNIQUE INDEX b ON a (id)", "ALTER TABLE a ADD COLUMN c int, DROP COLUMN d", "ALTER TABLE a ADD CONSTRAINT x CHECK (c > 0)"} {
		require.Equal(t, s, unsafeForOlderPrograms(s))
	}
}
