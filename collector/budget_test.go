package collector

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// spender is a source of TikTok accounts with a day's budget. Each costs as much as its plan says, and spends what spends says.
type spender struct {
	limit, units int64
	spends       func(ctx context.Context, plan []Call) error
}

const spenderKey = "spender/calls"

func (*spender) Name() string { return "spender" }
func (*spender) Serves(t Target) (int, bool) {
	return 1, t.Platform == link.TikTok && t.Kind == KindAccount
}
func (s *spender) Plan(batch []Target) [][]Call { return [][]Call{{{Bucket: "calls", Units: s.units}}} }
func (*spender) Patience() time.Duration        { return time.Minute }

func (s *spender) Budgets() []Budget {
	return []Budget{{Name: "calls", Limit: s.limit, Window: func(now time.Time) (string, time.Time) {
		day := now.UTC().Truncate(24 * time.Hour)
		return day.Format(time.DateOnly), day.Add(24 * time.Hour)
	}}}
}

func (s *spender) Fetch(ctx context.Context, batch []Target, plan []Call) ([]Result, error) {
	if err := s.spends(ctx, plan); err != nil {
		return nil, err
	}
	return []Result{{Target: batch[0], Class: OK, Account: &AccountFacts{Username: new(batch[0].Handle), Listed: true}}}, nil
}

// budgeting is a collector with one spender, and an account to be fetched.
type budgeting struct {
	*testing.T
	*Collector
	*spender
	db   *storetest.DB
	logs strings.Builder
}

func budget(t *testing.T, db *storetest.DB, s *spender) *budgeting {
	t.Helper()
	b := &budgeting{T: t, spender: s, db: db}
	c, err := New(Options{Store: db.Store, Sources: []Source{s}, Now: db.Clock.Now, Logger: slog.New(slog.NewTextHandler(&b.logs, nil))})
	require.NoError(t, err)
	b.Collector = c
	return b
}

func (b *budgeting) track(handle string) {
	b.Helper()
	o, err := b.db.CreateOrganisation(b.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(b, err)
	l, err := link.Parse("https://www.tiktok.com/@" + handle)
	require.NoError(b, err)
	_, err = b.db.Org(o.ID).TrackAccounts(b.Context(), store.TrackAccountsRequest{Links: []link.Link{l}, Type: store.TrackAll, Lane: queue.LanePremium, Immediate: 1, Enqueue: 1})
	require.NoError(b, err)
}

func (b *budgeting) round() bool {
	b.Helper()
	busy, err := b.Round(b.Context(), link.TikTok, KindAccount)
	require.NoError(b, err)
	return busy
}

func (b *budgeting) used() int64 {
	b.Helper()
	window, _ := b.Budgets()[0].Window(b.db.Clock.Now())
	n, err := b.db.QuotaUsed(b.Context(), spenderKey, window)
	require.NoError(b, err)
	return n
}

func (b *budgeting) use(units int64) {
	b.Helper()
	window, _ := b.Budgets()[0].Window(b.db.Clock.Now())
	ok, err := b.db.ReserveQuota(b.Context(), spenderKey, window, units, 0)
	require.NoError(b, err)
	require.True(b, ok)
}

func (b *budgeting) pauses() map[string]queue.Pause {
	b.Helper()
	p, err := b.db.Pauses(b.Context())
	require.NoError(b, err)
	return p
}

// calls spends so many units.
func calls(n int64, err error) func(context.Context, []Call) error {
	return func(ctx context.Context, plan []Call) error {
		ctx, settle := Paying(ctx, plan)
		defer settle()
		for range n {
			if !Pay(ctx) {
				break
			}
		}
		return err
	}
}

func TestBudget_getsBackWhatWasNotSpent(t *testing.T) {
	t.Parallel()
	failure := &Failure{Class: Temporary, Detail: "HTTP 503"}
	for name, tt := range map[string]struct {
		spends func(context.Context, []Call) error
		used   int64
	}{
		"two calls":              {calls(2, nil), 2},
		"two calls, then failed": {calls(2, failure), 2},
		"no call was made":       {calls(0, failure), 0},
		"stopped meanwhile":      {calls(1, context.Canceled), 1},
		"more than was reserved": {calls(999, nil), 101},
		"nobody knows":           {func(context.Context, []Call) error { return failure }, 101},
		"a plan that was raised": {func(_ context.Context, plan []Call) error { plan[0].Units = 500; return nil }, 101},
		"a plan below nothing":   {func(_ context.Context, plan []Call) error { plan[0].Units = -500; return nil }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := budget(t, storetest.New(t, "sqlite"), &spender{limit: 10_000, units: 101, spends: tt.spends})
			b.track("mira.cooks")
			b.use(7)
			_, _ = b.Round(t.Context(), link.TikTok, KindAccount)
			require.Equal(t, 7+tt.used, b.used())
		})
	}
}

