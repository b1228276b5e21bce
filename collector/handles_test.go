package collector_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// handleTest tests a video whose links have correct and wrong handles. The collector fetches only
// when the test calls advanceAndFetch.
type handleTest struct {
	*testSystem
	platform  link.Platform
	collector *collector.Collector
}

func newHandleTest(t *testing.T, db *storetest.DB, p link.Platform, sources func(*testSystem) []source.Source) *handleTest {
	t.Helper()
	w := newTestSystem(t, db)
	c, err := collector.New(collector.Options{Store: db.Store, Sources: sources(w), Now: db.Clock.Now, Logger: slog.New(slog.NewTextHandler(w.log, nil))})
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context()))
	return &handleTest{testSystem: w, platform: p, collector: c}
}

// tenant is an organisation that tracks a single video.
type tenant struct {
	org     *store.Org
	tracked store.Tracked
}

// newTenant creates an organisation that tracks the video of the given link.
func (c *handleTest) newTenant(videoLink string) tenant {
	c.t.Helper()
	o, err := c.db.CreateOrganisation(c.t.Context(), "Tenant", store.TierPremium, store.SubscriptionActive)
	require.NoError(c.t, err)
	tn := tenant{org: c.db.Org(o.ID)}
	parsed, err := link.Parse(videoLink)
	require.NoError(c.t, err)
	out, err := tn.org.Track(c.t.Context(), store.TrackRequest{Links: []link.Link{parsed}, Immediate: 1})
	require.NoError(c.t, err)
	tn.tracked = out[0]
	return tn
}

func (c *handleTest) video(tn tenant) store.Video {
	c.t.Helper()
	v, err := tn.org.Video(c.t.Context(), store.Ref{ID: tn.tracked.ID})
	require.NoError(c.t, err)
	return v
}

// advanceAndFetch advances the clock to the time of the next scheduled fetch, and then fetches the video once.
func (c *handleTest) advanceAndFetch() {
	c.t.Helper()
	next := storetest.Column[store.Instant](c.t, c.db, "SELECT MIN(next_at) FROM fetch_targets WHERE kind = 'video'")[0].Time()
	if next.After(c.db.Clock.Now()) {
		c.db.Clock.Set(next)
	}
	busy, err := c.collector.ClaimAndFetch(c.t.Context())
	require.NoError(c.t, err)
	require.True(c.t, busy)
}

// fetchUntilCountsAreCorrect fetches until the video of an organisation has counts. Then it requires that the views and the handle are correct. The
// test fails if the video has no counts after maxFetches fetches.
func (c *handleTest) fetchUntilCountsAreCorrect(maxFetches int, tn tenant) {
	c.t.Helper()
	for n := 0; c.video(tn).Latest.Views == nil; n++ {
		require.Less(c.t, n, maxFetches, "the video must have counts after fewer fetches; log of the collector:\n%s", c.log.String())
		c.advanceAndFetch()
	}
	v := c.video(tn)
	correct, ok := c.sandbox.World().Video(c.platform, v.ExternalID, v.LatestUpdatedAt.Time())
	require.True(c.t, ok)
	// If there are shares, the views may come from the insights of the account, and can differ from the
	// public views. So the views are compared only if there are no shares.
	if v.Latest.Shares == nil {
		require.Equal(c.t, correct.Views, *v.Latest.Views)
	}
	require.Equal(c.t, correct.Account.Handle, v.Username)
}

// handlesCase is a test case: sources, and a video of their platform whose link can contain the handle of its account.
type handlesCase struct {
	platform link.Platform
	sources  func(*testSystem) []source.Source
	id       func(*testSystem) string
	// link returns the URL of the video with the given id. If the handle is "", the URL contains no handle.
	link func(handle, id string) string
}

func instagramReel(handle, id string) string {
	if handle == "" {
		return "https://www.instagram.com/reel/" + id + "/"
	}
	return "https://www.instagram.com/" + handle + "/reel/" + id + "/"
}

func tiktokVideo(handle, id string) string {
	return "https://www.tiktok.com/@" + handle + "/video/" + id
}

var byHandle = map[string]handlesCase{
	"Instagram reel of another account":        {link.Instagram, (*testSystem).metaSources, func(w *testSystem) string { return w.sandbox.World().Find(link.Instagram, sandbox.Normal) }, instagramReel},
	"Instagram reel of the authorized account": {link.Instagram, (*testSystem).metaSources, (*testSystem).reelOfAuthorizedAccount, instagramReel},
	"Facebook video": {link.Facebook, (*testSystem).metaSources, func(w *testSystem) string { return w.sandbox.World().Find(link.Facebook, sandbox.Normal) },
		func(handle, id string) string { return "https://www.facebook.com/" + handle + "/videos/" + id }},
	"TikTok video of the account that has logged in": {link.TikTok, func(w *testSystem) []source.Source { return []source.Source{w.displayAPISource()} },
		func(w *testSystem) string {
			return w.sandbox.World().Uploads(link.TikTok, w.sandbox.TikTokAccount(), w.db.Clock.Now())[0]
		}, tiktokVideo},
	"a vendor that requests a video by a link with a handle": {link.TikTok, func(w *testSystem) []source.Source { return w.newSources("apify") },
		func(w *testSystem) string { return w.sandbox.World().Find(link.TikTok, sandbox.Normal) }, tiktokVideo},
}

