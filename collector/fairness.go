package collector

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Fairness between organisations, where somebody waits. The queue serves them by turns (store/queue/fairqueue.go), so that who comes new
// comes next. That is not enough where sources are slow: all workers may be busy with one organisation's links for long. So
//
//   - while all workers are busy, what an organisation waits for that has nothing in hand is claimed besides (welcome);
//   - in a claim, no organisation waits for the calls of another, but for a call that they share, after which they part (strands);
//   - of the calls that a source takes at once, the last is left for an organisation that has none (Slots).

const (
	// mostWelcome bounds the claims besides those of the workers, and mostAdmitted the targets of each.
	mostWelcome  = 32
	mostAdmitted = 50
)

// hands are what is being worked on of a platform and kind.
type hands struct {
	mu      sync.Mutex
	workers int // that are free
	served  map[uuid.UUID]int
	welcome int // claims besides those of the workers
}

func newHands(workers int) *hands { return &hands{workers: workers, served: map[uuid.UUID]int{}} }

// take notes that a claim is being worked on, by a worker or besides; what it returns notes the end.
func (h *hands) take(targets []queue.Target, worker bool) (give func()) {
	count := func(n int) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if worker {
			h.workers -= n
		} else {
			h.welcome += n
		}
		for _, t := range targets {
			if h.served[waits(t)] += n; h.served[waits(t)] == 0 {
				delete(h.served, waits(t))
			}
		}
	}
	count(1)
	return func() { count(-1) }
}

// full says whether all workers are busy, and who is being served; not while as many claims as may be are worked on besides.
func (h *hands) full() (served []uuid.UUID, full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for org := range h.served {
		served = append(served, org)
	}
	return served, h.workers <= 0 && h.welcome < mostWelcome
}

// waits is the organisation that waits for a target; none for what is due by the schedule.
func waits(t queue.Target) uuid.UUID {
	if t.Lane == queue.LaneInteractive {
		return t.Organisation
	}
	return uuid.Nil
}

// welcome claims what newcomers wait for while all workers are busy. It asks the database for nothing while one is free.
func (c *Collector) welcome(ctx context.Context, p link.Platform, k Kind, h *hands) {
	var under sync.WaitGroup
	defer under.Wait()
	for wait(ctx, jitter(c.poll)) {
		served, full := h.full()
		if !full {
			continue
		}
		var work func() error
		err := c.safely(ctx, func() (err error) {
			work, err = c.admit(ctx, p, k, h, served)
			return err
		}, "task", "newcomers", "platform", p, "kind", k)
		if err != nil && ctx.Err() == nil {
			c.log.ErrorContext(ctx, "newcomers not claimed", "platform", p, "kind", k, "error", err)
		}
		if work != nil {
			under.Go(func() {
				err := c.safely(ctx, work, "task", "newcomers", "platform", p, "kind", k)
				if err != nil && ctx.Err() == nil {
					c.log.ErrorContext(ctx, "round failed", "platform", p, "kind", k, "error", err)
				}
			})
		}
	}
}

// admit claims once for organisations that are not being served, and returns the work on it; nil when there are none.
func (c *Collector) admit(ctx context.Context, p link.Platform, k Kind, h *hands, served []uuid.UUID) (work func() error, err error) {
	waiting, err := c.store.Queue.Newcomers(ctx, p, string(k), served, mostAdmitted)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}
	ways, batch, err := c.ready(ctx, p, k)
	if err != nil || batch == 0 {
		return nil, err
	}
	waiting = waiting[:min(len(waiting), max(batch, callsAtOnce))]
	organisations := map[string]uuid.UUID{}
	var ids []string
	for _, w := range waiting {
		organisations[w.ExternalID], ids = w.Organisation, append(ids, w.ExternalID)
	}
	held, within := c.times(k)
	claim, err := c.store.Queue.Claim(ctx, queue.ClaimRequest{Collector: c.id, Platform: p, Kind: string(k), Lanes: []queue.Lane{queue.LaneInteractive},
		Only: ids, Limit: len(ids), Lease: held})
	if err != nil || len(claim.Targets) == 0 {
		return nil, err
	}
	for i := range claim.Targets {
		claim.Targets[i].Organisation = organisations[claim.Targets[i].ExternalID]
	}
	give := h.take(claim.Targets, false)
	return func() error {
		defer give()
		return c.collect(ctx, claim, ways, within)
	}, nil
}

type askingKey struct{}

// askingFor tells a source's Slots who waits for a call: of several, the one with the fewest targets in it.
func askingFor(ctx context.Context, batch []queue.Target) context.Context {
	count := map[uuid.UUID]int{}
	for _, t := range batch {
		count[waits(t)]++
	}
	who := waits(batch[0])
	for _, t := range batch {
		if count[waits(t)] < count[who] {
			who = waits(t)
		}
	}
	return context.WithValue(ctx, askingKey{}, who)
}
