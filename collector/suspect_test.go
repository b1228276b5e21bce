package collector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

var suspectedAt = time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)

func known(views int64) queue.Target {
	return queue.Target{Platform: link.TikTok, Kind: string(KindVideo), Views: &views, FetchedAt: new(store.InstantOf(suspectedAt.Add(-24 * time.Hour)))}
}

func TestSuspect_doubtsWhatIsHardlyPossible(t *testing.T) {
	t.Parallel()
	old := suspectedAt.Add(-100 * time.Hour)
	for why, c := range map[string]struct {
		was   queue.Target
		facts Facts
	}{
		"views fell to less than a hundredth":  {known(5), Facts{Views: new(int64(0))}},
		"no views though the video is not new": {queue.Target{}, Facts{Views: new(int64(0)), UploadedAt: &old}},
		"more likes than views":                {queue.Target{}, Facts{Views: new(int64(0)), Likes: new(int64(10)), UploadedAt: &suspectedAt}},
		"more comments than views":             {known(100), Facts{Views: new(int64(100)), Comments: new(int64(101))}},
		"more shares than views":               {known(100), Facts{Views: new(int64(100)), Shares: new(int64(101))}},
		"more bookmarks than views":            {known(100), Facts{Views: new(int64(100)), Bookmarks: new(int64(101))}},
		"no likes though there are many views": {known(10_000), Facts{Views: new(int64(10_000)), Likes: new(int64(0))}},
		"":                                     {known(9_000), Facts{Views: new(int64(9_999)), Likes: new(int64(0)), Comments: new(int64(9_999))}},
	} {
		require.Equal(t, why, doubt(c.was, &c.facts, suspectedAt))
	}
	for _, truth := range []Facts{
		{}, {Likes: new(int64(0))}, {Views: new(int64(12_000))}, {Views: new(int64(0)), Likes: new(int64(9)), UploadedAt: &suspectedAt}, {Views: new(int64(50)), Likes: new(int64(50))},
	} {
		require.Empty(t, doubt(queue.Target{}, &truth, suspectedAt))
	}
}

func TestSuspect_seesThatVideosHaveChangedPlaces(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		was, is []int64
		doubted []bool
	}{
		"two have changed places": {[]int64{1_000, 50_000, 7_000}, []int64{50_100, 1_001, 7_100}, []bool{true, true, false}},
		"three have":              {[]int64{1_000, 50_000, 7_000}, []int64{50_100, 7_001, 1_100}, []bool{true, true, true}},
		"one has a neighbour's":   {[]int64{1_000, 50_000}, []int64{50_100, 50_100}, []bool{true, false}},
		"all have grown":          {[]int64{1_000, 50_000}, []int64{1_100, 60_000}, []bool{false, false}},
		"one has gone viral":      {[]int64{1_000, 50_000}, []int64{50_100, 51_000}, []bool{false, false}},
		"one has lost some":       {[]int64{60_000, 50_000}, []int64{50_100, 51_000}, []bool{false, false}},
		"two that are small":      {[]int64{10, 500}, []int64{500, 10}, []bool{false, false}},
		"two have gone viral":     {[]int64{1_000, 10_000}, []int64{10_100, 90_000}, []bool{false, false}},
	} {
		batch, results := make([]queue.Target, len(c.was)), make([]Result, len(c.was))
		for i := range c.was {
			batch[i], results[i] = known(c.was[i]), Result{Class: OK, Facts: &Facts{Views: &c.is[i]}}
		}
		compare(batch, results)
		for i, want := range c.doubted {
			require.Equal(t, want, results[i].doubt != "", "%s: %d", name, i)
		}
	}
}

func TestSuspect_anothersViewsAreDoubtedAloneToo(t *testing.T) {
	t.Parallel()
	was := known(1_000)
	r := Result{Class: OK, Facts: &Facts{Views: new(int64(50_000))}, doubt: anothers}
	s := weigh(was, r, suspectedAt)
	require.NotNil(t, s)
	was.Suspect, r.doubt = s.text(), ""
	require.NotNil(t, weigh(was, r, suspectedAt.Add(time.Minute)), "asked for without the other one")
	require.Nil(t, weigh(was, Result{Class: OK, Facts: &Facts{Views: new(int64(1_100))}}, suspectedAt.Add(time.Minute)), "its own again")
	for range 2 {
		s = weigh(was, r, suspectedAt.Add(5*time.Hour))
		require.NotNil(t, s)
		was.Suspect = s.text()
	}
	require.Nil(t, weigh(was, r, suspectedAt.Add(confirmKnown)), "what is repeated for long enough is true")
}

func TestSuspect_doubtsThatFollowersAreGone(t *testing.T) {
	t.Parallel()
	of := func(followers int64) *suspicion {
		return weigh(known(5_000), Result{Class: OK, Account: &AccountFacts{Followers: &followers}}, suspectedAt)
	}
	require.NotNil(t, of(0))
	require.NotNil(t, of(49))
	require.Nil(t, of(50))
	require.Nil(t, weigh(queue.Target{}, Result{Class: OK, Account: &AccountFacts{Followers: new(int64(0))}}, suspectedAt))
	require.Nil(t, weigh(known(5_000), Result{Class: OK, Account: &AccountFacts{}}, suspectedAt))
}
