package quota

import (
	"context"
	"errors"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// ProbeAnswer is the answer of one source to a test request. The field Source is the name of the source.
type ProbeAnswer struct {
	Source string
	// Result is the answer of the source. If the source did not answer, or cannot be asked for a single video, Result.Failed says why.
	source.Result
	// OnlyAccounts is the result of Source.OnlyAccounts. If it is not "", the answer of a working source can have the class Unsupported,
	// because the video of the test request belongs to none of these accounts.
	OnlyAccounts string
}

// probeLinks are valid links to videos that do not exist, one for each platform.
var probeLinks = []string{
	"https://www.youtube.com/shorts/AAAAAAAAAAA",
	"https://www.tiktok.com/@reeltally.probe/video/7000000000000000001",
	"https://www.instagram.com/reel/AAAAAAAAAAA/",
	"https://www.facebook.com/reel/100000000000001",
}

// Probe checks whether a source accepts its credential. It requests a video that does not exist: a working source answers that it does not know the
// video. The request therefore changes no data and spends few units of a budget. Probe stores only the spent units, and returns an error only if a
// database query failed. Probe asks the source even if a refused credential has paused the source, but not during other pauses.
func (q *Quota) Probe(ctx context.Context, s source.Source) (ProbeAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, source.FetchTimeout(s))
	defer cancel()
	for _, raw := range probeLinks {
		l, err := link.Parse(raw)
		if err != nil {
			return ProbeAnswer{}, err
		}
		t := queue.Target{Platform: l.Platform, Kind: queue.KindVideo, ExternalID: l.ID, Handle: l.Handle, Link: l.Canonical}
		if _, ok := s.Serves(t); !ok {
			continue
		}
		r, err := q.probeTarget(ctx, s, t)
		return ProbeAnswer{s.Name(), r, s.OnlyAccounts()}, err
	}
	f := &source.Failure{Class: source.Unsupported, Detail: "the source does not serve videos, so it cannot be tested"}
	return ProbeAnswer{Source: s.Name(), Result: source.Result{Class: f.Class, Detail: f.Detail, Failed: f}}, nil
}

// probeTarget asks a source for one target, even if a refused credential has paused the source. Any other pause prevents the call. The answer
// neither begins nor ends a pause.
func (q *Quota) probeTarget(ctx context.Context, s source.Source, t queue.Target) (source.Result, error) {
	writing, batch := context.WithoutCancel(ctx), []queue.Target{t}
	st, err := q.readState(writing)
	if err != nil {
		return source.Result{}, err
	}
	if st.pauses[s.Name()].Class == string(source.AuthFailed) {
		delete(st.pauses, s.Name())
	}
	taken, failure, err := q.reserveUnits(writing, s, st, batch)
	if err != nil {
		return source.Result{}, err
	}
	if failure == nil {
		results, err := q.fetchWithinUnits(ctx, s, batch, taken)
		if err == nil && len(results) == 1 {
			return results[0], nil
		}
		if !errors.As(err, &failure) {
			failure = &source.Failure{Class: source.Temporary, Detail: "no answer in time"}
		}
	}
	return source.Result{Target: t, Class: failure.Class, Detail: failure.Detail, Failed: failure}, nil
}
