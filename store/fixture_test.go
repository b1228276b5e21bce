package store_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestMain(m *testing.M) {
	// Most properties here ask a database: 15 cases each, on two engines, unless the command line says otherwise.
	if err := flag.Set("rapid.checks", "15"); err != nil {
		panic(err)
	}
	flag.Parse()
	goleak.VerifyTestMain(m)
}

// newOrg makes an organisation and returns its view.
func newOrg(t *testing.T, db *storetest.DB) *store.Org {
	t.Helper()
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	return db.Org(o.ID)
}

func parse(t *testing.T, raw string) link.Link {
	t.Helper()
	l, err := link.Parse(raw)
	require.NoError(t, err)
	return l
}

// clip is the link of one of many TikTok videos of @someone.
func clip(t *testing.T, n int) link.Link {
	t.Helper()
	return parse(t, fmt.Sprintf("https://www.tiktok.com/@someone/video/73012345678%08d", n))
}

// clips are the first n of them.
func clips(t *testing.T, n int) []link.Link {
	t.Helper()
	return clipsFrom(t, 0, n)
}

// clipsFrom are n of them from the first-th on. Organisations with the same links share their fetches.
func clipsFrom(t *testing.T, first, n int) []link.Link {
	t.Helper()
	links := make([]link.Link, n)
	for i := range links {
		links[i] = clip(t, first+i)
	}
	return links
}

// track tracks links with immediate fetches.
func track(t *testing.T, o *store.Org, links ...link.Link) []store.Tracked {
	t.Helper()
	tracked, err := o.Track(t.Context(), store.TrackRequest{Links: links, Lane: store.LanePremium, Immediate: len(links), Enqueue: len(links)})
	require.NoError(t, err)
	return tracked
}

// follow tracks accounts with immediate fetches and returns their ids.
func follow(t *testing.T, o *store.Org, kind store.TrackingType, links ...link.Link) []store.TrackedAccount {
	t.Helper()
	tracked, err := o.TrackAccounts(t.Context(), store.TrackAccountsRequest{Links: links, Type: kind, Lane: store.LanePremium, Immediate: len(links), Enqueue: len(links)})
	require.NoError(t, err)
	return tracked
}

// claim takes what is due in all lanes of a platform and kind, one claim a lane.
func claim(t *testing.T, db *storetest.DB, p link.Platform, kind store.Kind) []store.Claim {
	t.Helper()
	var claims []store.Claim
	for _, lane := range store.Lanes {
		c, err := db.Claim(t.Context(), storetest.ClaimRequest(store.NewID(), p, kind, 1000, time.Minute, lane))
		require.NoError(t, err)
		if len(c.Targets) > 0 {
			claims = append(claims, c)
		}
	}
	return claims
}

// claimOne claims the only target that is due.
func claimOne(t *testing.T, db *storetest.DB, p link.Platform, kind store.Kind) store.Claim {
	t.Helper()
	claims := claim(t, db, p, kind)
	require.Len(t, claims, 1)
	require.Len(t, claims[0].Targets, 1)
	return claims[0]
}

// outcome is a fetch that succeeded; the target is due again in a day.
func outcome(db *storetest.DB, target store.Target, facts store.VideoFacts) store.Outcome {
	return store.Outcome{Target: target, Facts: &facts, Details: true, Source: "test",
		NextAt: store.InstantOf(db.Clock.Now().Add(24 * time.Hour)), State: "active"}
}

// deliver fetches everything that is due on a platform with the facts given, and returns how many targets that were.
func deliver(t *testing.T, db *storetest.DB, p link.Platform, facts store.VideoFacts) int {
	t.Helper()
	return deliverBy(t, db, p, func(store.Target) store.VideoFacts { return facts })
}

