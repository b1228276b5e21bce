package collector

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// budgetSource is a source of TikTok accounts with one budget.
type budgetSource struct {
	limit int64 // number of units that the calls of one day may spend
	units int64 // number of units that each call reserves
	// spend uses some of the reserved units. The method Fetch calls it. If spend returns an error, Fetch returns the same error.
	spend func(budget *source.CallBudget) error
}

const budgetKey = "spender/calls"

func (*budgetSource) Name() string { return "spender" }
func (*budgetSource) Serves(t queue.Target) (int, bool) {
	return 1, t.Platform == link.TikTok && t.Kind == queue.KindAccount
}
func (s *budgetSource) Plan(batch []queue.Target) [][]source.Call {
	return [][]source.Call{{{Budget: "calls", Units: s.units}}}
}
func (*budgetSource) Concurrency() int                         { return 1 }
func (*budgetSource) Group(queue.Target) string                { return "" }
func (*budgetSource) NeedsHandle(queue.Target) bool            { return false }
func (*budgetSource) OnlyAccounts() string                     { return "" }
func (*budgetSource) Address() string                          { return "" }
func (*budgetSource) Clock(context.Context) (time.Time, error) { return time.Time{}, nil }
func (*budgetSource) Timeout() time.Duration                   { return time.Minute }

func (s *budgetSource) Budgets() []source.Budget {
	return []source.Budget{{Name: "calls", Limit: s.limit, Window: func(now time.Time) (string, time.Time) {
		day := now.UTC().Truncate(24 * time.Hour)
		return day.Format(time.DateOnly), day.Add(24 * time.Hour)
	}}}
}

func (s *budgetSource) Fetch(ctx context.Context, batch []queue.Target, budget *source.CallBudget) ([]source.Result, error) {
	if err := s.spend(budget); err != nil {
		return nil, err
	}
	return []source.Result{{Target: batch[0], Class: source.OK, Account: &source.AccountFacts{Username: new(batch[0].Handle), Listed: true}}}, nil
}

// budgetTest is a collector with a single source, which has a budget.
type budgetTest struct {
	*testing.T
	*Collector
	*budgetSource
	db   *storetest.DB
	logs strings.Builder
}

func newBudgetTest(t *testing.T, db *storetest.DB, s *budgetSource) *budgetTest {
	t.Helper()
	b := &budgetTest{T: t, budgetSource: s, db: db}
	c, err := New(Options{Store: db.Store, Sources: []source.Source{s}, Now: db.Clock.Now, Logger: slog.New(slog.NewTextHandler(&b.logs, nil))})
	require.NoError(t, err)
	b.Collector = c
	require.NoError(t, c.publishRoutes(t.Context()))
	return b
}

func (b *budgetTest) trackAccount(handle string) {
	b.Helper()
	o, err := b.db.CreateOrganisation(b.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(b, err)
	l, err := link.Parse("https://www.tiktok.com/@" + handle)
	require.NoError(b, err)
	_, err = b.db.Org(o.ID).TrackAccounts(b.Context(), store.TrackRequest{Links: []link.Link{l}, Type: store.TrackAll, Immediate: 1})
	require.NoError(b, err)
}

func (b *budgetTest) claimAndFetch() bool {
	b.Helper()
	busy, err := b.ClaimAndFetch(b.Context())
	require.NoError(b, err)
	return busy
}

func (b *budgetTest) usedUnits() int64 {
	b.Helper()
	window, _ := b.Budgets()[0].Window(b.db.Clock.Now())
	n, err := b.db.ReservedUnits(b.Context(), budgetKey, window)
	require.NoError(b, err)
	return n
}

func (b *budgetTest) reserveUnits(units int64) {
	b.Helper()
	window, _ := b.Budgets()[0].Window(b.db.Clock.Now())
	ok, err := b.db.ReserveUnits(b.Context(), budgetKey, window, units, 0)
	require.NoError(b, err)
	require.True(b, ok)
}

func (b *budgetTest) pauses() map[string]queue.Pause {
	b.Helper()
	p, err := b.db.Pauses(b.Context())
	require.NoError(b, err)
	return p
}

// spendUpTo returns a function for budgetSource.spend. The function spends up to n units and then returns err.
func spendUpTo(n int64, err error) func(*source.CallBudget) error {
	return func(budget *source.CallBudget) error {
		for range n {
			if !budget.Spend() {
				break
			}
		}
		return err
	}
}

func TestBudget_unspentUnitsAreReleasedAfterTheCall(t *testing.T) {
	t.Parallel()
	failure := &source.Failure{Class: source.Temporary, Detail: "HTTP 503"}
	for name, tt := range map[string]struct {
		spend func(*source.CallBudget) error
		used  int64
	}{
		"a call with two requests":                      {spendUpTo(2, nil), 2},
		"a call that fails after two requests":          {spendUpTo(2, failure), 2},
		"a call that fails before it sends a request":   {spendUpTo(0, failure), 0},
		"a call that is cancelled after one request":    {spendUpTo(1, context.Canceled), 1},
		"a call with more requests than reserved units": {spendUpTo(999, nil), 101},
		"a source that spends all reserved units":       {func(b *source.CallBudget) error { b.SpendAll(); return failure }, 101},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBudgetTest(t, storetest.New(t, "sqlite"), &budgetSource{limit: 10_000, units: 101, spend: tt.spend})
			b.trackAccount("mira.cooks")
			b.reserveUnits(7)
			_, _ = b.ClaimAndFetch(t.Context())
			require.Equal(t, 7+tt.used, b.usedUnits())
		})
	}
}

