package seed_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/seed"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// newWorld returns the made-up platforms of a new sandbox.
func newWorld() *sandbox.World { return sandbox.New(sandbox.Options{}).World() }

func ignoreProgress(seed.Progress) {}

// organisationID is the id of the organisation of most tests. The seeded data depends on the id.
const organisationID = "01900000-0000-7000-8000-000000000001"

// newOrganisation creates an empty organisation with the given id. The seeded data depends on the id.
func newOrganisation(t *testing.T, db *storetest.DB, text string) *store.Org {
	t.Helper()
	id := uuid.MustParse(text)
	_, err := backfill.CreateOrganisation(t.Context(), db.Store, store.Organisation{ID: id, Name: "Seeded", Tier: store.TierPremium,
		Subscription: store.SubscriptionActive, CreatedAt: store.InstantOf(db.Clock.Now())})
	require.NoError(t, err)
	return db.Org(id)
}

func planOf(db *storetest.DB, videos int) seed.Plan {
	return seed.Plan{Videos: videos, Days: 90, PerAccount: 5, Platforms: link.Platforms, Today: store.DateOf(db.Clock.Now()), Batch: 1000}
}

func videosOf(t *testing.T, o *store.Org) []store.Video {
	t.Helper()
	page, err := o.ListVideos(t.Context(), store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 5000}})
	require.NoError(t, err)
	slices.SortFunc(page.Rows, func(a, b store.Video) int { return cmp.Compare(a.ID.String(), b.ID.String()) })
	return page.Rows
}

func TestRun_storesCountsOfSandbox(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, w := newOrganisation(t, db, organisationID), newWorld()
		var last seed.Progress
		require.NoError(t, seed.Run(t.Context(), o, w, planOf(db, 60), func(p seed.Progress) { last = p }))
		videos := videosOf(t, o)
		require.Len(t, videos, 60)
		require.Equal(t, 60, last.Videos)
		platforms, withHashtag, labelled := map[link.Platform]int{}, 0, 0
		now := db.Clock.Now()
		today := store.DateOf(now)
		for _, v := range videos {
			platforms[v.Platform]++
			truth, ok := w.Video(v.Platform, v.ExternalID, now)
			require.True(t, ok)
			require.Equal(t, truth.Title, v.Title)
			require.Equal(t, truth.Account.Handle, v.Username)
			require.Equal(t, store.DateOf(truth.UploadedAt), *v.UploadedAt)
			points, err := o.History(t.Context(), store.Ref{ID: v.ID}, today-89, today)
			require.NoError(t, err)
			require.NotEmpty(t, points)
			for _, p := range points {
				if p.Quality == store.QualityInterpolated {
					continue // skip interpolated points: they are computed, so the sandbox has other counts
				}
				midnight := p.Day.Time().Add(-time.Second)
				history := w.DailyCounts(v.Platform, v.ExternalID, midnight, midnight)
				if v.Platform == link.TikTok || v.Platform == link.Instagram { // on YouTube and Facebook, the counts of the sandbox also depend on its clock
					require.Equal(t, history[0].Views, *p.Views, "%s %s on %s", v.Platform, v.ExternalID, p.Day)
					require.Equal(t, history[0].Likes, p.Likes)
				}
			}
			if truth.State == sandbox.Public {
				require.Equal(t, today, points[0].Day)
				require.GreaterOrEqual(t, truth.Views, *v.Latest.Views, "the present views must not be lower than the stored views")
			}
			require.LessOrEqual(t, v.CreatedAt, store.InstantOf(now))
			if len(v.Labels) > 0 {
				labelled++
			}
			if len(store.Hashtags(v.Title)) > 0 {
				withHashtag++
			}
		}
		require.Len(t, platforms, 4)
		for p, n := range platforms {
			require.GreaterOrEqual(t, n, 10, p)
		}
		require.Greater(t, labelled, 10)
		require.Equal(t, 60, withHashtag)
		accounts, err := o.ListAccounts(t.Context(), store.AccountQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 100}})
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(accounts.Rows), 12)
	})
}

func TestRun_createsNestedCollections(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o := newOrganisation(t, db, organisationID)
		require.NoError(t, seed.Run(t.Context(), o, newWorld(), planOf(db, 60), ignoreProgress))
		found, err := o.ListCollections(t.Context(), store.CollectionQuery{Order: store.Order{Column: "name"}, Window: store.Window{Limit: 100}})
		require.NoError(t, err)
		names, parents := map[uuid.UUID]string{}, map[string]string{}
		for _, c := range found.Rows {
			names[c.ID] = c.Name
		}
		for _, c := range found.Rows {
			if c.ParentID != nil {
				parents[c.Name] = names[*c.ParentID]
			}
		}
		require.Equal(t, "Campaigns", parents["Summer push"])
		require.Equal(t, "Spring launch", parents["Spring launch, first wave"])
		require.Equal(t, "Creators", parents["Creators A"])
		require.Equal(t, "Topics", parents["#recipe"])
	})
}

