package storetest

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/migrations"
	"github.com/reeltally/reeltally/store/queue"
)

// NewOrg creates an organisation with the premium tier and an active subscription, and returns its view.
func NewOrg(t *testing.T, db *DB) *store.Org {
	t.Helper()
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	return db.Org(o.ID)
}

// ParseLink parses a URL and fails the test if the URL is not a valid link.
func ParseLink(t *testing.T, raw string) link.Link {
	t.Helper()
	l, err := link.Parse(raw)
	require.NoError(t, err)
	return l
}

// Clip returns the link of the TikTok video number n of the account @someone.
func Clip(t *testing.T, n int) link.Link {
	t.Helper()
	return ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@someone/video/73012345678%08d", n))
}

// Clips returns the links of the TikTok videos 0 to n-1 of the account @someone.
func Clips(t *testing.T, n int) []link.Link {
	t.Helper()
	return ClipsFrom(t, 0, n)
}

// ClipsFrom returns the links of n TikTok videos of the account @someone, beginning with the video number first.
func ClipsFrom(t *testing.T, first, n int) []link.Link {
	t.Helper()
	links := make([]link.Link, n)
	for i := range links {
		links[i] = Clip(t, first+i)
	}
	return links
}

// Track makes the organisation track videos. All videos are due at once.
func Track(t *testing.T, o *store.Org, links ...link.Link) []store.Tracked {
	t.Helper()
	tracked, err := o.Track(t.Context(), store.TrackRequest{Links: links, Lane: queue.LanePremium, Immediate: len(links), Enqueue: len(links)})
	require.NoError(t, err)
	return tracked
}

// Follow makes the organisation track accounts. All accounts are due at once.
func Follow(t *testing.T, o *store.Org, kind store.TrackingType, links ...link.Link) []store.TrackedAccount {
	t.Helper()
	tracked, err := o.TrackAccounts(t.Context(), store.TrackAccountsRequest{Links: links, Type: kind, Lane: queue.LanePremium, Immediate: len(links), Enqueue: len(links)})
	require.NoError(t, err)
	return tracked
}

// Claim claims all due targets of a platform and kind. It returns one claim for each lane with due targets.
func Claim(t *testing.T, db *DB, p link.Platform, kind queue.Kind) []queue.Claim {
	t.Helper()
	var claims []queue.Claim
	for _, lane := range queue.Lanes {
		c, err := db.Claim(t.Context(), ClaimRequest(store.NewID(), p, kind, 1000, time.Minute, lane))
		require.NoError(t, err)
		if len(c.Targets) > 0 {
			claims = append(claims, c)
		}
	}
	return claims
}

// ClaimOne claims the only due target of a platform and kind. It fails the test if there is not exactly one.
func ClaimOne(t *testing.T, db *DB, p link.Platform, kind queue.Kind) queue.Claim {
	t.Helper()
	claims := Claim(t, db, p, kind)
	require.Len(t, claims, 1)
	require.Len(t, claims[0].Targets, 1)
	return claims[0]
}

// Outcome returns the outcome of a successful fetch of a video. The target is due again in a day.
func Outcome(db *DB, target queue.Target, facts ingest.VideoFacts) ingest.Outcome {
	return ingest.Outcome{Target: target, Facts: &facts, Details: true, Source: "test",
		NextAt: store.InstantOf(db.Clock.Now().Add(24 * time.Hour)), State: "active"}
}

// Deliver claims all due videos of a platform, acknowledges each with the same facts, and returns the number of targets.
func Deliver(t *testing.T, db *DB, p link.Platform, facts ingest.VideoFacts) int {
	t.Helper()
	return DeliverBy(t, db, p, func(queue.Target) ingest.VideoFacts { return facts })
}

// DeliverBy claims all due videos of a platform, acknowledges each with the result of facts, and returns the number of targets.
func DeliverBy(t *testing.T, db *DB, p link.Platform, facts func(queue.Target) ingest.VideoFacts) int {
	t.Helper()
	n := 0
	for _, c := range Claim(t, db, p, "video") {
		outcomes := make([]ingest.Outcome, len(c.Targets))
		for i, target := range c.Targets {
			outcomes[i] = Outcome(db, target, facts(target))
		}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
		n += len(outcomes)
	}
	return n
}

// DeliverAccount claims the only due TikTok account and acknowledges it with the facts.
func DeliverAccount(t *testing.T, db *DB, facts ingest.AccountFacts) {
	t.Helper()
	c := ClaimOne(t, db, link.TikTok, "account")
	require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []ingest.AccountOutcome{AccountOutcome(db, c.Targets[0], facts)}))
}