func TestBudget_unitsAreReleasedToTheWindowInWhichTheyWereReserved(t *testing.T) {
	t.Parallel()
	b := newBudgetTest(t, storetest.New(t, "sqlite"), &budgetSource{limit: 1000, units: 101})
	b.trackAccount("mira.cooks")
	b.spend = func(budget *source.CallBudget) error {
		require.EqualValues(t, 101, b.usedUnits(), "the reserved units must count as used during the call")
		before := b.db.Clock.Now()
		b.db.Clock.Advance(24 * time.Hour)
		b.reserveUnits(50)
		defer func() {
			window, _ := b.Budgets()[0].Window(before)
			require.Equal(t, []int64{101}, storetest.Column[int64](t, b.db, "SELECT used FROM quota_windows WHERE win = ?", window))
		}()
		return spendUpTo(2, nil)(budget)
	}
	require.True(t, b.claimAndFetch())
	require.EqualValues(t, 50, b.usedUnits())
	require.Equal(t, []int64{2, 50}, storetest.Column[int64](t, b.db, "SELECT used FROM quota_windows ORDER BY win"))
}

func TestBudget_isNotPausedIfACallNeedsMoreThanTheRemainingUnits(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		fetches := 0
		b := newBudgetTest(t, db, &budgetSource{limit: 300, units: 250})
		b.spend = func(budget *source.CallBudget) error { fetches++; return spendUpTo(2, nil)(budget) }
		b.trackAccount("mira.cooks")
		b.reserveUnits(51)
		require.True(t, b.claimAndFetch())
		require.Zero(t, fetches)
		require.Empty(t, b.pauses(), "the remaining units must stay available to other calls")
		require.EqualValues(t, 51, b.usedUnits())
		db.Clock.Advance(time.Minute)
		require.False(t, b.claimAndFetch(), "one minute later, the target must not be due")
		for range 3 {
			db.Clock.Advance(20 * time.Minute)
			require.True(t, b.claimAndFetch())
		}
		require.Equal(t, 1, strings.Count(b.logs.String(), "a call waits because it needs more units than its budget has left"), "the warning must be logged once in each window of the budget")
		db.Clock.Advance(24 * time.Hour)
		require.True(t, b.claimAndFetch())
		require.Equal(t, 1, fetches)
		require.EqualValues(t, 2, b.usedUnits())
	})
}

// unsupportedSource is a source whose result for every account has the class "unsupported".
type unsupportedSource struct{ *budgetSource }

func (unsupportedSource) Name() string { return "refuser" }

func (unsupportedSource) Fetch(_ context.Context, batch []queue.Target, _ *source.CallBudget) ([]source.Result, error) {
	return []source.Result{{Target: batch[0], Class: source.Unsupported, Detail: "not supported"}}, nil
}

func TestBudget_targetThatWaitsForUnitsIsFetchedTheNextDay(t *testing.T) {
	t.Parallel()
	b := newBudgetTest(t, storetest.New(t, "sqlite"), &budgetSource{limit: 300, units: 250, spend: spendUpTo(2, nil)})
	b.Sources = append(b.Sources, unsupportedSource{&budgetSource{units: 1}})
	b.trackAccount("mira.cooks")
	b.reserveUnits(100)
	require.True(t, b.claimAndFetch())
	require.Equal(t, []string{"active"}, storetest.Column[string](t, b.db, "SELECT state FROM fetch_targets"))
	b.db.Clock.Advance(24 * time.Hour)
	require.True(t, b.claimAndFetch())
	require.EqualValues(t, 2, b.usedUnits())
}

