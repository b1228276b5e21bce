// Package probe checks whether a source accepts its credential. [Send] requests a video that does not exist. A working source answers that
// it does not know the video. The request therefore changes no data and spends few units of a budget.
package probe

import (
	"context"

	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
)

// Answer is the answer of one source to a test request. The field Source is the name of the source.
type Answer struct {
	Source string
	// Result is the answer of the source. If the source did not answer, or cannot be asked for a single video, Result.Failed says why.
	source.Result
	// OwnAccountsOnly is true if the source answers only for the operator's own accounts. The video of the test
	// request belongs to no such account, so the answer of a working source has the class Unsupported.
	OwnAccountsOnly bool
}

// links are valid links to videos that do not exist, one for each platform.
var links = []string{
	"https://www.youtube.com/shorts/AAAAAAAAAAA",
	"https://www.tiktok.com/@reeltally.probe/video/7000000000000000001",
	"https://www.instagram.com/reel/AAAAAAAAAAA/",
	"https://www.facebook.com/reel/100000000000001",
}

// Send sends one test request to a source, and stores only the spent units. It returns an error only
// if a database query failed.
func Send(ctx context.Context, q *quota.Quota, s source.Source) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*s.Timeout())
	defer cancel()
	for _, raw := range links {
		l, err := link.Parse(raw)
		if err != nil {
			return Answer{}, err
		}
		t := source.Target{Platform: l.Platform, Kind: source.KindVideo, ExternalID: l.ID, Handle: l.Handle, Link: l.Canonical}
		if _, ok := s.Serves(t); !ok {
			continue
		}
		r, err := q.Probe(ctx, s, t)
		own, limited := s.(source.OwnAccountSource)
		return Answer{s.Name(), r, limited && own.OwnAccountsOnly()}, err
	}
	f := &source.Failure{Class: source.Unsupported, Detail: "the source does not serve videos, so it cannot be tested"}
	return Answer{Source: s.Name(), Result: source.Result{Class: f.Class, Detail: f.Detail, Failed: f}}, nil
}