// reelOfAuthorizedAccount returns the id of an Instagram reel. The reel belongs to the account whose access token the tests use.
func (w *testSystem) reelOfAuthorizedAccount() string {
	w.t.Helper()
	return w.sandbox.World().Uploads(link.Instagram, w.sandbox.InstagramAccount(), w.db.Clock.Now())[0]
}

func TestWrongHandleInALink_doesNotPreventCountsForOtherOrganisations(t *testing.T) {
	t.Parallel()
	for name, s := range byHandle {
		for order, honestFirst := range map[string]int{"first a link with the wrong handle, then a fetch, then a link with the correct handle": 0, "first a link with the wrong handle, then a link with the correct handle": 1, "first a link with the correct handle, then a link with the wrong handle": 2} {
			t.Run(name+", "+order, func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					c := newHandleTest(t, db, s.platform, s.sources)
					id := s.id(c.testSystem)
					correct, ok := c.sandbox.World().Video(s.platform, id, db.Clock.Now())
					require.True(t, ok)
					var honest tenant
					switch honestFirst {
					case 0:
						c.newTenant(s.link("natgeo", id))
						c.advanceAndFetch()
						honest = c.newTenant(s.link(correct.Account.Handle, id))
					case 1:
						c.newTenant(s.link("natgeo", id))
						honest = c.newTenant(s.link(correct.Account.Handle, id))
					case 2:
						honest = c.newTenant(s.link(correct.Account.Handle, id))
						c.newTenant(s.link("natgeo", id))
					}
					require.Equal(t, correct.Account.Handle, c.video(honest).Username, "the organisation must see the handle from its own link")
					c.fetchUntilCountsAreCorrect(2, honest)
				})
			})
		}
	}
}

func TestWrongHandleInALink_fiftyWrongHandlesDoNotPreventCounts(t *testing.T) {
	t.Parallel()
	for order, attackersAfter := range map[string]int{"50 wrong handles before the correct one": 0, "25 wrong handles before the correct one, and 25 wrong handles after it": 25, "50 wrong handles after the correct one": 50} {
		for _, fetched := range []bool{false, true} {
			t.Run(fmt.Sprintf("order: %s; fetched before the correct handle is added: %v", order, fetched), func(t *testing.T) {
				t.Parallel()
				storetest.Each(t, func(t *testing.T, db *storetest.DB) {
					c := newHandleTest(t, db, link.Instagram, (*testSystem).metaSources)
					id := c.sandbox.World().Find(link.Instagram, sandbox.Normal)
					correct, _ := c.sandbox.World().Video(link.Instagram, id, db.Clock.Now())
					attack := func(from, to int) {
						for i := from; i < to; i++ {
							c.newTenant(instagramReel(fmt.Sprintf("nobody_%d", i), id))
						}
					}
					attack(0, 50-attackersAfter)
					if fetched && attackersAfter < 50 {
						c.advanceAndFetch()
					}
					honest := c.newTenant(instagramReel(correct.Account.Handle, id))
					attack(50-attackersAfter, 50)
					c.fetchUntilCountsAreCorrect(2, honest)
				})
			})
		}
	}
}

// One organisation tracks a reel by a link without a handle. It must get the correct counts,
// although another organisation's link has a wrong handle.
func TestWrongHandleInALink_doesNotAffectALinkWithoutAHandle(t *testing.T) {
	t.Parallel()
	for order, first := range map[string]bool{"a link without a handle before a link with a wrong handle": true, "a link without a handle after a link with a wrong handle": false} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			storetest.Each(t, func(t *testing.T, db *storetest.DB) {
				c := newHandleTest(t, db, link.Instagram, (*testSystem).metaSources)
				id := c.reelOfAuthorizedAccount()
				if !first {
					c.newTenant(instagramReel("natgeo", id))
				}
				honest := c.newTenant(instagramReel("", id))
				if first {
					c.newTenant(instagramReel("natgeo", id))
				}
				c.fetchUntilCountsAreCorrect(2, honest)
			})
		})
	}
}

func TestWrongHandleInALink_doesNotMarkTheVideoAsGone(t *testing.T) {
	t.Parallel()
	for name, s := range byHandle {
		if s.platform == link.Facebook { // Facebook finds a video by its id and not by a handle
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newHandleTest(t, storetest.New(t, "sqlite"), s.platform, s.sources)
			wrong, id := "natgeo", "DCXkB8LpR2q"
			if s.platform == link.TikTok {
				wrong, id = c.sandbox.TikTokAccount(), c.sandbox.World().Find(link.TikTok, sandbox.Normal)
			}
			c.newTenant(s.link(wrong, id))
			for range 6 {
				c.advanceAndFetch()
				require.Equal(t, []string{"active"}, storetest.Column[string](t, c.db, "SELECT state FROM fetch_targets"))
			}
		})
	}
}