// deliverBy is deliver with facts for each target.
func deliverBy(t *testing.T, db *storetest.DB, p link.Platform, facts func(store.Target) store.VideoFacts) int {
	t.Helper()
	n := 0
	for _, c := range claim(t, db, p, "video") {
		outcomes := make([]store.Outcome, len(c.Targets))
		for i, target := range c.Targets {
			outcomes[i] = outcome(db, target, facts(target))
		}
		require.NoError(t, db.Acknowledge(t.Context(), c, c.At, outcomes))
		n += len(outcomes)
	}
	return n
}

// deliverAccount fetches the only TikTok account that is due.
func deliverAccount(t *testing.T, db *storetest.DB, facts store.AccountFacts) {
	t.Helper()
	c := claimOne(t, db, link.TikTok, "account")
	require.NoError(t, db.AcknowledgeAccounts(t.Context(), c, c.At, []store.AccountOutcome{accountOutcome(db, c.Targets[0], facts)}))
}

func accountOutcome(db *storetest.DB, target store.Target, facts store.AccountFacts) store.AccountOutcome {
	return store.AccountOutcome{Account: &facts, Outcome: store.Outcome{Target: target, Source: "test", State: "active",
		NextAt: store.InstantOf(db.Clock.Now().Add(24 * time.Hour))}}
}

func views(n int64) store.VideoFacts { return store.VideoFacts{Views: &n} }

func video(t *testing.T, o *store.Org, l link.Link) store.Video {
	t.Helper()
	v, err := o.Video(t.Context(), store.VideoRef{Link: l})
	require.NoError(t, err)
	return v
}

func account(t *testing.T, o *store.Org, l link.Link) store.Account {
	t.Helper()
	a, err := o.Account(t.Context(), store.AccountRef{Link: l})
	require.NoError(t, err)
	return a
}

// today is the UTC day of the database's clock.
func today(db *storetest.DB) store.Date { return store.DateOf(db.Clock.Now()) }

// all asks for every video in an order.
func all(column string, descending bool) store.VideoQuery {
	return store.VideoQuery{Order: store.Order{Column: column, Descending: descending}, Window: store.Window{Limit: 5000}}
}

func list(t *testing.T, o *store.Org, q store.VideoQuery) store.VideoPage {
	t.Helper()
	if q.Order.Column == "" {
		q.Order, q.Window.Limit = all("created_at", false).Order, 5000
	}
	page, err := o.Videos(t.Context(), q)
	require.NoError(t, err)
	return page
}

// fullOrg makes an organisation with rows in every table that organisations own.
func fullOrg(t *testing.T, db *storetest.DB) *store.Org {
	t.Helper()
	ctx, o := t.Context(), newOrg(t, db)
	root, err := o.CreateCollection(ctx, store.NewCollection{Name: "Root", Access: store.AccessPublic, Hashtags: []string{"dog"}})
	require.NoError(t, err)
	_, err = o.CreateCollection(ctx, store.NewCollection{Name: "Below", Access: store.AccessPrivate, ParentID: &root.ID})
	require.NoError(t, err)
	tracked, err := o.Track(ctx, store.TrackRequest{Links: clips(t, 3), CollectionIDs: []uuid.UUID{root.ID}, Lane: store.LaneBasic, Immediate: 3, Enqueue: 3})
	require.NoError(t, err)
	deliver(t, db, link.TikTok, store.VideoFacts{Views: new(int64(10)), Likes: new(int64(1)), Title: new("A #dog"), Username: new("someone"),
		AccountID: new("42"), UploadedAt: new(db.Clock.Now().AddDate(0, 0, -3))})
	a := follow(t, o, store.TrackLatest30, parse(t, "https://www.tiktok.com/@someone"))[0]
	deliverAccount(t, db, store.AccountFacts{Username: new("someone"), Followers: new(int64(7))})
	_, err = o.AddAccounts(ctx, root.ID, []uuid.UUID{a.AccountID})
	require.NoError(t, err)
	_, err = o.BeginKey(ctx, "TrackVideo", "key", []byte("fingerprint"))
	require.NoError(t, err)
	day := today(db) - 100
	db.Exec(t, `INSERT INTO snapshots_weekly (organisation_id, video_id, week, day, views, fetched_at, source) VALUES (?, ?, ?, ?, 5, 0, 'test')`,
		o.ID(), tracked[0].VideoID, day.Week(), day)
	return o
}

