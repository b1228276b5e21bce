package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// sharedTables are the tables whose rows belong to no organisation. A row of any other table must name its organisation in the column
// organisation_id, or a token in the column token_id. Otherwise DeleteOrganisation does not delete the row.
var sharedTables = []string{"clock_state", "collectors", "fetch_routes", "fetch_targets", "jobs", "organisations", "quota_windows", "settings",
	"short_links", "source_pauses", "source_refusals", "source_tokens", "thumbnails"}

func TestDeleteOrganisation_findsTheOwnerOfEveryTable(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		tables, err := db.DB().StoredTables(t.Context())
		require.NoError(t, err)
		require.Len(t, tables, len(storetest.Tables))
		for _, table := range tables {
			owned := table.HasColumn("organisation_id") || table.HasColumn("token_id")
			require.NotEqual(t, owned, slices.Contains(sharedTables, table.Name),
				"the table %s needs a column organisation_id or token_id, or belongs to no organisation and must be listed in sharedTables", table.Name)
			if storetest.Tables[table.Name].Class == storetest.Distributed {
				require.Equal(t, "organisation_id", table.PrimaryKey()[0].Name, table.Name)
			}
		}
	})
}

// storedRows returns the rows of each table as texts.
func storedRows(t *testing.T, db *storetest.DB) map[string][]string {
	t.Helper()
	tables, err := db.DB().StoredTables(t.Context())
	require.NoError(t, err)
	rows := map[string][]string{}
	for _, table := range tables {
		var columns []string
		for _, c := range table.Columns {
			if c.Name == "asked_by" && table.Name == "fetch_targets" {
				continue // a shared target can name the deleted organisation before the deletion
			}
			text := "quote(" + c.Name + ")"
			if db.Engine != "sqlite" {
				text = "COALESCE(CAST(" + c.Name + " AS text), 'NULL')"
			}
			columns = append(columns, "'"+c.Name+"=' || "+text)
		}
		rows[table.Name] = storetest.Column[string](t, db, "SELECT "+strings.Join(columns, " || ' ' || ")+" FROM "+table.Name+" ORDER BY 1")
	}
	return rows
}

// rowsWith returns the rows of each table that contain any of the texts. Tables without such rows are left out.
func rowsWith(rows map[string][]string, texts ...string) map[string][]string {
	found := map[string][]string{}
	for table, all := range rows {
		for _, row := range all {
			if slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(row, text) }) {
				found[table] = append(found[table], row)
			}
		}
	}
	return found
}

// ownedTables returns the names of the tables with rows of organisations, sorted.
func ownedTables() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(storetest.Tables)), func(name string) bool { return slices.Contains(sharedTables, name) })
}

// fullOrganisation is an organisation with rows in all tables of ownedTables.
type fullOrganisation struct {
	*store.Org
	refs                         references
	secret, session, share       string
	own, shared, stoppedByOthers link.Link // videos with pictures: `own` only of this organisation, `shared` tracked also by others, and one that others have stopped
}

// texts returns the ids of the organisation and its tokens, which occur in all its rows.
func (f fullOrganisation) texts(t *testing.T, db *storetest.DB) []string {
	t.Helper()
	texts := []string{f.ID().String()}
	tokens, err := db.Tokens(t.Context(), f.ID())
	require.NoError(t, err)
	for _, token := range tokens {
		texts = append(texts, token.ID.String())
	}
	return texts
}