func TestRun_includesVideosWithUnusualHistories(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o, w := newOrganisation(t, db, organisationID), newWorld()
	require.NoError(t, seed.Run(t.Context(), o, w, planOf(db, 60), ignoreProgress))
	now := db.Clock.Now()
	today := store.DateOf(now)
	categories, gaps, outlier := map[sandbox.Category]int{}, 0, 0.0
	for _, v := range videosOf(t, o) {
		truth, _ := w.Video(v.Platform, v.ExternalID, now)
		categories[truth.Category]++
		points, err := o.History(t.Context(), store.Ref{ID: v.ID}, today-89, today)
		require.NoError(t, err)
		for i := 1; i < len(points); i++ {
			if points[i].Quality == store.QualityInterpolated && points[i-1].Quality != store.QualityInterpolated {
				gaps++
			}
		}
		switch truth.State {
		case sandbox.Deleted:
			require.Less(t, points[0].Day, today, "a deleted video must have no points after its deletion")
			require.Equal(t, store.FetchStatus("gone"), v.FetchStatus)
		case sandbox.Private:
			require.True(t, v.Private)
			require.Equal(t, store.FetchStatus("private"), v.FetchStatus)
			require.Less(t, points[0].Day, today)
		case sandbox.Public, sandbox.Restricted:
			require.Equal(t, store.FetchStatus("ok"), v.FetchStatus)
		}
		if truth.Category == sandbox.Viral && v.OutlierMultiplier != nil {
			outlier = max(outlier, *v.OutlierMultiplier)
		}
	}
	for _, c := range []sandbox.Category{sandbox.Viral, sandbox.BecomesDeleted, sandbox.BecomesPrivate} {
		require.NotZero(t, categories[c], c)
	}
	require.Equal(t, 1, gaps)
	require.Greater(t, outlier, 3.0)
}

func TestRun_createsVideosWithHistoriesOfFullLength(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		for _, plan := range []struct {
			videos    int // number of videos
			wanted    int // minimum number of videos with a complete history, on each platform
			platforms []link.Platform
		}{{20, 1, []link.Platform{link.TikTok}}, {240, 5, []link.Platform{link.TikTok, link.Instagram}}} {
			o := newOrganisation(t, db, fmt.Sprintf("01900000-0000-7000-8000-%012d", plan.videos))
			p := planOf(db, plan.videos)
			p.Days = 400
			require.NoError(t, seed.Run(t.Context(), o, newWorld(), p, ignoreProgress))
			first, complete := p.Today-399, map[link.Platform]int{}
			for _, v := range videosOf(t, o) {
				points, err := o.History(t.Context(), store.Ref{ID: v.ID}, first, p.Today)
				require.NoError(t, err)
				if v.UploadedAt == nil || *v.UploadedAt > first || len(points) == 0 || points[0].Day != p.Today {
					continue
				}
				// The oldest points are weekly points on the last day of a week. So the oldest point can be up
				// to six days after the day `first`.
				require.LessOrEqual(t, points[len(points)-1].Day, first+6)
				complete[v.Platform]++
			}
			for _, platform := range plan.platforms {
				require.GreaterOrEqual(t, complete[platform], plan.wanted, "%s of %d videos", platform, plan.videos)
			}
		}
	})
}

func TestRun_createsSameDataOnEveryEngine(t *testing.T) {
	t.Parallel()
	a, b := storetest.New(t, "sqlite"), storetest.New(t, "postgres")
	b.Clock.Set(a.Clock.Now())
	first, second := newOrganisation(t, a, organisationID), newOrganisation(t, b, organisationID)
	require.NoError(t, seed.Run(t.Context(), first, newWorld(), planOf(a, 60), ignoreProgress))
	require.NoError(t, seed.Run(t.Context(), second, newWorld(), planOf(b, 60), ignoreProgress))
	require.Equal(t, videosOf(t, first), videosOf(t, second))
	today := store.DateOf(a.Clock.Now())
	one, err := first.OrganisationHistory(t.Context(), today-89, today)
	require.NoError(t, err)
	two, err := second.OrganisationHistory(t.Context(), today-89, today)
	require.NoError(t, err)
	require.Equal(t, one, two)
	require.Len(t, one, 90)
}

func TestRun_resumesAfterInterruption(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		uninterrupted := storetest.New(t, "sqlite")
		uninterrupted.Clock.Set(db.Clock.Now())
		reference := newOrganisation(t, uninterrupted, organisationID)
		require.NoError(t, seed.Run(t.Context(), reference, newWorld(), planOf(db, 80), ignoreProgress))

		o := newOrganisation(t, db, organisationID)
		ctx, cancel := context.WithCancel(t.Context())
		err := seed.Run(ctx, o, newWorld(), planOf(db, 80), func(seed.Progress) { cancel() })
		require.ErrorIs(t, err, context.Canceled)
		written := len(videosOf(t, o))
		require.NotZero(t, written)
		require.Less(t, written, 80)
		require.NoError(t, seed.Run(t.Context(), o, newWorld(), planOf(db, 80), ignoreProgress))
		require.Equal(t, videosOf(t, reference), videosOf(t, o))
		today := store.DateOf(db.Clock.Now())
		one, err := reference.OrganisationHistory(t.Context(), today-90, today)
		require.NoError(t, err)
		two, err := o.OrganisationHistory(t.Context(), today-90, today)
		require.NoError(t, err)
		require.Equal(t, one, two)

		err = seed.Run(t.Context(), o, newWorld(), planOf(db, 90), ignoreProgress)
		require.ErrorIs(t, err, seed.ErrNotEmpty, "Run must refuse an organisation whose videos belong to another plan")
	})
}

func TestPlan_checkRefusesInvalidPlans(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	for _, change := range []func(*seed.Plan){
		func(p *seed.Plan) { p.Videos = 0 }, func(p *seed.Plan) { p.Days = 0 }, func(p *seed.Plan) { p.Days = 731 },
		func(p *seed.Plan) { p.PerAccount = 0 }, func(p *seed.Plan) { p.Platforms = nil },
	} {
		p := planOf(db, 10)
		change(&p)
		require.Error(t, p.Check())
	}
	require.NoError(t, planOf(db, 10).Check())
}
