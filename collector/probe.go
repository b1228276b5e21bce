package collector

import (
	"context"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// Probe is the result of a test request for a video that does not exist.
type Probe struct {
	Source string
	// Result is the answer of the source. If the source did not answer, or cannot be asked for a single video, Failed is set.
	source.Result
	// OwnAccountsOnly is true if the source answers only for the operator's own accounts. Its right answer is then of class Unsupported.
	OwnAccountsOnly bool
}

// probeLinks are valid links to videos that do not exist, one for each platform.
var probeLinks = []string{
	"https://www.youtube.com/shorts/AAAAAAAAAAA",
	"https://www.tiktok.com/@reeltally.probe/video/7000000000000000001",
	"https://www.instagram.com/reel/AAAAAAAAAAA/",
	"https://www.facebook.com/reel/100000000000001",
}

// Probe sends one test request to a source. The request is paid from the same budgets as every call. Probe stores nothing except the spent
// units. It returns an error only if a database query failed.
func (c *Collector) Probe(ctx context.Context, s source.Source) (Probe, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.Timeout())
	defer cancel()
	for _, raw := range probeLinks {
		l, err := link.Parse(raw)
		if err != nil {
			return Probe{}, err
		}
		t := source.Target{Platform: l.Platform, Kind: source.KindVideo, ExternalID: l.ID, Handle: l.Handle, Link: l.Canonical}
		if _, ok := s.Serves(t); !ok {
			continue
		}
		r, err := c.quota.Probe(ctx, s, t)
		own, limited := s.(source.OwnAccountSource)
		return Probe{s.Name(), r, limited && own.OwnAccountsOnly()}, err
	}
	f := &source.Failure{Class: source.Unsupported, Detail: "the source cannot be asked for a single video"}
	return Probe{Source: s.Name(), Result: source.Result{Class: f.Class, Detail: f.Detail, Failed: f}}, nil
}