// newFullOrganisation creates an organisation with rows in all tables. The numbers of its own videos begin with n. Organisations with different
// numbers n share some videos.
func newFullOrganisation(t *testing.T, db *storetest.DB, n int) fullOrganisation {
	t.Helper()
	ctx := t.Context()
	db.Clock.Advance(time.Hour)
	f := fullOrganisation{Org: storetest.NewOrg(t, db), own: storetest.VideoLink(t, n), shared: storetest.VideoLink(t, 1), stoppedByOthers: storetest.VideoLink(t, 2)}
	f.refs = newTenant(t, db, f.Org, fmt.Sprintf("tenant%d", n), n+1)
	storetest.Track(t, f.Org, f.own, f.shared, f.stoppedByOthers)
	storetest.Follow(t, f.Org, store.TrackLatest30, storetest.ParseLink(t, storetest.AccountURL))
	for _, l := range []link.Link{f.own, f.shared, f.stoppedByOthers} {
		require.NoError(t, db.RequestThumbnails(ctx, []store.Thumbnail{{Platform: l.Platform, ExternalID: l.ID, URL: "https://p16.tiktokcdn.com/" + l.ID + ".jpeg"}}))
	}
	storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{
		f.own:    {Views: new(int64(2_000_000)), Title: new("A #dog"), Username: new("someone"), AccountID: new("42"), UploadedAt: new(db.Clock.Now().AddDate(0, 0, -3))},
		f.shared: {Views: new(int64(10)), Username: new("someone"), AccountID: new("42")}})
	_, err := f.UpdateCollection(ctx, f.refs.collection, store.CollectionPatch{SharingPatch: store.SharingPatch{Access: new(store.AccessPublic)}})
	require.NoError(t, err)
	collection, err := f.Collection(ctx, f.refs.collection, false)
	require.NoError(t, err)
	f.share = *collection.Hash
	_, err = f.UpdateReport(ctx, f.refs.report, store.SharingPatch{Access: new(store.AccessPublic)})
	require.NoError(t, err)
	var token store.Token
	token, f.secret, err = db.CreateToken(ctx, f.ID(), "Full", store.Scopes, 0)
	require.NoError(t, err)
	require.NoError(t, db.SaveTokenUse(ctx, token.ID, db.Clock.Now()))
	f.session, err = db.CreateSession(ctx, token.ID)
	require.NoError(t, err)
	_, err = db.CreateLoginLink(ctx, token.ID)
	require.NoError(t, err)
	day, id := storetest.Today(db), f.ID()
	db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, first_day, views, fetched_at, source) VALUES (?, ?, ?, ?, ?, 5, 0, 'test')`,
		id, storetest.VideoOf(t, f.Org, f.own).ID, (day - 100).Week(), day-100, day-100)
	db.Exec(t, `INSERT INTO collection_hashtags (organisation_id, collection_id, tag, added_at) VALUES (?, ?, 'dog', 0)`, id, f.refs.collection)
	db.Exec(t, `INSERT INTO video_milestones (organisation_id, video_id, member, threshold) VALUES (?, ?, 'views', 1)`, id, store.NewID())
	storetest.FillEmptyTables(t, db, f.Org)
	return f
}

// addManyRows adds rows to tables with keys of several types, so that DeleteOrganisation needs several batches for them.
func addManyRows(t *testing.T, db *storetest.DB, o *store.Org, rows int) {
	t.Helper()
	account := storetest.AccountByLink(t, o, storetest.ParseLink(t, storetest.AccountURL)).ID
	day := "CAST('2001-01-01' AS date) + n"
	if db.Engine == "sqlite" {
		day = "date('2001-01-01', n || ' days')"
	}
	for _, insert := range []string{
		"INSERT INTO video_milestones (organisation_id, video_id, member, threshold) SELECT CAST(? AS %s), CAST(? AS %[1]s), 'likes', n FROM numbers",
		"INSERT INTO account_days (organisation_id, account_id, day, videos) SELECT CAST(? AS %s), CAST(? AS %[1]s), " + day + ", 1 FROM numbers",
	} {
		kind := "uuid"
		if db.Engine == "sqlite" {
			kind = "text"
		}
		db.Exec(t, fmt.Sprintf("WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < %d) ", rows)+fmt.Sprintf(insert, kind), o.ID(), account)
	}
}

func ignoreRows(int64) {}

func TestDeleteOrganisation_deletesAllRowsAndKeepsThoseOfOthers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		doomed := newFullOrganisation(t, db, 100)
		kept := newFullOrganisation(t, db, 200)
		addManyRows(t, db, doomed.Org, 4500)
		storetest.StopVideos(t, kept.Org, kept.stoppedByOthers)
		storetest.StopVideos(t, doomed.Org, doomed.shared)
		storetest.Track(t, doomed.Org, doomed.shared)

		doomedTexts, keptTexts := doomed.texts(t, db), kept.texts(t, db)
		before := storedRows(t, db)
		require.ElementsMatch(t, append(ownedTables(), "organisations"), slices.Collect(maps.Keys(rowsWith(before, doomedTexts...))), "the test must begin with rows of the organisation in all tables")

		var reported int64
		require.NoError(t, db.DeleteOrganisation(t.Context(), doomed.ID(), func(rows int64) {
			require.GreaterOrEqual(t, rows, reported)
			reported = rows
		}))
		require.Greater(t, reported, int64(9000))
		after := storedRows(t, db)
		require.Empty(t, rowsWith(after, doomedTexts...))
		require.Equal(t, rowsWith(before, keptTexts...), rowsWith(after, keptTexts...))
		require.Empty(t, storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets WHERE asked_by = ?", doomed.ID()))
		for _, table := range sharedTables {
			if !slices.Contains([]string{"organisations", "fetch_targets", "thumbnails"}, table) {
				require.Equal(t, before[table], after[table], table)
			}
		}
		storetest.RequireConsistent(t, db, kept.Org)

		// Only the targets and pictures of the other organisation are left.
		subscribed := storetest.Column[string](t, db, "SELECT kind || ' ' || external_id FROM fetch_subscriptions ORDER BY 1")
		require.Equal(t, subscribed, storetest.Column[string](t, db, "SELECT kind || ' ' || external_id FROM fetch_targets ORDER BY 1"))
		pictures := storetest.Column[string](t, db, "SELECT external_id FROM thumbnails")
		require.Subset(t, pictures, []string{kept.own.ID, kept.shared.ID, kept.stoppedByOthers.ID})
		require.NotContains(t, pictures, doomed.own.ID)
		db.Clock.Advance(48 * time.Hour)
		require.Contains(t, storetest.DueTargets(t, db), kept.shared.ID, "a video that another organisation tracks must be fetched")
		storetest.Measure(t, db, db.Clock.Now(), map[link.Link]ingest.VideoFacts{kept.shared: storetest.Views(30)})
		require.EqualValues(t, 30, *storetest.VideoOf(t, kept.Org, kept.shared).Latest.Views)

		require.ErrorIs(t, db.DeleteOrganisation(t.Context(), doomed.ID(), ignoreRows), store.ErrNotFound)
	})
}

func TestDeleteOrganisation_continuesAfterEveryInterruption(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		doomed := newFullOrganisation(t, db, 100)
		addManyRows(t, db, doomed.Org, 4500)
		texts := doomed.texts(t, db)
		began := db.Clock.Now()
		for interruption := 1; ; interruption++ {
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			err := db.DeleteOrganisation(ctx, doomed.ID(), func(int64) {
				if calls++; calls == interruption {
					cancel()
				}
			})
			cancel()
			if err == nil {
				break
			}
			require.ErrorIs(t, err, context.Canceled)
			all, err := db.Organisations(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, store.InstantOf(began), *all[0].DeletingSince, "the time of the first call must stay")
			_, err = db.Authenticate(t.Context(), doomed.secret)
			require.ErrorIs(t, err, store.ErrTokenRevoked)
			db.Clock.Advance(time.Minute)
		}
		require.Empty(t, rowsWith(storedRows(t, db), texts...))
	})
}

func TestDeleteOrganisation_refusesUsesAndWritesFromItsFirstTransactionOn(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		doomed := newFullOrganisation(t, db, 100)
		kept := newFullOrganisation(t, db, 200)
		texts := doomed.texts(t, db)
		token, err := db.Authenticate(t.Context(), doomed.secret)
		require.NoError(t, err)
		db.Clock.Advance(48 * time.Hour)
		due := storetest.Claim(t, db, link.TikTok, queue.KindVideo)
		accounts := storetest.Claim(t, db, link.TikTok, queue.KindAccount)
		require.NotEmpty(t, due)
		require.NotEmpty(t, accounts)
		webhooks, err := db.ClaimWebhooks(t.Context(), 10, time.Minute)
		require.NoError(t, err)
		require.Len(t, webhooks, 2)

		checks := 0
		check := func() {
			ctx := t.Context()
			_, err := db.Authenticate(ctx, doomed.secret)
			require.ErrorIs(t, err, store.ErrTokenRevoked)
			_, err = db.AuthenticateSession(ctx, doomed.session)
			require.ErrorIs(t, err, store.ErrTokenRevoked)
			_, err = db.Share(ctx, store.ShareCollection, doomed.share)
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = doomed.Track(ctx, store.TrackRequest{Links: storetest.VideoLinks(t, 5), Immediate: 5, Allowance: 5})
			require.ErrorIs(t, err, store.ErrOrganisationDeleted)
			_, err = doomed.TrackAccounts(ctx, store.TrackRequest{Links: []link.Link{storetest.ParseLink(t, storetest.AccountURL)}, Type: store.TrackAll, Immediate: 1})
			require.ErrorIs(t, err, store.ErrOrganisationDeleted)
			_, err = doomed.CreateCollection(ctx, store.NewCollection{Name: "New", Access: store.AccessPublic})
			require.ErrorIs(t, err, store.ErrOrganisationDeleted)
			_, _, err = doomed.CreateToken(ctx, newReadToken("New"))
			require.ErrorIs(t, err, store.ErrOrganisationDeleted)
			_, _, err = db.CreateToken(ctx, doomed.ID(), "New", store.Scopes, 0)
			require.ErrorIs(t, err, store.ErrOrganisationDeleted)
			_, err = doomed.CreateWebhook(ctx, store.NewWebhook{URL: "https://hooks.example.com/", Secret: []byte("s")})
			require.ErrorIs(t, err, store.ErrOrganisationDeleted)
			require.ErrorIs(t, db.SetTier(ctx, doomed.ID(), store.TierBasic), store.ErrOrganisationDeleted)
			require.ErrorIs(t, db.RenameOrganisation(ctx, doomed.ID(), "New"), store.ErrOrganisationDeleted)
			claimed, err := db.ClaimWebhooks(ctx, 10, time.Minute)
			require.NoError(t, err)
			require.Empty(t, claimed)
			for _, c := range webhooks {
				if c.OrganisationID == doomed.ID() {
					_, _, deliveries, err := db.DueDeliveries(ctx, c, 10)
					require.ErrorIs(t, err, store.ErrNotFound)
					require.Empty(t, deliveries)
					require.NoError(t, db.FinishClaim(ctx, c, []store.Attempt{{DeliveryID: doomed.refs.delivery, URL: "https://hooks.example.com/", At: store.InstantOf(db.Clock.Now())}}))
				}
			}
			require.NoError(t, db.SaveTokenUse(ctx, token.Token.ID, db.Clock.Now()))
			_, err = db.DeleteExpired(ctx, storetest.NeverStop)
			require.NoError(t, err)
			_, err = db.ApplyRetention(ctx, storetest.NeverStop)
			require.NoError(t, err)
			_, err = db.Writer.RepairFutureTimes(ctx, time.Hour)
			require.NoError(t, err)
		}
		require.NoError(t, db.DeleteOrganisation(t.Context(), doomed.ID(), func(int64) {
			checks++
			if checks > 2 {
				return
			}
			check()
			// A collector stores its answers while the deletion runs.
			for _, c := range due {
				outcomes := make([]ingest.Outcome, len(c.Targets))
				for i, target := range c.Targets {
					outcomes[i] = storetest.Outcome(db, target, ingest.VideoFacts{Views: new(int64(50)), Title: new("New #cat"), Username: new("stranger"), AccountID: new("77")})
				}
				require.NoError(t, db.Acknowledge(t.Context(), c, store.InstantOf(db.Clock.Now()), outcomes))
			}
			for _, c := range accounts {
				outcomes := make([]ingest.Outcome, len(c.Targets))
				for i, target := range c.Targets {
					outcomes[i] = storetest.AccountOutcome(db, target, ingest.AccountFacts{ID: new("id of " + target.ExternalID), Followers: new(int64(7)), Listed: true,
						Videos: []ingest.FoundVideo{{ID: storetest.VideoLink(t, 77).ID, Link: storetest.VideoLink(t, 77).Canonical, UploadedAt: new(store.InstantOf(db.Clock.Now()))}}})
				}
				require.NoError(t, db.Acknowledge(t.Context(), c, store.InstantOf(db.Clock.Now()), outcomes))
			}
		}))
		require.Greater(t, checks, 2)
		require.Empty(t, rowsWith(storedRows(t, db), texts...))
		require.EqualValues(t, 50, *storetest.VideoOf(t, kept.Org, kept.shared).Latest.Views, "the other organisation must get its counts")
		_, err = db.Authenticate(t.Context(), doomed.secret)
		require.ErrorIs(t, err, store.ErrTokenUnknown)
		_, err = db.CreateSession(t.Context(), token.Token.ID)
		require.ErrorIs(t, err, store.ErrTokenUnknown)
		_, err = db.CreateLoginLink(t.Context(), token.Token.ID)
		require.ErrorIs(t, err, store.ErrTokenUnknown)
		require.NoError(t, db.SaveTokenUse(t.Context(), token.Token.ID, db.Clock.Now()))
		require.NoError(t, db.RequestThumbnails(t.Context(), []store.Thumbnail{{Platform: doomed.own.Platform, ExternalID: doomed.own.ID, URL: "https://p16.tiktokcdn.com/new.jpeg"}}))
		_, err = db.DeleteOrphans(t.Context(), storetest.NeverStop)
		require.NoError(t, err)
		after := storedRows(t, db)
		require.Empty(t, rowsWith(after, texts...))
		require.Empty(t, rowsWith(map[string][]string{"thumbnails": after["thumbnails"]}, doomed.own.ID))
	})
}