func TestBudget_returnsToTheWindowThatItCameFrom(t *testing.T) {
	t.Parallel()
	b := budget(t, storetest.New(t, "sqlite"), &spender{limit: 1000, units: 101})
	b.track("mira.cooks")
	b.spends = func(ctx context.Context, plan []Call) error {
		require.EqualValues(t, 101, b.used(), "reserved while it is under way")
		before := b.db.Clock.Now()
		b.db.Clock.Advance(24 * time.Hour)
		b.use(50)
		defer func() {
			window, _ := b.Budgets()[0].Window(before)
			require.Equal(t, []int64{101}, storetest.Column[int64](t, b.db, "SELECT used FROM quota_windows WHERE win = ?", window))
		}()
		return calls(2, nil)(ctx, plan)
	}
	require.True(t, b.round())
	require.EqualValues(t, 50, b.used())
	require.Equal(t, []int64{2, 50}, storetest.Column[int64](t, b.db, "SELECT used FROM quota_windows ORDER BY win"))
}

func TestBudget_isNotPausedByACallThatIsTooLarge(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		asked := 0
		b := budget(t, db, &spender{limit: 300, units: 250})
		b.spends = func(ctx context.Context, plan []Call) error { asked++; return calls(2, nil)(ctx, plan) }
		b.track("mira.cooks")
		b.use(51)
		require.True(t, b.round())
		require.Zero(t, asked)
		require.Empty(t, b.pauses(), "others may have what is left")
		require.EqualValues(t, 51, b.used())
		db.Clock.Advance(time.Minute)
		require.False(t, b.round(), "it is not claimed again and again")
		for range 3 {
			db.Clock.Advance(20 * time.Minute)
			require.True(t, b.round())
		}
		require.Equal(t, 1, strings.Count(b.logs.String(), "larger than what is left"), "said once a window")
		db.Clock.Advance(24 * time.Hour)
		require.True(t, b.round())
		require.Equal(t, 1, asked)
		require.EqualValues(t, 2, b.used())
	})
}

// refuser can never answer for an account, though it would be asked.
type refuser struct{ takes }

func (refuser) Fetch(_ context.Context, batch []Target, _ []Call) ([]Result, error) {
	return []Result{{Target: batch[0], Class: Unsupported, Detail: "not mine"}}, nil
}

func TestBudget_whatWaitsForUnitsIsNotParkedByTheNextSource(t *testing.T) {
	t.Parallel()
	b := budget(t, storetest.New(t, "sqlite"), &spender{limit: 300, units: 250, spends: calls(2, nil)})
	b.sources = append(b.sources, refuser{1})
	b.track("mira.cooks")
	b.use(100)
	require.True(t, b.round())
	require.Equal(t, []string{"active"}, storetest.Column[string](t, b.db, "SELECT state FROM fetch_targets"))
	b.db.Clock.Advance(24 * time.Hour)
	require.True(t, b.round())
	require.EqualValues(t, 2, b.used())
}