func TestConfirmedHandle_isUsedForAllOrganisationsThatTrackTheVideo(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		c := newHandleTest(t, db, link.Instagram, (*testSystem).metaSources)
		id := c.sandbox.World().Find(link.Instagram, sandbox.Normal)
		correct, _ := c.sandbox.World().Video(link.Instagram, id, db.Clock.Now())
		c.fetchUntilCountsAreCorrect(1, c.newTenant(instagramReel(correct.Account.Handle, id)))
		require.Equal(t, []string{correct.Account.Handle}, storetest.Column[string](t, db, "SELECT handle FROM fetch_targets"))
		before := c.callCount("instagram")
		for i := range 5 {
			c.fetchUntilCountsAreCorrect(1, c.newTenant(instagramReel(fmt.Sprintf("nobody_%d", i), id)))
		}
		require.Equal(t, before+5, c.callCount("instagram"), "the source must be asked only with the confirmed handle")
		require.Equal(t, []string{correct.Account.Handle}, storetest.Column[string](t, db, "SELECT handle FROM fetch_targets"))
	})
}

func TestConfirmedHandle_isReplacedAfterTheAccountWasRenamed(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		c := newHandleTest(t, db, link.Instagram, (*testSystem).metaSources)
		id := c.sandbox.World().Find(link.Instagram, sandbox.Normal)
		correct, _ := c.sandbox.World().Video(link.Instagram, id, db.Clock.Now())
		honest := c.newTenant(instagramReel(correct.Account.Handle, id))
		c.fetchUntilCountsAreCorrect(1, honest)
		require.NoError(t, c.sandbox.World().Rename(link.Instagram, correct.Account.Handle, "renamed.since", false))
		before := *c.video(honest).LatestUpdatedAt
		db.Clock.Advance(time.Hour)
		c.newTenant(instagramReel("natgeo", id))
		c.newTenant(instagramReel("renamed.since", id))
		c.advanceAndFetch()
		require.Greater(t, *c.video(honest).LatestUpdatedAt, before)
		require.Equal(t, "renamed.since", c.video(honest).Username)
		require.Equal(t, []string{"renamed.since"}, storetest.Column[string](t, db, "SELECT handle FROM fetch_targets"))
	})
}

// A handle from one organisation's link is not written to the records of another organisation.
func TestWrongHandleInALink_isStoredOnlyForTheOrganisationOfTheLink(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		c := newHandleTest(t, db, link.Instagram, (*testSystem).metaSources)
		id := c.sandbox.World().Find(link.Instagram, sandbox.Normal)
		correct, _ := c.sandbox.World().Video(link.Instagram, id, db.Clock.Now())
		wrong := c.newTenant(instagramReel("natgeo", id))
		right := c.newTenant(instagramReel(correct.Account.Handle, id))
		of := func(tn tenant) []string {
			return storetest.Column[string](t, db, "SELECT username FROM accounts WHERE organisation_id = ? ORDER BY username", tn.org.ID())
		}
		require.Equal(t, "natgeo", c.video(wrong).Username)
		require.Equal(t, correct.Account.Handle, c.video(right).Username)
		require.Equal(t, []string{"natgeo"}, of(wrong))
		require.Equal(t, []string{correct.Account.Handle}, of(right))
		c.fetchUntilCountsAreCorrect(2, right)
		require.Equal(t, []string{correct.Account.Handle}, of(right))
		require.Equal(t, correct.Account.Handle, c.video(wrong).Username, "the confirmed handle must replace a wrong handle")
		require.NotEqual(t, *c.video(wrong).LinkedAccountID, *c.video(right).LinkedAccountID)
	})
}

func TestTrackingAVideoAgain_causesNoFurtherFetch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		c := newHandleTest(t, db, link.Instagram, (*testSystem).metaSources)
		id := c.sandbox.World().Find(link.Instagram, sandbox.Normal)
		correct, _ := c.sandbox.World().Video(link.Instagram, id, db.Clock.Now())
		l, err := link.Parse(instagramReel(correct.Account.Handle, id))
		require.NoError(t, err)
		tn := c.newTenant(l.Canonical + "?hl=en")
		c.newTenant(instagramReel(correct.Account.Handle, id)) // another organisation tracks the video all the time, so that the target stays in the queue
		c.fetchUntilCountsAreCorrect(1, tn)
		before := c.callCount("instagram")
		for range 10 {
			db.Clock.Advance(time.Minute)
			_, err := tn.org.StopVideos(t.Context(), []uuid.UUID{tn.tracked.ID})
			require.NoError(t, err)
			_, err = tn.org.Track(t.Context(), store.TrackRequest{Links: []link.Link{l}, Immediate: 1})
			require.NoError(t, err)
			_, err = c.collector.ClaimAndFetch(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, before, c.callCount("instagram"))
	})
}
