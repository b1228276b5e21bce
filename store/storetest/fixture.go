package storetest

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	idb "github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/migrations"
)

// NewOrg creates an organisation with the premium tier and an active subscription, and returns its store.Org.
func NewOrg(t *testing.T, db *DB) *store.Org {
	t.Helper()
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	return db.Org(o.ID)
}

// NewFreeOrg creates an organisation with the basic tier and no subscription, and returns its store.Org.
func NewFreeOrg(t *testing.T, db *DB) *store.Org {
	t.Helper()
	o, err := db.CreateOrganisation(t.Context(), "Free", store.TierBasic, store.SubscriptionNone)
	require.NoError(t, err)
	return db.Org(o.ID)
}

// ParseLink returns the link of a URL. It fails the test if the URL is not valid.
func ParseLink(t *testing.T, raw string) link.Link {
	t.Helper()
	l, err := link.Parse(raw)
	require.NoError(t, err)
	return l
}

// VideoLink returns the link of a TikTok video of @someone. Each n gives the link of a different video.
func VideoLink(t *testing.T, n int) link.Link {
	t.Helper()
	return ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@someone/video/73012345678%08d", n))
}

// VideoLinks returns the links of n videos: VideoLink(0) to VideoLink(n-1).
func VideoLinks(t *testing.T, n int) []link.Link {
	t.Helper()
	return VideoLinksFrom(t, 0, n)
}

// VideoLinksFrom returns the links of n videos: VideoLink(first) to VideoLink(first+n-1). Organisations that track the same link share its target.
func VideoLinksFrom(t *testing.T, first, n int) []link.Link {
	t.Helper()
	links := make([]link.Link, n)
	for i := range links {
		links[i] = VideoLink(t, first+i)
	}
	return links
}

// Track tracks videos. Their first fetches are due immediately, and later ones have the priority of the organisation.
func Track(t *testing.T, o *store.Org, links ...link.Link) []store.Tracked {
	t.Helper()
	tracked, err := o.Track(t.Context(), store.TrackRequest{Links: links, Immediate: len(links), Allowance: len(links)})
	require.NoError(t, err)
	return tracked
}

// Follow tracks accounts. Their first fetches are due immediately, and later ones have the priority of the organisation.
func Follow(t *testing.T, o *store.Org, kind store.TrackingType, links ...link.Link) []store.Tracked {
	t.Helper()
	tracked, err := o.TrackAccounts(t.Context(), store.TrackRequest{Links: links, Type: kind, Immediate: len(links), Allowance: len(links)})
	require.NoError(t, err)
	return tracked
}

// VideoOf returns the organisation's video with the link l.
func VideoOf(t *testing.T, o *store.Org, l link.Link) store.Video {
	t.Helper()
	v, err := o.Video(t.Context(), store.Ref{Link: l})
	require.NoError(t, err)
	return v
}

// AccountByLink returns the organisation's account with the link l.
func AccountByLink(t *testing.T, o *store.Org, l link.Link) store.Account {
	t.Helper()
	a, err := o.Account(t.Context(), store.Ref{Link: l})
	require.NoError(t, err)
	return a
}

// Today returns the UTC day of the database's clock.
func Today(db *DB) store.Date { return store.DateOf(db.Clock.Now()) }

// OrderedBy returns a query for the first 5,000 videos, ordered by a column.
func OrderedBy(column string, descending bool) store.VideoQuery {
	return store.VideoQuery{Order: store.Order{Column: column, Descending: descending}, Window: store.Window{Limit: 5000}}
}

// ListVideos returns the page of videos that a query selects. If the query has no order, the videos are ordered by created_at.
func ListVideos(t *testing.T, o *store.Org, q store.VideoQuery) *store.List[store.Video] {
	t.Helper()
	if q.Order.Column == "" {
		q.Order, q.Window.Limit = OrderedBy("created_at", false).Order, 5000
	}
	list, err := o.ListVideos(t.Context(), q)
	require.NoError(t, err)
	return list
}

