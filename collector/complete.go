package collector

import (
	"context"
	"errors"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// A source may know a video's numbers and not its length, say. What it lacks is then asked of the next source, whenever
// details are wanted; the counts stay those of the first.

// lacking is an outcome whose facts another source may complete.
type lacking struct {
	outcome ingest.Outcome
	at      time.Time // when the counts were asked for
}

// lacks says whether facts that came with details are without one that every video has.
func lacks(f *Facts) bool {
	return f.Title == nil || f.Username == nil || f.UploadedAt == nil || f.LengthSeconds == nil
}

// fill takes from another source's facts what ours lack, but no count, and no account: each source has ids of its own for those.
func fill(f *Facts, from *Facts) {
	take(&f.Title, from.Title)
	take(&f.Username, from.Username)
	take(&f.UploadedAt, from.UploadedAt)
	take(&f.LengthSeconds, from.LengthSeconds)
	take(&f.SongName, from.SongName)
	take(&f.SongLink, from.SongLink)
	take(&f.IsAd, from.IsAd)
	take(&f.ShopAd, from.ShopAd)
	take(&f.ShopProductID, from.ShopProductID)
}

func take[T any](to **T, from *T) {
	if *to == nil {
		*to = from
	}
}

// complete asks a source for what outcomes lack, and writes them: completed or, where it cannot say, as they are.
func (c *Collector) complete(ctx, writing context.Context, claim queue.Claim, w way, outcomes []lacking) error {
	byID := map[string]lacking{}
	targets := make([]queue.Target, len(outcomes))
	for i, l := range outcomes {
		targets[i], byID[l.outcome.Target.ExternalID] = l.outcome.Target, l
	}
	return c.atOnce(writing, c.batches(w.source, targets), func(batch []queue.Target) error {
		results, err := c.askDetails(ctx, writing, w, batch)
		asked := make([]lacking, len(batch))
		for i, t := range batch {
			asked[i] = byID[t.ExternalID]
			if i < len(results) && results[i].Class == OK {
				fill(asked[i].outcome.Facts, results[i].Facts)
				asked[i].outcome.Details = asked[i].outcome.Facts.Title != nil && asked[i].outcome.Facts.Username != nil
			}
		}
		return errors.Join(err, c.write(writing, claim, asked))
	})
}

// askDetails asks for a batch. If the batch is refused whole or its call panics, it asks for each half. A result without facts means
// that the source has no answer; the target has its counts already and is not marked as failed.
func (c *Collector) askDetails(ctx, writing context.Context, w way, batch []queue.Target) ([]Result, error) {
	var results []Result
	a := answer{}
	err := c.safely(writing, func() (err error) {
		results, a, err = c.callForDetails(ctx, w, batch)
		return err
	}, "source", w.source.Name(), "platform", batch[0].Platform, "kind", batch[0].Kind, "targets", idsOf(batch))
	if p, ok := errors.AsType[*panicked](err); ok {
		results = nil
		a, err = c.failed(writing, w, batch, &Failure{Class: Temporary, Detail: p.Error(), Cause: p})
	}
	if err != nil || len(results) == len(batch) || a.divide == nil {
		return results, err
	}
	half := len(batch) / 2
	results = make([]Result, len(batch))
	first, err := c.askDetails(ctx, writing, w, batch[:half])
	if err != nil {
		return nil, err
	}
	second, err := c.askDetails(ctx, writing, w, batch[half:])
	copy(results, first)
	copy(results[half:], second)
	return results, err
}

// callForDetails makes one call. It returns no results and no error if the source could not be asked.
func (c *Collector) callForDetails(ctx context.Context, w way, batch []queue.Target) ([]Result, answer, error) {
	began := c.now()
	asked := make([]Target, len(batch))
	for i, t := range batch {
		asked[i] = ask(t, began)
	}
	taken, ok, err := c.reserve(ctx, w, asked)
	if err != nil || !ok {
		return nil, answer{}, err
	}
	results, err := c.spend(askingFor(ctx, batch), w, asked, taken)
	failure := (*Failure)(nil)
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, ErrNoTime)):
		return nil, answer{}, nil //nolint:nilerr // shutdown, or the claim's time is up
	case errors.As(err, &failure):
		a, err := c.failed(context.WithoutCancel(ctx), w, batch, failure)
		return nil, a, err
	case err != nil:
		return nil, answer{}, err
	}
	return results, answer{}, c.answered(context.WithoutCancel(ctx), w, taken, began)
}

// write acknowledges outcomes as they are.
func (c *Collector) write(ctx context.Context, claim queue.Claim, outcomes []lacking) error {
	byTime := map[time.Time][]ingest.Outcome{}
	for _, l := range outcomes {
		byTime[l.at] = append(byTime[l.at], l.outcome)
	}
	var errs []error
	for at, together := range byTime {
		errs = append(errs, c.writer.Acknowledge(ctx, claim, store.InstantOf(at), together))
	}
	return errors.Join(errs...)
}
