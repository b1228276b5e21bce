package collector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

var someDay = time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)

// outcomeOf returns what a collector with a single source stores if this source returns r for the target t.
func outcomeOf(t queue.Target, r source.Result, now time.Time) ingest.Outcome {
	s := &scriptedSource{batch: 1}
	w := &worker{Collector: &Collector{Options: Options{Sources: []source.Source{s}, Now: func() time.Time { return now }}}, source: s}
	return w.outcome(t, r, false, now)
}

func TestOutcome_authorIsTakenOnlyFromACallForDetails(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	text := func(s string) *string { return &s }
	views := int64(7)
	facts := source.Facts{Views: &views, Title: text("A title"), Username: text("somebody"), AccountID: text("42"), AccountName: text("Somebody")}
	claimed := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: "7106594312292453675"}

	of := func(details bool) ingest.Outcome {
		given := facts
		return outcomeOf(func() queue.Target { c := claimed; c.NeedDetails = details; return c }(), source.Result{Class: source.OK, Facts: &given}, now)
	}
	full := of(true)
	require.Equal(t, &facts, full.Facts)
	require.True(t, full.Details)

	counts := of(false)
	require.Equal(t, &source.Facts{Views: &views, Title: text("A title")}, counts.Facts, "the author must be missing, and the other facts must be present")
	require.False(t, counts.Details, "the next fetch of details must not be deferred")
}

func TestOutcome_olderCountsOfALaggingSourceAreIgnored(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	claimed := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: "7106594312292453675", Counts: store.Counts{Views: new(int64(1000))}, Attempts: 3}
	of := func(views int64, lags bool, fetched time.Time) ingest.Outcome {
		claimed.FetchedAt = new(store.InstantOf(fetched))
		return outcomeOf(claimed, source.Result{Class: source.OK, Facts: &source.Facts{Views: &views}, Lags: lags}, now)
	}
	yesterday, longAgo := now.Add(-24*time.Hour), now.Add(-11*24*time.Hour)
	older := of(999, true, yesterday)
	require.Nil(t, older.Facts)
	require.Zero(t, older.Attempts, "an answer with older counts must not count as a failed attempt")
	require.Greater(t, older.NextAt, store.InstantOf(now))
	require.NotNil(t, of(1000, true, yesterday).Facts)
	require.NotNil(t, of(999, false, yesterday).Facts, "lower counts of a source without lag must be stored")
	require.NotNil(t, of(999, true, longAgo).Facts, "lower counts must be stored if the stored counts are older than longestLag")
	claimed.Views = nil
	require.NotNil(t, of(999, true, yesterday).Facts)
}

// Failed calls do not count as refusals. They do not change how many refusals a target needs to
// become gone or parked.
func TestOutcome_refusalsAreCountedSeparatelyFromFailedCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		class, other source.Class
		confirmed    int
		state        string
		waits        schedule.Waits
	}{
		{source.Gone, source.Private, schedule.AnswersUntilGone, queue.StateGone, schedule.GoneWaits},
		{source.Private, source.Gone, schedule.RefusalsUntilParked, queue.StateParked, schedule.RefusedWaits},
	} {
		target := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: "7106594312292453675", State: queue.StateActive}
		answer := func(class source.Class) (ingest.Outcome, time.Duration) {
			o := outcomeOf(target, source.Result{Class: class}, someDay)
			target.Attempts, target.RefusedAs, target.Refusals, target.State = o.Attempts, o.RefusedAs, o.Refusals, o.State
			return o, o.NextAt.Time().Sub(someDay)
		}
		for range 5 {
			answer(source.Temporary)
		}
		answer(c.other)
		for n := range c.confirmed {
			o, wait := answer(c.class)
			require.Equal(t, n+1 >= c.confirmed, o.State == c.state, "refusal %[2]d with class %[1]s: %[3]s", c.class, n+1, o.State)
			require.Less(t, wait, c.waits[n]+12*time.Hour, "refusal %[2]d with class %[1]s", c.class, n+1)
			if n+1 < c.confirmed {
				before := target.Attempts
				o, _ = answer(source.Temporary)
				require.Equal(t, before+1, o.Attempts, "a failed call must count as a failed attempt, but not as a refusal")
			}
		}
		back := outcomeOf(target, source.Result{Class: source.OK, Facts: &source.Facts{Views: new(int64(5))}}, someDay)
		require.Equal(t, queue.StateActive, back.State)
		require.Zero(t, back.Attempts+back.Refusals)
		require.Empty(t, back.RefusedAs)
	}
}

func TestOutcome_zerosOfAVideoThatHadManyViewsAreNotFetchedMoreOftenThanOtherCounts(t *testing.T) {
	t.Parallel()
	target := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: "7106594312292453675", Counts: store.Counts{Views: new(int64(50_000))}, BaseLane: queue.LaneBasic}
	fetches := 0
	for now := someDay; now.Before(someDay.AddDate(0, 0, 30)); fetches++ {
		o := outcomeOf(target, source.Result{Class: source.OK, Facts: &source.Facts{Views: new(int64(0))}}, now)
		require.Nil(t, o.Facts)
		require.Contains(t, o.Fetch.Reason, "is not stored")
		target.Suspect, now = o.Suspect, o.NextAt.Time()
	}
	require.LessOrEqual(t, fetches, len(schedule.SuspectWaits)+31)
}

