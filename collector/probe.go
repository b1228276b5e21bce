package collector

import (
	"context"
	"time"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// Probe is the result of a test request for a video that does not exist.
type Probe struct {
	Source string
	// Class is the class of the answer. If the source could not be asked, Class says why. It is Unsupported if the source cannot be asked
	// for a single video.
	Class source.Class
	// Answered is true if the source answered the test request, which means that it accepted the credential.
	Answered bool
	// OwnAccountsOnly is true if the source answers for the operator's own accounts only. Such a source rightly answers the test request with
	// the class Unsupported.
	OwnAccountsOnly bool
	Detail          string    // text for the operator; never contains a credential
	RetryAt         time.Time // when the source may be asked again; zero if the source did not say
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
	p := Probe{Source: s.Name(), Class: source.Unsupported, Detail: "the source cannot be asked for a single video"}
	for _, raw := range probeLinks {
		l, err := link.Parse(raw)
		if err != nil {
			return p, err
		}
		t := source.Target{Platform: l.Platform, Kind: source.KindVideo, ExternalID: l.ID, Handle: l.Handle, Link: l.Canonical}
		if _, ok := s.Serves(t); ok {
			return c.probe(ctx, s, t)
		}
	}
	return p, nil
}

// probe sends the test request for t, which s serves.
func (c *Collector) probe(ctx context.Context, s source.Source, t source.Target) (Probe, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.Timeout())
	defer cancel()
	reply, err := c.quota.Probe(ctx, s, t)
	if err != nil {
		return Probe{}, err
	}
	p := Probe{Source: s.Name(), RetryAt: reply.Until}
	switch {
	case reply.Outcome == quota.Answered && len(reply.Results) == 1:
		own, ok := s.(source.OwnAccountSource)
		p.Class, p.Detail, p.Answered, p.OwnAccountsOnly = reply.Results[0].Class, reply.Results[0].Detail, true, ok && own.OwnAccountsOnly()
	case reply.Failure != nil:
		p.Class, p.Detail, p.RetryAt = reply.Failure.Class, reply.Failure.Detail, reply.Failure.RetryAt
	default:
		p.Class, p.Detail = source.Temporary, "no answer in time"
	}
	return p, nil
}