// AccountOutcome returns the outcome of a successful fetch of an account. The target is due again in a day.
func AccountOutcome(db *DB, target queue.Target, facts ingest.AccountFacts) ingest.AccountOutcome {
	return ingest.AccountOutcome{Account: &facts, Outcome: ingest.Outcome{Target: target, Source: "test", State: "active",
		NextAt: store.InstantOf(db.Clock.Now().Add(24 * time.Hour))}}
}

// Views returns facts about a video that contain only a number of views.
func Views(n int64) ingest.VideoFacts { return ingest.VideoFacts{Views: &n} }

// VideoOf returns the organisation's video with that link.
func VideoOf(t *testing.T, o *store.Org, l link.Link) store.Video {
	t.Helper()
	v, err := o.Video(t.Context(), store.VideoRef{Link: l})
	require.NoError(t, err)
	return v
}

// AccountByLink returns the organisation's account with that link.
func AccountByLink(t *testing.T, o *store.Org, l link.Link) store.Account {
	t.Helper()
	a, err := o.Account(t.Context(), store.AccountRef{Link: l})
	require.NoError(t, err)
	return a
}

// Today returns the UTC day of the database's clock.
func Today(db *DB) store.Date { return store.DateOf(db.Clock.Now()) }

// OrderedBy returns a query for all videos, ordered by a column.
func OrderedBy(column string, descending bool) store.VideoQuery {
	return store.VideoQuery{Order: store.Order{Column: column, Descending: descending}, Window: store.Window{Limit: 5000}}
}

// ListVideos returns the page of videos that q selects. If q has no order, ListVideos orders the videos by created_at.
func ListVideos(t *testing.T, o *store.Org, q store.VideoQuery) store.VideoPage {
	t.Helper()
	if q.Order.Column == "" {
		q.Order, q.Window.Limit = OrderedBy("created_at", false).Order, 5000
	}
	page, err := o.Videos(t.Context(), q)
	require.NoError(t, err)
	return page
}

