package verify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

var now = time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)

func fetchedTarget(views int64) queue.Target {
	return queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, Counts: store.Counts{Views: &views}, FetchedAt: new(store.InstantOf(now.Add(-24 * time.Hour)))}
}

func TestVideoSuspicion_returnsWhyCountsAreSuspicious(t *testing.T) {
	t.Parallel()
	old := now.Add(-100 * time.Hour)
	for why, c := range map[string]struct {
		target queue.Target
		facts  source.Facts
	}{
		"views fell to less than a hundredth":  {fetchedTarget(5), source.Facts{Views: new(int64(0))}},
		"no views though the video is not new": {queue.Target{}, source.Facts{Views: new(int64(0)), UploadedAt: &old}},
		"more likes than views":                {queue.Target{}, source.Facts{Views: new(int64(0)), Likes: new(int64(10)), UploadedAt: &now}},
		"more comments than views":             {fetchedTarget(100), source.Facts{Views: new(int64(100)), Comments: new(int64(101))}},
		"more shares than views":               {fetchedTarget(100), source.Facts{Views: new(int64(100)), Shares: new(int64(101))}},
		"more bookmarks than views":            {fetchedTarget(100), source.Facts{Views: new(int64(100)), Bookmarks: new(int64(101))}},
		"no likes though there are many views": {fetchedTarget(10_000), source.Facts{Views: new(int64(10_000)), Likes: new(int64(0))}},
		"":                                     {fetchedTarget(9_000), source.Facts{Views: new(int64(9_999)), Likes: new(int64(0)), Comments: new(int64(9_999))}},
	} {
		require.Equal(t, why, videoSuspicion(c.target, &c.facts, now))
	}
	for _, truth := range []source.Facts{
		{}, {Likes: new(int64(0))}, {Views: new(int64(12_000))}, {Views: new(int64(0)), Likes: new(int64(9)), UploadedAt: &now}, {Views: new(int64(50)), Likes: new(int64(50))},
	} {
		require.Empty(t, videoSuspicion(queue.Target{}, &truth, now))
	}
}

func TestCheck_suspectsALargeFallOfOtherCountsThanViews(t *testing.T) {
	t.Parallel()
	stored := func() queue.Target {
		target := fetchedTarget(9_500)
		target.Likes, target.Comments, target.Shares, target.Bookmarks = new(int64(800)), new(int64(100)), new(int64(100)), new(int64(99))
		return target
	}
	for name, c := range map[string]struct {
		facts source.Facts
		why   string
	}{
		"all counts but the views":              {source.Facts{Views: new(int64(9_999)), Likes: new(int64(0)), Comments: new(int64(0)), Shares: new(int64(0)), Bookmarks: new(int64(0))}, "likes fell to less than a hundredth"},
		"likes below a hundredth":               {source.Facts{Views: new(int64(9_999)), Likes: new(int64(7))}, "likes fell to less than a hundredth"},
		"likes without views":                   {source.Facts{Likes: new(int64(0))}, "likes fell to less than a hundredth"},
		"comments":                              {source.Facts{Views: new(int64(9_999)), Comments: new(int64(0))}, "comments fell to less than a hundredth"},
		"shares":                                {source.Facts{Views: new(int64(9_999)), Shares: new(int64(0))}, "shares fell to less than a hundredth"},
		"fewer than 100 bookmarks":              {source.Facts{Views: new(int64(9_999)), Bookmarks: new(int64(0))}, ""},
		"a smaller fall":                        {source.Facts{Views: new(int64(9_999)), Likes: new(int64(8)), Comments: new(int64(1))}, ""},
		"hidden likes":                          {source.Facts{Views: new(int64(9_999)), Likes: new(int64(0)), HiddenStats: new(true)}, ""},
		"comments of a video with hidden likes": {source.Facts{Views: new(int64(9_999)), Comments: new(int64(0)), HiddenStats: new(true)}, "comments fell to less than a hundredth"},
		"no counts reported":                    {source.Facts{Views: new(int64(9_999))}, ""},
	} {
		s := Check(stored(), source.Result{Class: source.OK, Facts: &c.facts}, false, now)
		require.Equal(t, c.why != "", s != nil, name)
		if s != nil {
			require.Equal(t, c.why, s.Why, name)
		}
	}

	target := stored()
	target.Views = nil
	r := source.Result{Class: source.OK, Facts: &source.Facts{Likes: new(int64(0))}}
	for i := range enoughAnswers {
		s := Check(target, r, false, now.Add(time.Duration(i)*confirmKnownAfter/(enoughAnswers-1)))
		require.Equal(t, i == enoughAnswers-1, s == nil, "the fall must be accepted after %d answers in %s", enoughAnswers, confirmKnownAfter)
		if s != nil {
			target.Suspect = s.Text()
		}
	}
}

