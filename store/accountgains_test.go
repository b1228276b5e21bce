package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestAccountGains_ranksTheTrackedVideosOfTheAccountByTheGainOfThePeriod(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		o, other := storetest.NewOrg(t, db), storetest.NewOrg(t, db)
		links := storetest.VideoLinks(t, 9)
		storetest.Track(t, o, links[:8]...)
		storetest.Track(t, other, links[:3]...)
		measure := func(views ...int64) {
			t.Helper()
			facts := map[link.Link]ingest.VideoFacts{}
			for n, count := range views {
				name := "ann"
				if n == 7 {
					name = "bob"
				}
				facts[links[n]] = ingest.VideoFacts{Username: &name, Views: new(count)}
			}
			storetest.Measure(t, db, db.Clock.Now(), facts)
		}
		first := storetest.Today(db)
		measure(100, 100, 100, 100, 100, 100, 100, 100)
		db.Clock.Advance(24 * time.Hour)
		measure(1000, 100, 100, 100, 100, 100, 100, 100)
		db.Clock.Advance(24 * time.Hour)
		storetest.Track(t, o, links[8])
		measure(1001, 150, 400, 100, 90, 110, 120, 9000, 5000) // video 7 belongs to another account; video 8 has views on one day only
		id := func(n int) uuid.UUID { return storetest.VideoOf(t, o, links[n]).ID }
		_, err := o.StopVideos(t.Context(), []uuid.UUID{id(6)})
		require.NoError(t, err)
		account := storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@ann")).ID
		gains := func(o *store.Org, from, to store.Date, n int) (ids []uuid.UUID, gained []int64) {
			t.Helper()
			found, err := o.AccountGains(t.Context(), account, from, to, n)
			require.NoError(t, err)
			for _, v := range found {
				ids, gained = append(ids, v.ID), append(gained, *v.Gained)
			}
			return ids, gained
		}
		db.Guard.Statements()
		ids, gained := gains(o, first+2, first+2, 4)
		require.Equal(t, []int64{300, 50, 10, 1}, gained)
		require.Equal(t, []uuid.UUID{id(2), id(1), id(5), id(0)}, ids)
		count := func() (n int) {
			for _, s := range db.Guard.Statements() {
				n += strings.Count(s, "wanted AS MATERIALIZED")
			}
			return n
		}
		require.Equal(t, 1, count(), "one statement must read the points")
		_, gained = gains(o, first, first+9, 9)
		require.Equal(t, []int64{901, 300, 50, 10, 0, -10}, gained, "gains are known of six videos: one video was stopped, one has views on one day only")
		count()
		gains(o, first, first+9, 1)
		require.Zero(t, count(), "the gains of a version are kept")
		_, gained = gains(o, first, first, 9)
		require.Empty(t, gained, "before the second day, no gain is known")
		_, gained = gains(o, first+5, first+9, 9)
		require.Empty(t, gained, "the period is in the future")
		ids, _ = gains(other, first, first+2, 9)
		require.Empty(t, ids, "the account belongs to another organisation")
	})
}

func TestAccountGains_refusesTooManyVideosForThePeriod(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o := storetest.NewOrg(t, db)
	links := storetest.VideoLinks(t, 9)
	storetest.Track(t, o, links...)
	facts := map[link.Link]ingest.VideoFacts{}
	for _, l := range links {
		facts[l] = ingest.VideoFacts{Username: new("ann"), Views: new(int64(1))}
	}
	storetest.Measure(t, db, db.Clock.Now(), facts)
	account := storetest.AccountByLink(t, o, storetest.ParseLink(t, "https://www.tiktok.com/@ann")).ID
	today := storetest.Today(db)
	first := today - store.MaxTotalsVideoDays/9 - 1 // one day more than the limit allows for nine videos
	_, err := o.AccountGains(t.Context(), account, first, today, 5)
	refused, ok := errors.AsType[*store.LimitError](err)
	require.True(t, ok, err)
	require.Equal(t, store.LimitTotals, refused.Kind)
	require.Contains(t, refused.Text, "more than 8 videos")
	_, err = o.AccountGains(t.Context(), account, first+2, today, 5)
	require.NoError(t, err)
}
