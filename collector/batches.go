package collector

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/reeltally/reeltally/store/queue"
)

// atOnce makes a call for each batch, several at a time. If a call panics, atOnce returns the panic as an error.
func (c *Collector) atOnce(ctx context.Context, batches [][]queue.Target, call func([]queue.Target) error) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	slots := make(chan struct{}, callsAtOnce)
	for _, batch := range batches {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			err := c.safely(ctx, func() error { return call(batch) }, "task", "batch", "targets", idsOf(batch))
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// batches parts targets into calls. Targets of which a source takes as many at once go together, so that one that needs
// a call of its own does not split up the others.
func (c *Collector) batches(s Source, targets []queue.Target) [][]queue.Target {
	type together struct {
		size  int
		group string
	}
	var order []together
	parts := map[together][]queue.Target{}
	for _, t := range targets {
		size, _ := s.Serves(ask(t, c.now()))
		key := together{size: c.batchSize(s, t, size)}
		if g, ok := s.(Grouped); ok {
			key.group = g.Group(ask(t, c.now()))
		}
		if parts[key] == nil {
			order = append(order, key)
		}
		parts[key] = append(parts[key], t)
	}
	var out [][]queue.Target
	for _, key := range order {
		out = slices.AppendSeq(out, slices.Chunk(parts[key], key.size))
	}
	return out
}