func TestBudget_givesACallThatIsLargerThanItWhatItHas(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ before, got int64 }{
		"all of it": {0, 300}, "what is left": {100, 200}, "half": {150, 150}, "less than half is for others": {151, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got int64
			b := budget(t, storetest.New(t, "sqlite"), &spender{limit: 300, units: 501})
			b.spends = func(ctx context.Context, plan []Call) error { got = plan[0].Units; return calls(999, nil)(ctx, plan) }
			b.track("mira.cooks")
			if tt.before > 0 {
				b.use(tt.before)
			}
			require.True(t, b.round())
			require.Equal(t, tt.got, got)
			require.Equal(t, tt.before+tt.got, b.used(), "and not one more")
			require.Empty(t, b.pauses())
		})
	}
}

func TestBudget_pauseEndsWhenUnitsComeBack(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		b := budget(t, db, &spender{limit: 101, units: 101})
		b.track("mira.cooks")
		b.spends = func(ctx context.Context, plan []Call) error {
			_, ok, err := b.reserve(ctx, way{source: b.spender}, []Target{{Platform: link.TikTok, Kind: KindAccount}})
			require.NoError(t, err)
			require.False(t, ok)
			require.Contains(t, b.pauses(), spenderKey, "nothing is left while all is reserved")
			return calls(2, nil)(ctx, plan)
		}
		require.True(t, b.round())
		require.Empty(t, b.pauses(), "it was spent on paper alone")
		require.EqualValues(t, 2, b.used())
		b.use(99)
		_, ok, err := b.reserve(t.Context(), way{source: b.spender}, []Target{{Platform: link.TikTok, Kind: KindAccount}})
		require.NoError(t, err)
		require.False(t, ok)
		_, ends := b.Budgets()[0].Window(db.Clock.Now())
		require.Equal(t, store.InstantOf(ends), b.pauses()[spenderKey].BlockedUntil, "what is spent is spent")
	})
}

func TestBudget_isNeverExceededByCallsAtOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const limit = 120
		var mu sync.Mutex
		spent := int64(0)
		s := &spender{limit: limit, units: 30}
		s.spends = func(ctx context.Context, plan []Call) error {
			mu.Lock()
			spent += 3
			mu.Unlock()
			return calls(3, nil)(ctx, plan)
		}
		b := budget(t, db, s)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 15 {
					r, ok, err := b.reserve(t.Context(), way{source: s}, []Target{{Platform: link.TikTok, Kind: KindAccount, Handle: "mira"}})
					if err == nil && ok {
						_, err = b.spend(t.Context(), way{source: s}, []Target{{Platform: link.TikTok, Kind: KindAccount, Handle: "mira"}}, r)
					}
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		require.LessOrEqual(t, spent, int64(limit))
		require.Equal(t, spent, b.used(), "what is counted is what was spent")
	})
}

func TestPause_isNotEndedByAnAnswerFromBeforeIt(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		b := budget(t, db, &spender{limit: 1000, units: 3})
		b.track("mira.cooks")
		now := func() store.Instant { return store.InstantOf(db.Clock.Now()) }
		pause := func(d time.Duration) {
			require.NoError(t, db.PauseSource(t.Context(), queue.Pause{Source: "spender", Class: string(RateLimited), Strikes: 1, BlockedUntil: now().Add(d)}))
		}
		pause(-time.Minute)
		b.spends = func(ctx context.Context, plan []Call) error {
			pause(time.Hour) // as another call was told meanwhile
			return calls(2, nil)(ctx, plan)
		}
		require.True(t, b.round())
		require.Equal(t, now().Add(time.Hour), b.pauses()["spender"].BlockedUntil)
		require.NotContains(t, b.logs.String(), "source answers again")

		db.Clock.Advance(2 * time.Hour)
		b.spends = calls(2, nil)
		b.track("rails.rain")
		require.True(t, b.round())
		require.Empty(t, b.pauses())
		require.Contains(t, b.logs.String(), "source answers again")
	})
}