// CreateOrgWithData creates an organisation with collections, videos, an account, points and an idempotency key. It has no reports, events or
// webhooks: see FillEmptyTables.
func CreateOrgWithData(t *testing.T, db *DB) *store.Org {
	t.Helper()
	ctx, o := t.Context(), NewOrg(t, db)
	root, err := o.CreateCollection(ctx, store.NewCollection{Name: "Root", Access: store.AccessPublic, Hashtags: []string{"dog"}})
	require.NoError(t, err)
	_, err = o.CreateCollection(ctx, store.NewCollection{Name: "Below", Access: store.AccessPrivate, ParentID: &root.ID})
	require.NoError(t, err)
	tracked, err := o.Track(ctx, store.TrackRequest{Links: VideoLinks(t, 3), CollectionIDs: []uuid.UUID{root.ID}, Immediate: 3})
	require.NoError(t, err)
	Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: new(int64(10)), Likes: new(int64(1)), Title: new("A #dog"), Username: new("someone"),
		AccountID: new("42"), UploadedAt: new(db.Clock.Now().AddDate(0, 0, -3))})
	a := Follow(t, o, store.TrackLatest30, ParseLink(t, "https://www.tiktok.com/@someone"))[0]
	DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone"), Followers: new(int64(7))})
	_, err = o.AddAccounts(ctx, root.ID, []uuid.UUID{a.ID})
	require.NoError(t, err)
	_, err = o.ReserveKey(ctx, "TrackVideo", "key", []byte("fingerprint"))
	require.NoError(t, err)
	day := Today(db) - 100
	db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, views, fetched_at, source) VALUES (?, ?, ?, ?, 5, 0, 'test')`,
		o.ID(), tracked[0].ID, day.Week(), day)
	return o
}

// FillEmptyTables inserts a row into each table that has no rows. If the table belongs to organisations, the row belongs to o.
func FillEmptyTables(t *testing.T, db *DB, o *store.Org) {
	t.Helper()
	tables, err := db.DB().StoredTables(t.Context())
	require.NoError(t, err)
	for _, table := range tables {
		if Column[int64](t, db, "SELECT COUNT(*) FROM "+table.Name)[0] > 0 {
			continue
		}
		var names, places []string
		var values []any
		for _, c := range table.Columns {
			names, places, values = append(names, c.Name), append(places, "?"), append(values, valueFor(c, o))
		}
		db.Exec(t, fmt.Sprintf("INSERT INTO %s (%s) VALUES (%s)", table.Name, strings.Join(names, ", "), strings.Join(places, ", ")), values...)
	}
}

// valueFor returns a value that is valid in the column c of a table. If the column contains an organisation, the value is the id of o.
func valueFor(c idb.StoredColumn, o *store.Org) any {
	switch {
	case c.Name == "organisation_id":
		return o.ID()
	case c.Name == "id", c.Name == "token", strings.HasSuffix(c.Name, "_id") && c.Name != "external_id", c.Name == "created_by":
		return store.NewID()
	case strings.HasSuffix(c.Name, "_date"):
		return "2026-02-28"
	case c.Kind == idb.IntegerKind:
		return int64(7)
	case c.Kind == idb.BoolKind:
		return true
	case c.Kind == idb.FloatKind:
		return 0.5
	case c.Kind == idb.BytesKind:
		return []byte{0, 1, 254, 255}
	}
	return "x"
}

// Collection creates a private collection.
func Collection(t *testing.T, o *store.Org, name string, parent *uuid.UUID) store.Collection {
	t.Helper()
	c, err := o.CreateCollection(t.Context(), store.NewCollection{Name: name, ParentID: parent, Access: store.AccessPrivate, CreatedBy: store.NewID()})
	require.NoError(t, err)
	return c
}

// StoredRows returns a map from the names of tables to the rows of an organisation, as text.
func StoredRows(t *testing.T, db *DB, o *store.Org) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for name, described := range Tables {
		if described.Class != Distributed {
			continue
		}
		query := "SELECT CAST(json_group_array(json(r)) AS text) FROM (SELECT json_object(%s) AS r FROM " + name + " WHERE organisation_id = ? ORDER BY 1)"
		if name == "organisation_totals" { // leave out the version, which rises even if nothing else changes
			rows[name] = append(rows[name], Column[string](t, db, `SELECT videos || ' ' || videos_removed || ' ' || views || ' ' || likes || ' ' || comments || ' ' || shares || ' ' ||
 bookmarks || ' ' || accounts || ' ' || accounts_removed || ' ' || followers || ' ' || following || ' ' ||
 first_views FROM organisation_totals WHERE organisation_id = ?`, o.ID())...)
			continue
		}
		if db.Engine != "sqlite" {
			rows[name] = Column[string](t, db, "SELECT CAST(x AS text) FROM "+name+" x WHERE organisation_id = ? ORDER BY 1", o.ID())
			continue
		}
		var columns []string
		for _, c := range Column[string](t, db, "SELECT name FROM pragma_table_info(?)", name) {
			columns = append(columns, "'"+c+"', quote("+c+")")
		}
		rows[name] = Column[string](t, db, fmt.Sprintf(query, strings.Join(columns, ", ")), o.ID())
	}
	return rows
}

// AccountOf returns the account whose id is in the field LinkedAccountID of a video. The argument l is the link of the video.
func AccountOf(t *testing.T, o *store.Org, l link.Link) store.Account {
	t.Helper()
	id := VideoOf(t, o, l).LinkedAccountID
	require.NotNil(t, id)
	a, err := o.Account(t.Context(), store.Ref{ID: *id})
	require.NoError(t, err)
	return a
}

// AccountURL is the URL of the TikTok account @someone. The links that VideoLink returns are videos of this account.
const AccountURL = "https://www.tiktok.com/@someone"

// TrackedVideos returns how many videos the organisation tracks.
func TrackedVideos(t *testing.T, o *store.Org) int {
	t.Helper()
	return int(ListVideos(t, o, store.VideoQuery{}).Total)
}

// Migrations returns a goose provider of the engine's migrations, with which a test can revert migrations. The program never reverts a
// migration.
func Migrations(t *testing.T, db *DB) *goose.Provider {
	t.Helper()
	dialect, folder := goose.DialectPostgres, "postgres"
	if db.Engine == "sqlite" {
		dialect, folder = goose.DialectSQLite3, "sqlite"
	}
	files, err := fs.Sub(migrations.Files, folder)
	require.NoError(t, err)
	p, err := goose.NewProvider(dialect, db.Raw(t), files, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	return p
}

// YouTubeURL is the URL of a YouTube video. The URL does not contain the author, so tracking the video does not create an account.
const YouTubeURL = "https://www.youtube.com/shorts/dQw4w9WgXcQ"

// RequireConsistent fails the test unless the fetch queue contains exactly the tracked videos that
// are not pending. It also checks the totals of lists of videos, and the sum of their first views.
func RequireConsistent(t *testing.T, db *DB, o *store.Org) {
	t.Helper()
	all := ListVideos(t, o, store.VideoQuery{IncludeRemoved: true})
	require.EqualValues(t, len(all.Rows), all.Total)
	page := ListVideos(t, o, store.VideoQuery{})
	require.EqualValues(t, len(page.Rows), page.Total)
	require.Equal(t, Column[int64](t, db, "SELECT CAST(COALESCE(SUM(first_views), 0) AS bigint) FROM videos WHERE organisation_id = ?", o.ID()),
		Column[int64](t, db, "SELECT first_views FROM organisation_totals WHERE organisation_id = ?", o.ID()))
	var fetched []string
	for _, v := range page.Rows {
		if !v.Pending {
			fetched = append(fetched, v.ID.String())
		}
	}
	require.ElementsMatch(t, fetched, Column[string](t, db, "SELECT CAST(subject_id AS text) FROM fetch_subscriptions WHERE organisation_id = ? AND kind = 'video'", o.ID()))
}

// NeverStop is a callback that always lets a job continue.
func NeverStop() error { return nil }

// StopVideos stops the tracking of the videos with the given links. The test fails if one of the videos is not tracked.
func StopVideos(t *testing.T, o *store.Org, links ...link.Link) {
	t.Helper()
	ids, err := o.TrackedVideoIDs(t.Context(), links)
	require.NoError(t, err)
	untracked, err := o.StopVideos(t.Context(), ids)
	require.NoError(t, err)
	require.Empty(t, untracked)
}

// StopAccounts stops the tracking of the accounts with the given links. The test fails if one of the accounts is not tracked.
func StopAccounts(t *testing.T, o *store.Org, links ...link.Link) {
	t.Helper()
	ids, err := o.TrackedAccountIDs(t.Context(), links)
	require.NoError(t, err)
	untracked, err := o.StopAccounts(t.Context(), ids)
	require.NoError(t, err)
	require.Empty(t, untracked)
}
