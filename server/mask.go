package server

import (
	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// View says whether a response shows or masks metrics. Every function that converts metrics for a response needs a View, so that masking cannot be
// forgotten. For the sentences about fetch statuses, a View also says whether a collector is running.
type View struct {
	masked      bool
	noCollector bool // true if no collector is running; fetch_detail then says so
}

// FullView is the View that shows all metrics.
var FullView = View{}

// MaskedView is the View that replaces all metrics by null, because the organisation's tier does
// not show them.
var MaskedView = View{masked: true}

// Count returns n, or nil if v masks metrics. An unknown count is also nil.
func (v View) Count(n *int64) *int64 {
	if v.masked {
		return nil
	}
	return n
}

// Ratio returns f, or nil if v masks metrics. An unknown ratio is also nil.
func (v View) Ratio(f *float64) *float64 {
	if v.masked {
		return nil
	}
	return f
}

// Text returns s, or nil if v masks metrics. It is for texts that belong to the metrics, for example the time of the last fetch.
func (v View) Text(s *string) *string {
	if v.masked {
		return nil
	}
	return s
}

// ExplainFetchStatus returns a sentence that explains the fetch status, or nil if the status needs none. If v
// masks metrics, the sentence does not contain the time of the next fetch, and is nil for the status "ok".
func (v View) ExplainFetchStatus(s *store.FetchState, kind link.Kind) *string {
	// The sentence for the status "ok" is about metrics, so it is masked.
	if v.masked && s.FetchStatus == store.FetchStatus(api.FetchStatusOk) {
		return nil
	}
	if v.masked {
		return s.FetchDetailWithoutTime(string(kind), v.noCollector)
	}
	return s.FetchDetail(string(kind), v.noCollector)
}

// MetricsMasked returns the value of the JSON member metrics_masked. It is true if v masks metrics. Otherwise it is nil, and the response
// lacks the member.
func (v View) MetricsMasked() *bool {
	if v.masked {
		return &v.masked
	}
	return nil
}