func TestBudget_reservesAtMostItsRemainingUnitsForACall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, got int64 }{
		"a budget without spent units": {0, 300}, "a budget of which a third is spent": {100, 200},
		"a budget of which half is spent": {150, 150}, "a budget of which more than half is spent": {151, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got int64
			b := newBudgetTest(t, storetest.New(t, "sqlite"), &budgetSource{limit: 300, units: 501})
			b.spend = func(budget *source.CallBudget) error {
				got = budget.Calls()[0].Units
				return spendUpTo(999, nil)(budget)
			}
			b.trackAccount("mira.cooks")
			if tt.before > 0 {
				b.reserveUnits(tt.before)
			}
			require.True(t, b.claimAndFetch())
			require.Equal(t, tt.got, got)
			require.Equal(t, tt.before+tt.got, b.usedUnits(), "the call must spend exactly the units that it got")
			require.Empty(t, b.pauses())
		})
	}
}

func TestBudget_pauseEndsWhenUnitsAreReleased(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		b := newBudgetTest(t, db, &budgetSource{limit: 101, units: 101})
		b.trackAccount("mira.cooks")
		b.spend = func(budget *source.CallBudget) error {
			replies, err := b.quota.Call(t.Context(), b.budgetSource, []queue.Target{{Platform: link.TikTok, Kind: queue.KindAccount}})
			require.NoError(t, err)
			require.Equal(t, quota.Paused, replies[0].Results[0].Class)
			require.Contains(t, b.pauses(), budgetKey, "the budget must be paused while all units are reserved")
			return spendUpTo(2, nil)(budget)
		}
		require.True(t, b.claimAndFetch())
		require.Empty(t, b.pauses(), "the release of unspent units must end the pause")
		require.EqualValues(t, 2, b.usedUnits())
		b.reserveUnits(99)
		replies, err := b.quota.Call(t.Context(), b.budgetSource, []queue.Target{{Platform: link.TikTok, Kind: queue.KindAccount}})
		require.NoError(t, err)
		require.Equal(t, quota.Paused, replies[0].Results[0].Class)
		_, ends := b.Budgets()[0].Window(db.Clock.Now())
		require.Equal(t, store.InstantOf(ends), b.pauses()[budgetKey].BlockedUntil, "spent units must not become available again before the window ends")
	})
}

func TestBudget_isNotExceededByConcurrentCalls(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const limit = 120
		var mu sync.Mutex
		spent := int64(0)
		s := &budgetSource{limit: limit, units: 30}
		s.spend = func(budget *source.CallBudget) error {
			mu.Lock()
			spent += 3
			mu.Unlock()
			return spendUpTo(3, nil)(budget)
		}
		b := newBudgetTest(t, db, s)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 15 {
					_, err := b.quota.Call(t.Context(), s, []queue.Target{{Platform: link.TikTok, Kind: queue.KindAccount, Handle: "mira"}})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, spent, int64(limit))
		require.Equal(t, spent, b.usedUnits(), "the stored usage must equal the spent units")
	})
}

func TestPause_isNotEndedByACallThatBeganBeforeThePause(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		b := newBudgetTest(t, db, &budgetSource{limit: 1000, units: 3})
		b.trackAccount("mira.cooks")
		now := func() store.Instant { return store.InstantOf(db.Clock.Now()) }
		pause := func(d time.Duration) {
			require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "spender", Class: string(source.RateLimited), PausesSinceSuccess: 1, BlockedUntil: now().Add(d)}))
		}
		pause(-time.Minute)
		b.spend = func(budget *source.CallBudget) error {
			pause(time.Hour) // another call was rate limited during this call
			return spendUpTo(2, nil)(budget)
		}
		require.True(t, b.claimAndFetch())
		require.Equal(t, now().Add(time.Hour), b.pauses()["spender"].BlockedUntil)
		require.NotContains(t, b.logs.String(), "source answers again")

		db.Clock.Advance(2 * time.Hour)
		b.spend = spendUpTo(2, nil)
		b.trackAccount("rails.rain")
		require.True(t, b.claimAndFetch())
		require.Empty(t, b.pauses())
		require.Contains(t, b.logs.String(), "source answers again")
	})
}
