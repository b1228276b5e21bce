package ingest_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// failedStatementLog is a log handler that collects failed statements. It collects a failed statement even if the statement's transaction was
// retried and then succeeded.
type failedStatementLog struct {
	slog.Handler
	mu  sync.Mutex
	all []string
}

func (f *failedStatementLog) Enabled(context.Context, slog.Level) bool { return true }

func (f *failedStatementLog) Handle(_ context.Context, r slog.Record) error {
	if r.Message != "statement failed" {
		return nil
	}
	var text strings.Builder
	r.Attrs(func(a slog.Attr) bool { fmt.Fprintf(&text, " %s=%v", a.Key, a.Value); return true })
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, text.String())
	return nil
}

func TestConcurrentWriters_doNotDeadlock(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		const rounds, pool = 6, 40
		log := &failedStatementLog{Handler: slog.DiscardHandler}
		s, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now, Logger: slog.New(log), Inspect: db.Guard.Inspect})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		orgs := []*store.Org{s.Org(storetest.NewOrg(t, db).ID()), s.Org(storetest.NewOrg(t, db).ID())}
		links := make([]link.Link, pool)
		for i := range links {
			links[i] = storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@author%d/video/73012345678%08d", i%7, i))
		}
		some := func(n int) []link.Link {
			picked := make([]link.Link, 0, n)
			for _, i := range rand.Perm(pool)[:n] {
				picked = append(picked, links[i])
			}
			return picked
		}
		run := func(wg *sync.WaitGroup, f func() error) {
			wg.Go(func() {
				for range rounds {
					if err := f(); err != nil {
						t.Errorf("%+v", err)
						return
					}
				}
			})
		}
		var wg sync.WaitGroup
		for _, o := range orgs {
			run(&wg, func() error {
				picked := some(15)
				_, err := o.Track(t.Context(), store.TrackRequest{Links: picked, CollectionNames: []string{"Dogs", "Cats"}, Immediate: 15})
				return err
			})
			run(&wg, func() error {
				ids, err := o.TrackedVideoIDs(t.Context(), some(5))
				if err != nil {
					return err
				}
				_, err = o.StopVideos(t.Context(), ids)
				return err
			})
		}
		for range 3 {
			run(&wg, func() error {
				c, err := s.Queue.Claim(t.Context(), storetest.NewClaimRequest(store.NewID(), link.TikTok, "video", 20, time.Minute, queue.LaneInteractive))
				if err != nil || len(c.Targets) == 0 {
					return err
				}
				var outcomes []ingest.Outcome
				for _, target := range c.Targets {
					author := rand.IntN(7)
					o := storetest.Outcome(db, target, ingest.VideoFacts{Views: new(rand.Int64N(1000)), Username: new(fmt.Sprintf("author%d", author)), AccountID: new(fmt.Sprint(author))})
					o.NextAt = c.At
					outcomes = append(outcomes, o)
				}
				rand.Shuffle(len(outcomes), func(i, j int) { outcomes[i], outcomes[j] = outcomes[j], outcomes[i] })
				return ingest.New(s).Acknowledge(t.Context(), c, c.At, outcomes)
			})
		}
		wg.Wait()
		require.Empty(t, log.all)
	})
}
