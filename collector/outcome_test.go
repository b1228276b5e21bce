package collector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

func TestOutcome_takesTheAuthorOnlyFromAnAnswerWithDetails(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	text := func(s string) *string { return &s }
	views := int64(7)
	facts := Facts{Views: &views, Title: text("A title"), Username: text("somebody"), AccountID: text("42"), AccountName: text("Somebody")}
	claimed := queue.Target{Platform: link.TikTok, Kind: string(KindVideo), ExternalID: "7106594312292453675"}

	of := func(details bool) ingest.Outcome {
		given := facts
		return outcome(claimed, Result{Target: Target{NeedDetails: details}, Class: OK, Facts: &given}, "vendor", 0, now)
	}
	full := of(true)
	require.Equal(t, &facts, full.Facts)
	require.True(t, full.Details)

	counts := of(false)
	require.Equal(t, &Facts{Views: &views, Title: text("A title")}, counts.Facts, "everything but who the author is")
	require.False(t, counts.Details, "the next turn of the details must not be put off")
}

func TestOutcome_takesNothingOlderFromASourceThatLags(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	claimed := queue.Target{Platform: link.TikTok, Kind: string(KindVideo), ExternalID: "7106594312292453675", Views: new(int64(1000)), Attempts: 3}
	of := func(views int64, lags bool, fetched time.Time) ingest.Outcome {
		claimed.FetchedAt = new(store.InstantOf(fetched))
		return outcome(claimed, Result{Class: OK, Facts: &Facts{Views: &views}, Lags: lags}, "research", 0, now)
	}
	yesterday, longAgo := now.Add(-24*time.Hour), now.Add(-11*24*time.Hour)
	older := of(999, true, yesterday)
	require.Nil(t, older.Facts)
	require.Zero(t, older.Attempts, "the source is in order")
	require.Greater(t, older.NextAt, store.InstantOf(now))
	require.NotNil(t, of(1000, true, yesterday).Facts)
	require.NotNil(t, of(999, false, yesterday).Facts, "of another source, fewer are news")
	require.NotNil(t, of(999, true, longAgo).Facts, "what is older than any lag is no measure")
	claimed.Views = nil
	require.NotNil(t, of(999, true, yesterday).Facts)
}

// An outage says nothing of a video: what is said of it after one is confirmed as at any other time.
func TestOutcome_countsRefusalsApartFromOutages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		class, other Class
		confirmed    int
		state        string
		waits        []time.Duration
	}{
		{Gone, Private, goneConfirmed, gone, goneWaits},
		{Private, Gone, refusedParked, parked, refusedWaits},
	} {
		target := queue.Target{Platform: link.TikTok, Kind: string(KindVideo), ExternalID: "7106594312292453675", State: active}
		answer := func(class Class) (ingest.Outcome, time.Duration) {
			o := outcome(target, Result{Class: class}, "vendor", 0, someDay)
			target.Attempts, target.RefusedAs, target.Refusals, target.State = o.Attempts, o.RefusedAs, o.Refusals, o.State
			return o, o.NextAt.Time().Sub(someDay)
		}
		for range 5 {
			answer(Temporary)
		}
		answer(c.other)
		for n := range c.confirmed {
			o, wait := answer(c.class)
			require.Equal(t, n+1 >= c.confirmed, o.State == c.state, "%s, time %d: %s", c.class, n+1, o.State)
			require.Less(t, wait, c.waits[n]+12*time.Hour, "%s, time %d", c.class, n+1)
			if n+1 < c.confirmed {
				before := target.Attempts
				o, _ = answer(Temporary)
				require.Equal(t, before+1, o.Attempts, "an outage makes the waits longer, and confirms nothing")
			}
		}
		back := outcome(target, Result{Class: OK, Facts: &Facts{Views: new(int64(5))}}, "vendor", 0, someDay)
		require.Equal(t, active, back.State)
		require.Zero(t, back.Attempts+back.Refusals)
		require.Empty(t, back.RefusedAs)
	}
}