func TestOutcome_videoIsNotSafeOnlyIfTheSourceNamesTheAgeOfTheViewers(t *testing.T) {
	t.Parallel()
	target := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: "1"}
	for class, want := range map[source.Class]*bool{source.AgeLimited: new(true), source.Restricted: nil, source.Private: nil, source.Gone: nil} {
		require.Equal(t, want, outcomeOf(target, source.Result{Class: class}, someDay).NotSafe, class)
	}
}

func TestOutcome_targetIsTriedOnlyRarelyAfterRepeatedRefusals(t *testing.T) {
	t.Parallel()
	for _, class := range []source.Class{source.Private, source.Restricted, source.AgeLimited} {
		target := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: "1", Pace: queue.PaceFast}
		for n := 1; n <= 6; n++ {
			o := outcomeOf(target, source.Result{Class: class}, someDay)
			wait := o.NextAt.Time().Sub(someDay)
			if n < schedule.RefusalsUntilParked {
				require.Equal(t, queue.StateActive, o.State)
				require.InDelta(t, 24, wait.Hours(), 12)
			} else {
				require.Equal(t, queue.StateParked, o.State)
				require.InDelta(t, 7*24, wait.Hours(), 12)
			}
			require.Equal(t, queue.SlotOf(target.Platform, target.ExternalID), o.NextAt.Time().Sub(o.NextAt.Day().Time()), "the next fetch must be at the target's fixed time of the day")
			require.Equal(t, queue.PaceFast, o.Pace)
			target.Attempts, target.RefusedAs, target.Refusals = o.Attempts, o.RefusedAs, o.Refusals
		}
		back := outcomeOf(target, source.Result{Class: source.OK, Facts: &source.Facts{Views: new(int64(5))}}, someDay)
		require.Equal(t, queue.StateActive, back.State)
		require.Zero(t, back.Attempts)
	}
}

func TestOutcome_implausibleRiseIsStoredAfterOneConfirmation(t *testing.T) {
	t.Parallel()
	target := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: "1", Counts: store.Counts{Views: new(int64(20_000))}, FetchedAt: new(store.InstantOf(someDay.Add(-24 * time.Hour)))}
	risen := source.Result{Class: source.OK, Facts: &source.Facts{Views: new(int64(20_000_000))}}
	o := outcomeOf(target, risen, someDay)
	require.Nil(t, o.Facts)
	require.Equal(t, queue.FetchOK, o.Fetch.Status)
	require.Contains(t, o.Fetch.Reason, "not stored until they are confirmed: views rose")
	require.InDelta(t, schedule.RiseWait.Minutes(), o.NextAt.Time().Sub(someDay).Minutes(), 1)
	target.Suspect = o.Suspect
	o = outcomeOf(target, risen, o.NextAt.Time())
	require.NotNil(t, o.Facts)
	require.Nil(t, o.Suspect)
}

// namedSource is a scriptedSource with its own name.
type namedSource struct {
	*scriptedSource
	name string
}

func (s namedSource) Name() string { return s.name }

func TestOutcome_nextSourceIsAskedAfterRepeatedFailures(t *testing.T) {
	t.Parallel()
	first, second := namedSource{&scriptedSource{batch: 1}, "first"}, namedSource{&scriptedSource{batch: 1}, "second"}
	c := &Collector{Options: Options{Sources: []source.Source{first, second}, Now: func() time.Time { return someDay }}}
	outcomeOfSource := func(s source.Source, t queue.Target, r source.Result) ingest.Outcome {
		w := &worker{Collector: c, source: s}
		return w.outcome(t, r, false, someDay)
	}
	temporary := source.Result{Class: source.Temporary, Detail: "cannot be read"}
	claimed := queue.Target{Platform: link.TikTok, Kind: queue.KindVideo, ExternalID: "7106594312292453675", Attempts: schedule.FailuresUntilParked - 2}
	o := outcomeOfSource(first, claimed, temporary)
	require.Equal(t, "first", o.Route, "a few failures must not change the source")
	require.False(t, o.Onward)

	claimed.Attempts++
	o = outcomeOfSource(first, claimed, temporary)
	require.Equal(t, "second", o.Route)
	require.True(t, o.Onward)
	require.Equal(t, store.InstantOf(someDay), o.NextAt)

	claimed.Answers = o.Answers
	ok := outcomeOfSource(second, claimed, source.Result{Class: source.OK, Facts: &source.Facts{Views: new(int64(7))}})
	require.Equal(t, queue.StateActive, ok.State)
	require.Equal(t, "second", ok.Route, "the first source must be skipped for a week")
	require.Zero(t, ok.Attempts)

	failed := outcomeOfSource(second, claimed, temporary)
	require.Equal(t, queue.StateParked, failed.State)
	require.Equal(t, "first", failed.Route, "both sources must be asked again")
}
