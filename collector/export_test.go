package collector

import (
	"context"

	"github.com/reeltally/reeltally/store/link"
)

// What the simulation drives by hand, since time stands still while a collector works.

// Round is one round of a worker.
func (c *Collector) Round(ctx context.Context, p link.Platform, k Kind) (bool, error) {
	return c.round(ctx, p, k, newHands(1), mostClaimed)
}

// KeepUp is one look for upkeep.
func (c *Collector) KeepUp(ctx context.Context) error { return c.keepUp(ctx) }

// Stretch is how far the turns of a platform's videos are spaced out.
func (c *Collector) Stretch(p link.Platform) float64 { return float64(c.plan.of(p, KindVideo)) }