func collection(t *testing.T, o *store.Org, name string, parent *uuid.UUID) store.Collection {
	t.Helper()
	c, err := o.CreateCollection(t.Context(), store.NewCollection{Name: name, ParentID: parent, Access: store.AccessPrivate, CreatedBy: store.NewID()})
	require.NoError(t, err)
	return c
}

func targetIDs(c store.Claim) []string {
	ids := make([]string, len(c.Targets))
	for i, target := range c.Targets {
		ids[i] = target.ExternalID
	}
	return ids
}

// due returns the external ids of the TikTok videos that a collector could claim now.
func due(t *testing.T, db *storetest.DB) []string {
	t.Helper()
	return storetest.Column[string](t, db, "SELECT external_id FROM fetch_targets WHERE source = ? AND kind = 'video' AND next_at <= ?",
		string(link.TikTok), int64(store.InstantOf(db.Clock.Now())))
}

// meanwhile has another process do f at the worst moment, just before the next statement that contains the fragment, which
// goes on when f is done or has to wait for us. Call the function returned to wait for f.
func meanwhile(t *testing.T, db *storetest.DB, fragment string, f func(s *store.Store)) (finish func()) {
	t.Helper()
	other, done := db.Open(t), make(chan struct{})
	db.Guard.Before(fragment, func() {
		go func() {
			defer close(done)
			f(other)
		}()
		for !waits(t, db) {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	return func() { <-done }
}

// waits says whether a transaction waits for another. Where one writes at a time, each other one does.
func waits(t *testing.T, db *storetest.DB) bool {
	t.Helper()
	return !db.SharedByProcesses() ||
		storetest.Column[int64](t, db, "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")[0] > 0
}

// measure writes what a source said at a time of videos, past the queue.
func measure(t *testing.T, db *storetest.DB, at time.Time, facts map[link.Link]store.VideoFacts) {
	t.Helper()
	var outcomes []store.Outcome
	for l, f := range facts {
		outcomes = append(outcomes, outcome(db, store.Target{Platform: l.Platform, Kind: "video", ExternalID: l.ID}, f))
	}
	require.NoError(t, db.Acknowledge(t.Context(), store.Claim{}, store.InstantOf(at), outcomes))
}

// stored returns all rows of an organisation as text, by table.
func stored(t *testing.T, db *storetest.DB, o *store.Org) map[string][]string {
	t.Helper()
	rows := map[string][]string{}
	for name, described := range store.Tables {
		if described.Class != store.Distributed {
			continue
		}
		query := "SELECT CAST(json_group_array(json(r)) AS text) FROM (SELECT json_object(%s) AS r FROM " + name + " WHERE organisation_id = ? ORDER BY 1)"
		if name == "organisation_totals" { // except its version, which rises even if nothing else changes
			rows[name] = append(rows[name], storetest.Column[string](t, db, `SELECT videos || ' ' || videos_removed || ' ' || views || ' ' || likes || ' ' || comments || ' ' || shares || ' ' ||
 bookmarks || ' ' || accounts || ' ' || accounts_removed || ' ' || followers || ' ' || following FROM organisation_totals WHERE organisation_id = ?`, o.ID())...)
			continue
		}
		if db.Engine != "sqlite" {
			rows[name] = storetest.Column[string](t, db, "SELECT CAST(x AS text) FROM "+name+" x WHERE organisation_id = ? ORDER BY 1", o.ID())
			continue
		}
		var columns []string
		for _, c := range storetest.Column[string](t, db, "SELECT name FROM pragma_table_info(?)", name) {
			columns = append(columns, "'"+c+"', quote("+c+")")
		}
		rows[name] = storetest.Column[string](t, db, fmt.Sprintf(query, strings.Join(columns, ", ")), o.ID())
	}
	return rows
}