// FullOrg creates an organisation that has at least one row in every distributed table.
func FullOrg(t *testing.T, db *DB) *store.Org {
	t.Helper()
	ctx, o := t.Context(), NewOrg(t, db)
	root, err := o.CreateCollection(ctx, store.NewCollection{Name: "Root", Access: store.AccessPublic, Hashtags: []string{"dog"}})
	require.NoError(t, err)
	_, err = o.CreateCollection(ctx, store.NewCollection{Name: "Below", Access: store.AccessPrivate, ParentID: &root.ID})
	require.NoError(t, err)
	tracked, err := o.Track(ctx, store.TrackRequest{Links: Clips(t, 3), CollectionIDs: []uuid.UUID{root.ID}, Lane: queue.LaneBasic, Immediate: 3, Enqueue: 3})
	require.NoError(t, err)
	Deliver(t, db, link.TikTok, ingest.VideoFacts{Views: new(int64(10)), Likes: new(int64(1)), Title: new("A #dog"), Username: new("someone"),
		AccountID: new("42"), UploadedAt: new(db.Clock.Now().AddDate(0, 0, -3))})
	a := Follow(t, o, store.TrackLatest30, ParseLink(t, "https://www.tiktok.com/@someone"))[0]
	DeliverAccount(t, db, ingest.AccountFacts{Username: new("someone"), Followers: new(int64(7))})
	_, err = o.AddAccounts(ctx, root.ID, []uuid.UUID{a.AccountID})
	require.NoError(t, err)
	_, err = o.BeginKey(ctx, "TrackVideo", "key", []byte("fingerprint"))
	require.NoError(t, err)
	day := Today(db) - 100
	db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, views, fetched_at, source) VALUES (?, ?, ?, ?, 5, 0, 'test')`,
		o.ID(), tracked[0].VideoID, day.Week(), day)
	return o
}

// Collection creates a private collection below parent, or a root collection if parent is nil.
func Collection(t *testing.T, o *store.Org, name string, parent *uuid.UUID) store.Collection {
	t.Helper()
	c, err := o.CreateCollection(t.Context(), store.NewCollection{Name: name, ParentID: parent, Access: store.AccessPrivate, CreatedBy: store.NewID()})
	require.NoError(t, err)
	return c
}

// TargetIDs returns the external ids of a claim's targets.
func TargetIDs(c queue.Claim) []string {
	ids := make([]string, len(c.Targets))
	for i, target := range c.Targets {
		ids[i] = target.ExternalID
	}
	return ids
}

// DueTargets returns the external ids of the TikTok videos whose targets are due now.
func DueTargets(t *testing.T, db *DB) []string {
	t.Helper()
	return Column[string](t, db, "SELECT external_id FROM fetch_targets WHERE source = ? AND kind = 'video' AND next_at <= ?",
		string(link.TikTok), int64(store.InstantOf(db.Clock.Now())))
}

// Meanwhile simulates a concurrent process. Just before the next statement that contains the fragment, it starts f in another goroutine and
// delays the statement until f is done or waits for the transaction of the statement. finish waits until f is done.
func Meanwhile(t *testing.T, db *DB, fragment string, f func(s *store.Store)) (finish func()) {
	t.Helper()
	other, done := db.Open(t), make(chan struct{})
	db.Guard.Before(fragment, func() {
		go func() {
			defer close(done)
			f(other)
		}()
		for !Waits(t, db) {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	return func() { <-done }
}

// Waits returns true if a transaction waits for the lock of another transaction. On SQLite, it always returns true.
func Waits(t *testing.T, db *DB) bool {
	t.Helper()
	return !db.SharedByProcesses() ||
		Column[int64](t, db, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")[0] > 0
}

// Measure writes facts about videos that were fetched at a time. It does not claim targets.
func Measure(t *testing.T, db *DB, at time.Time, facts map[link.Link]ingest.VideoFacts) {
	t.Helper()
	var outcomes []ingest.Outcome
	for l, f := range facts {
		outcomes = append(outcomes, Outcome(db, queue.Target{Platform: l.Platform, Kind: "video", ExternalID: l.ID}, f))
	}
	require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, store.InstantOf(at), outcomes))
}

// StoredRows returns the rows of an organisation in all distributed tables as text, by the name of the table.
func StoredRows(t *testing.T, db *DB, o *store.Org) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for name, described := range store.Tables {
		if described.Class != store.Distributed {
			continue
		}
		query := "SELECT CAST(json_group_array(json(r)) AS text) FROM (SELECT json_object(%s) AS r FROM " + name + " WHERE organisation_id = ? ORDER BY 1)"
		if name == "organisation_totals" { // leave out the version, which rises even if no other column changes
			rows[name] = append(rows[name], Column[string](t, db, `SELECT videos || ' ' || videos_removed || ' ' || views || ' ' || likes || ' ' || comments || ' ' || shares || ' ' ||
 bookmarks || ' ' || accounts || ' ' || accounts_removed || ' ' || followers || ' ' || following FROM organisation_totals WHERE organisation_id = ?`, o.ID())...)
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

// Authored returns facts about a video with the id and the handle of its account. If the id or handle is "", the facts do not have it.
func Authored(id, handle string) ingest.VideoFacts {
	f := ingest.VideoFacts{Views: new(int64(1))}
	if id != "" {
		f.AccountID = &id
	}
	if handle != "" {
		f.Username = &handle
	}
	return f
}

// AccountOf returns the account to which the organisation's video with a link is linked.
func AccountOf(t *testing.T, o *store.Org, l link.Link) store.Account {
	t.Helper()
	id := VideoOf(t, o, l).LinkedAccountID
	require.NotNil(t, id)
	a, err := o.Account(t.Context(), store.AccountRef{ID: *id})
	require.NoError(t, err)
	return a
}

// Someone is the link of the account @someone, which posts the videos that Clip returns.
const Someone = "https://www.tiktok.com/@someone"

// FoundVideos returns the videos 0 to n-1 of the account @someone as a source lists them, the newest first. The first video was uploaded at
// newest, and each following video one hour earlier.
func FoundVideos(t *testing.T, n int, newest time.Time) []ingest.FoundVideo {
	t.Helper()
	videos := make([]ingest.FoundVideo, n)
	for i, l := range Clips(t, n) {
		at := store.InstantOf(newest.Add(-time.Duration(i) * time.Hour))
		videos[i] = ingest.FoundVideo{ID: l.ID, Link: l.Canonical, UploadedAt: &at}
	}
	return videos
}

// ListedAccount returns facts about the account @someone with a list of videos.
func ListedAccount(videos []ingest.FoundVideo) ingest.AccountFacts {
	return ingest.AccountFacts{ID: new("42"), Username: new("someone"), Videos: videos, Listed: true}
}

// TrackedVideos returns the number of videos that the organisation tracks.
func TrackedVideos(t *testing.T, o *store.Org) int {
	t.Helper()
	return int(ListVideos(t, o, store.VideoQuery{}).Total)
}

// Series holds the daily points and the weekly points of a video, by day.
type Series struct {
	Daily, Weekly map[store.Date]store.Counts
}

// Bare returns points without source, time of fetch and quality. Only interpolated points still have their quality.
func Bare(points []store.Point) []store.Point {
	out := slices.Clone(points)
	for i := range out {
		interpolated := out[i].Quality == store.QualityInterpolated
		if out[i].Provenance = (store.Provenance{}); interpolated {
			out[i].Quality = store.QualityInterpolated
		}
	}
	return out
}

// Room creates the partitions for the points of the last days, up to the given number of days ago.
func Room(t *testing.T, db *DB, days int) {
	t.Helper()
	unsubscribed := Outcome(db, queue.Target{Platform: link.TikTok, Kind: "video", ExternalID: "0"}, Views(1))
	for d := 0; d <= days; d += 28 {
		require.NoError(t, db.Acknowledge(t.Context(), queue.Claim{}, store.InstantOf(db.Clock.Now().AddDate(0, 0, -d)), []ingest.Outcome{unsubscribed}))
	}
}

// Keep inserts the points of a series into snapshots_daily and snapshots_weekly directly.
func (s Series) Keep(t *testing.T, db *DB, o *store.Org, video uuid.UUID) {
	t.Helper()
	for table, points := range map[string]map[store.Date]store.Counts{"snapshots_daily": s.Daily, "snapshots_weekly": s.Weekly} {
		if len(points) == 0 {
			continue
		}
		var args []any
		for day, c := range points {
			args = append(args, o.ID(), video, day, day.Week(), c.Views, c.Likes, c.Comments, c.Shares, c.Bookmarks)
		}
		row := "(?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 'test')"
		db.Exec(t, "INSERT INTO "+table+" (organisation_id, video_id, day, week, views, likes, comments, shares, bookmarks, fetched_at, source) VALUES "+
			row+strings.Repeat(", "+row, len(points)-1), args...)
	}
}

// Over returns the counts c. A count that c lacks comes from under.
func Over(c, under store.Counts) store.Counts {
	return store.Counts{Views: cmp.Or(c.Views, under.Views), Likes: cmp.Or(c.Likes, under.Likes), Comments: cmp.Or(c.Comments, under.Comments),
		Shares: cmp.Or(c.Shares, under.Shares), Bookmarks: cmp.Or(c.Bookmarks, under.Bookmarks)}
}

// Points returns the daily and weekly points by day. If a day has a daily and a weekly point, counts that the daily point lacks come from the
// weekly point.
func (s Series) Points() map[store.Date]store.Counts {
	known := map[store.Date]store.Counts{}
	maps.Copy(known, s.Weekly)
	for day, c := range s.Daily {
		known[day] = Over(c, s.Weekly[day])
	}
	return known
}

// Read returns the points that Org.History must return for the days from..to. It is a simple implementation of the same rules, for
// comparison.
func (s Series) Read(from, to store.Date) []store.Point {
	known, before := s.Points(), map[store.Date]store.Counts{}
	days := slices.Sorted(maps.Keys(known))
	for i := 1; i < len(days); i++ {
		before[days[i]] = Over(known[days[i-1]], before[days[i-1]])
	}
	out := []store.Point{}
	for day := to; day >= from; day-- {
		later, _ := slices.BinarySearch(days, day)
		if c, ok := known[day]; ok {
			p := store.Point{Day: day, Counts: c, Provenance: store.Provenance{Quality: store.QualityMeasured, Source: new("test"), FetchedAt: new(store.Instant(0))}}
			if lower(c, before[day]) {
				p.Quality = store.QualityCorrected
			}
			out = append(out, p)
			continue
		}
		if later == 0 || later == len(days) {
			continue
		}
		a, b := days[later-1], days[later]
		line := func(x, y *int64) *int64 {
			if x == nil || y == nil {
				return nil
			}
			n := new(big.Int).Sub(big.NewInt(*y), big.NewInt(*x))
			n.Mul(n, big.NewInt(int64(day-a))).Quo(n, big.NewInt(int64(b-a)))
			return new(n.Int64() + *x)
		}
		ca, cb := known[a], known[b]
		out = append(out, store.Point{Day: day, Provenance: store.Provenance{Quality: store.QualityInterpolated}, Counts: store.Counts{Views: line(ca.Views, cb.Views), Likes: line(ca.Likes, cb.Likes),
			Comments: line(ca.Comments, cb.Comments), Shares: line(ca.Shares, cb.Shares), Bookmarks: line(ca.Bookmarks, cb.Bookmarks)}})
	}
	return out
}

// lower returns true if any count of now is lower than the same count of before. It skips counts that are unknown in now or before.
func lower(now, before store.Counts) bool {
	values := func(c store.Counts) []*int64 { return []*int64{c.Views, c.Likes, c.Comments, c.Shares, c.Bookmarks} }
	for i, n := range values(now) {
		if b := values(before)[i]; n != nil && b != nil && *n < *b {
			return true
		}
	}
	return false
}

// Migrations returns the migrations of the engine, so that a test can undo migrations. The program itself never undoes a migration.
func Migrations(t *testing.T, db *DB) *goose.Provider {
	t.Helper()
	dialect := goose.DialectPostgres
	if db.Engine == "sqlite" {
		dialect = goose.DialectSQLite3
	}
	files, err := fs.Sub(migrations.Files, db.Engine)
	require.NoError(t, err)
	p, err := goose.NewProvider(dialect, db.Raw(t), files, goose.WithDisableGlobalRegistry(true))
	require.NoError(t, err)
	return p
}

// Short is the link of a video of YouTube. The link does not contain the handle, so tracking the video does not create an account.
const Short = "https://www.youtube.com/shorts/dQw4w9WgXcQ"

// Consistent checks that exactly the tracked videos that are not pending have a subscription, and that the totals equal the numbers of
// videos.
func Consistent(t *testing.T, db *DB, o *store.Org) {
	t.Helper()
	all := ListVideos(t, o, store.VideoQuery{IncludeRemoved: true})
	require.EqualValues(t, len(all.Videos), all.Total)
	page := ListVideos(t, o, store.VideoQuery{})
	require.EqualValues(t, len(page.Videos), page.Total)
	var fetched []string
	for _, v := range page.Videos {
		if !v.Pending {
			fetched = append(fetched, v.ID.String())
		}
	}
	require.ElementsMatch(t, fetched, Column[string](t, db, "SELECT CAST(subject_id AS text) FROM fetch_subscriptions WHERE organisation_id = ? AND kind = 'video'", o.ID()))
}

// GoOn always returns nil. It is an alive function with which a job never stops.
func GoOn() error { return nil }

// Reduced returns the series that retention must leave: the daily points from the day daily on, and one weekly point for each earlier week.
// The weekly point has the day of the week's last point, and the last known value of each count in the week. Points before the day oldest
// are left out.
func (s Series) Reduced(daily, oldest store.Date) Series {
	kept := Series{Daily: map[store.Date]store.Counts{}, Weekly: map[store.Date]store.Counts{}}
	last, known := map[store.Date]store.Date{}, s.Points() // by week
	for day, c := range s.Daily {
		if day >= daily {
			kept.Daily[day] = c
		}
	}
	for day := range known {
		if _, stays := kept.Daily[day]; !stays {
			last[day.Week()] = max(last[day.Week()], day)
		}
	}
	for week, day := range last {
		if day < oldest {
			continue
		}
		for d := week; d <= day; d++ {
			kept.Weekly[day] = Over(known[d], kept.Weekly[day])
		}
	}
	return kept
}

// SilentSunday returns the points of an old week. The point of Sunday has only likes. If cut is true, the week begins in one month and ends in
// the next.
func SilentSunday(db *DB, cut bool) (monday store.Date, days map[store.Date]store.Counts) {
	monday = (Today(db) - 150).Week()
	for ((monday + 6).Time().Day() < 7) != cut {
		monday -= 7
	}
	days = map[store.Date]store.Counts{monday + 6: {Likes: new(int64(70))}}
	for n := range store.Date(6) {
		days[monday+n] = store.Counts{Views: new(1000 + 100*int64(n)), Likes: new(int64(n))}
	}
	return monday, days
}

// Stop stops the tracking of videos and fails the test if a video is not tracked.
func Stop(t *testing.T, o *store.Org, links ...link.Link) {
	t.Helper()
	refs := make([]store.VideoRef, len(links))
	for i, l := range links {
		refs[i].Link = l
	}
	unmatched, err := o.StopVideos(t.Context(), refs, true)
	require.NoError(t, err)
	require.Empty(t, unmatched)
}
