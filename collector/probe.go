package collector

import (
	"context"
	"errors"
	"time"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// Probe is what came of asking a source for something that nobody is expected to have made.
type Probe struct {
	Source string
	// Class is what the source said of the target, or why it could not be asked; Unsupported also when there is nothing to ask it for.
	Class Class
	// Asked is whether it was asked and answered, so that its credential was taken.
	Asked bool
	// Own is whether it answers for the operator's own accounts alone: that it does not for anybody else's is no fault.
	Own     bool
	Detail  string    // never holds a credential
	RetryAt time.Time // until when the source wants to be left alone; zero when it did not say
}

// Own is a source that may answer for the operator's own accounts alone.
type Own interface {
	// OwnAlone says that Unsupported for a stranger's video is no fault of the credential's.
	OwnAlone() bool
}

// nobodys are links of the right shape, one for each platform.
var nobodys = []string{
	"https://www.youtube.com/shorts/AAAAAAAAAAA",
	"https://www.tiktok.com/@reeltally.probe/video/7000000000000000001",
	"https://www.instagram.com/reel/AAAAAAAAAAA/",
	"https://www.facebook.com/reel/100000000000001",
}

// Probe asks a source once, by the way of every other call and paid from the same budgets, and writes nothing but what the
// call cost. The error is the database's.
func (c *Collector) Probe(ctx context.Context, s Source) (Probe, error) {
	p := Probe{Source: s.Name(), Class: Unsupported, Detail: "it cannot be asked for a single video"}
	for _, raw := range nobodys {
		l, err := link.Parse(raw)
		if err != nil {
			return p, err
		}
		t := Target{Platform: l.Platform, Kind: KindVideo, ExternalID: l.ID, Handle: l.Handle, Link: l.Canonical}
		if _, ok := s.Serves(t); ok {
			return c.probe(ctx, s, t)
		}
	}
	return p, nil
}

func (c *Collector) probe(ctx context.Context, s Source, t Target) (Probe, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.Patience())
	defer cancel()
	pauses, err := c.store.Queue.Pauses(ctx)
	if err != nil {
		return Probe{}, err
	}
	if p, known := pauses[s.Name()]; known && p.BlockedUntil > store.InstantOf(c.now()) && p.Class != string(AuthFailed) {
		return Probe{Source: s.Name(), Class: Class(p.Class), Detail: p.Detail, RetryAt: p.BlockedUntil.Time()}, nil
	}
	w := way{source: s}
	taken, ok, err := c.reserve(ctx, w, []Target{t})
	if err != nil {
		return Probe{}, err
	}
	if !ok {
		return Probe{Source: s.Name(), Class: QuotaSpent, Detail: "our own count has reached the limit"}, nil
	}
	results, err := c.spend(ctx, w, []Target{t}, taken)
	failure := (*Failure)(nil)
	switch {
	case errors.As(err, &failure):
		return Probe{Source: s.Name(), Class: failure.Class, Detail: failure.Detail, RetryAt: failure.RetryAt}, nil
	case err != nil:
		return Probe{Source: s.Name(), Class: Temporary, Detail: "no answer in time"}, nil // only the context ends it otherwise
	}
	if len(results) != 1 {
		return Probe{Source: s.Name(), Class: Temporary, Detail: "an answer without the video that was asked for"}, nil
	}
	own, ok := s.(Own)
	return Probe{Source: s.Name(), Class: results[0].Class, Detail: results[0].Detail, Asked: true, Own: ok && own.OwnAlone()}, nil
}