func TestFindMixedUpResults_findsVideosWithTheViewsOfAnotherVideo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		oldViews, newViews []int64
		mixedUp            []bool
	}{
		"two videos with swapped views":                       {[]int64{1_000, 50_000, 7_000}, []int64{50_100, 1_001, 7_100}, []bool{true, true, false}},
		"each of three videos has the views of another one":   {[]int64{1_000, 50_000, 7_000}, []int64{50_100, 7_001, 1_100}, []bool{true, true, true}},
		"one video with a copy of the views of another video": {[]int64{1_000, 50_000}, []int64{50_100, 50_100}, []bool{true, false}},
		"the views of all videos grow":                        {[]int64{1_000, 50_000}, []int64{1_100, 60_000}, []bool{false, false}},
		"the views of one video grow fast":                    {[]int64{1_000, 50_000}, []int64{50_100, 51_000}, []bool{false, false}},
		"the views of one video fall":                         {[]int64{60_000, 50_000}, []int64{50_100, 51_000}, []bool{false, false}},
		"swapped views of two videos with few views":          {[]int64{10, 500}, []int64{500, 10}, []bool{false, false}},
		"the views of two videos grow fast":                   {[]int64{1_000, 10_000}, []int64{10_100, 90_000}, []bool{false, false}},
	} {
		batch, results := make([]queue.Target, len(c.oldViews)), make([]source.Result, len(c.oldViews))
		for i := range c.oldViews {
			batch[i], results[i] = fetchedTarget(c.oldViews[i]), source.Result{Class: source.OK, Facts: &source.Facts{Views: &c.newViews[i]}}
		}
		mixedUp := FindMixedUpResults(batch, results)
		for i, want := range c.mixedUp {
			require.Equal(t, want, mixedUp[i], "%s: %d", name, i)
		}
	}
}

func TestCheck_keepsSuspicionIfVideoIsFetchedAlone(t *testing.T) {
	t.Parallel()
	target := fetchedTarget(1_000)
	r := source.Result{Class: source.OK, Facts: &source.Facts{Views: new(int64(50_000))}}
	s := Check(target, r, true, now)
	require.NotNil(t, s)
	target.Suspect = s.Text()
	require.NotNil(t, Check(target, r, false, now.Add(time.Minute)), "the counts must stay suspicious if the target is fetched alone")
	require.Nil(t, Check(target, source.Result{Class: source.OK, Facts: &source.Facts{Views: new(int64(1_100))}}, false, now.Add(time.Minute)), "plausible counts must end the suspicion")
	for range 2 {
		s = Check(target, r, false, now.Add(5*time.Hour))
		require.NotNil(t, s)
		target.Suspect = s.Text()
	}
	require.Nil(t, Check(target, r, false, now.Add(confirmKnownAfter)), "counts that are repeated for long enough must be accepted")
}

func TestCheck_neverAcceptsZeroViewsOfAVideoThatHadManyViews(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, views int64
		likes, shares *int64
		accepted      bool
	}{
		{1000, 0, nil, nil, false}, {1_000_000, 0, nil, nil, false}, {1000, 0, new(int64(3)), nil, false}, {999, 0, nil, nil, true}, {1_000_000, 1, nil, nil, true},
		{999, 0, new(int64(0)), nil, false}, {1, 0, new(int64(0)), new(int64(0)), false}, {999, 0, new(int64(0)), new(int64(3)), true}, {999, 1, new(int64(0)), nil, true},
		{0, 0, new(int64(0)), nil, true},
	} {
		target := fetchedTarget(c.before)
		r := source.Result{Class: source.OK, Facts: &source.Facts{Views: &c.views, Likes: c.likes, Shares: c.shares}}
		var s *Suspicion
		for day := range 30 {
			if s = Check(target, r, false, now.AddDate(0, 0, day)); s != nil {
				target.Suspect = s.Text()
			}
		}
		require.Equal(t, c.accepted, s == nil, "%d views after %d", c.views, c.before)
	}
}

func TestCheck_suspectsLargeLossOfFollowers(t *testing.T) {
	t.Parallel()
	of := func(followers int64) *Suspicion {
		return Check(fetchedTarget(5_000), source.Result{Class: source.OK, Account: &source.AccountFacts{Followers: &followers}}, false, now)
	}
	require.NotNil(t, of(0))
	require.NotNil(t, of(49))
	require.Nil(t, of(50))
	require.Nil(t, Check(queue.Target{}, source.Result{Class: source.OK, Account: &source.AccountFacts{Followers: new(int64(0))}}, false, now))
	require.Nil(t, Check(fetchedTarget(5_000), source.Result{Class: source.OK, Account: &source.AccountFacts{}}, false, now))
}

func TestCheck_storesAnImplausibleRiseOnlyAfterOneConfirmation(t *testing.T) {
	t.Parallel()
	check := func(target queue.Target, views int64, at time.Time) *Suspicion {
		return Check(target, source.Result{Class: source.OK, Facts: &source.Facts{Views: &views}}, false, at)
	}
	old := fetchedTarget(20_000)
	old.FetchedAt = new(store.InstantOf(now.Add(-riseTime)))
	for name, c := range map[string]struct {
		target queue.Target
		views  int64
		held   bool
	}{
		"1000 times as many":             {fetchedTarget(20_000), 20_000_000, true},
		"many after none":                {fetchedTarget(0), 10_000_001, true},
		"10 million more":                {fetchedTarget(0), 10_000_000, false},
		"50 times as many":               {fetchedTarget(1_000_000), 50_000_000, false},
		"1000 times as many, but few":    {fetchedTarget(10), 10_000, false},
		"a video that was never fetched": {queue.Target{}, 20_000_000, false},
		"an old fetch":                   {old, 20_000_000, false},
		"imported views":                 {queue.Target{Counts: store.Counts{Views: new(int64(20_000))}}, 20_000_000, true},
	} {
		require.Equal(t, c.held, check(c.target, c.views, now) != nil, name)
	}

	target := fetchedTarget(20_000)
	remember := func(s *Suspicion) {
		t.Helper()
		require.NotNil(t, s)
		target.Suspect = s.Text()
	}
	remember(check(target, 20_000_000, now))
	remember(check(target, 20_000_000, now.Add(time.Minute)))     // too early for a confirmation, because the source may repeat a cached answer
	require.Nil(t, check(target, 20_100, now.Add(time.Minute)))   // the rise was wrong
	require.Nil(t, check(target, 30_000_000, now.Add(time.Hour))) // the views of a viral video have risen further
	require.NotNil(t, check(target, 2_000_000_000, now.Add(time.Hour)), "another number does not confirm the first one")
	remember(check(target, 12_000_000, now.Add(time.Hour)))
	require.NotNil(t, check(target, 12_000_000, now.Add(time.Hour+time.Minute)), "the time begins again with another number")
	require.Nil(t, check(target, 12_000_000, now.Add(time.Hour+confirmRiseAfter)))
}
