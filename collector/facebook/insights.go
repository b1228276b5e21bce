package facebook

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
)

// These are the classes of errors about insights. None of them means an invalid token, because the
// token was just used to read the video.
const (
	metricUnknown     = source.Unsupported // Facebook does not have the metric or has removed the metric
	noInsights        = source.Missing     // the video has no insights
	permissionMissing = source.Restricted  // the insights of the page require a permission that the token lacks
)

var insightErrors = func() graph.ErrorClasses {
	classes := graph.ErrorClasses{{Main: 100}: metricUnknown, {Main: 10}: permissionMissing}
	for code := 200; code <= 299; code++ {
		classes[graph.Code{Main: code}] = permissionMissing
	}
	for _, sub := range []int{2069030, 2069031, 2069033} { // an error with this subcode means that the video does not support insights
		classes[graph.Code{Main: 200, Sub: sub}] = noInsights
	}
	return classes
}()

const (
	notEnoughViewers = "not enough viewers" // text of the error about too few viewers; a missing permission has the same error code, but not this text
	// warnInterval is the minimum time between two warnings that the insights of a page were refused. Without it, each video of the page
	// would cause a warning.
	warnInterval = 24 * time.Hour
)

// addInsights sets the views and shares of a video from its insights. Missing counts are nil. If
// Facebook refuses all insights, "detail" is the reason.
func (s *Source) addInsights(ctx context.Context, budget *source.CallBudget, page string, v video, f *source.Facts) (detail string, err error) {
	views := s.videoMetric
	if permalink := v.Permalink.Value(); permalink != nil && strings.Contains(*permalink, "/reel/") {
		views = s.reelMetric
	}
	values, err := s.requestInsights(ctx, budget, page, string(v.ID), views+","+metricActions)
	if e, ok := graph.AsTargetError(err); ok && e.Class == metricUnknown { // if one metric is unknown, the whole call fails, so each metric is requested alone
		values, err = s.requestInsightsOneByOne(ctx, budget, page, string(v.ID), views, metricActions)
	}
	if e, ok := graph.AsTargetError(err); ok {
		if e.Class == permissionMissing {
			s.warnMissingPermission(ctx, page, e.Detail)
		}
		// The public number of views is not used, because Facebook counts it in another way.
		f.Views, f.Shares = nil, nil
		return "no insights: " + e.Detail, nil
	}
	if err != nil {
		return "", err
	}
	var plays, shares fetch.Count
	var actions struct {
		Shares fetch.Count `json:"SHARE"`
	}
	if raw := values[views]; raw != nil {
		_ = plays.UnmarshalJSON(raw) // Count.UnmarshalJSON never returns an error
	}
	if raw := values[metricActions]; raw != nil && json.Unmarshal(raw, &actions) == nil {
		shares = actions.Shares
	}
	if plays.Invalid() || shares.Invalid() {
		return "", &source.Failure{Class: source.Temporary, Detail: "the insights have an invalid count"}
	}
	f.Views, f.Shares = plays.Value(), shares.Value()
	return "", nil
}

// warnMissingPermission logs that the token lacks the permission for the insights of a page. It logs this at most once a day for each page.
func (s *Source) warnMissingPermission(ctx context.Context, page, detail string) {
	now := s.now()
	s.mu.Lock()
	last, known := s.warned[page]
	recent := known && now.Sub(last) < warnInterval
	if !recent {
		s.warned[page] = now
	}
	s.mu.Unlock()
	if !recent {
		s.log.WarnContext(ctx, "insights refused: videos of the page get no views and no shares until the token has the permission read_insights",
			"source", Name, "page", page, "detail", detail)
	}
}

// requestInsightsOneByOne requests each metric of a video in a separate call. It returns a map from metric names to values, without the
// metrics that Facebook does not know.
func (s *Source) requestInsightsOneByOne(ctx context.Context, budget *source.CallBudget, page, id string, metrics ...string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, metric := range metrics {
		one, err := s.requestInsights(ctx, budget, page, id, metric)
		if e, ok := graph.AsTargetError(err); ok && e.Class == metricUnknown {
			continue
		}
		if err != nil {
			return nil, err
		}
		values[metric] = one[metric]
	}
	return values, nil
}

// requestInsights requests metrics of a video of the given page. It returns a map from metric names to values. The names in metricNames are
// separated by commas.
func (s *Source) requestInsights(ctx context.Context, budget *source.CallBudget, pageID, videoID, metricNames string) (map[string]json.RawMessage, error) {
	res, err := s.graph.GetWithPageToken(ctx, budget, pageID, videoID+"/video_insights", insightErrors, "metric", metricNames)
	// Meta requires the token of the page, but the owner of the configured token has no role on this page
	if f, ok := errors.AsType[*source.Failure](err); ok && errors.Is(err, graph.ErrPageToken) {
		return nil, &graph.TargetError{Class: permissionMissing, Detail: f.Detail}
	}
	if e, ok := graph.AsTargetError(err); ok && strings.Contains(strings.ToLower(e.Detail), notEnoughViewers) {
		e.Class = noInsights
	}
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			Name   string                 `json:"name"`
			Period fetch.Optional[string] `json:"period"`
			Values []struct {
				Value json.RawMessage `json:"value"`
			} `json:"values"`
		} `json:"data"`
	}
	if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
		return nil, graph.ErrFormat
	}
	values := map[string]json.RawMessage{}
	for _, metric := range answer.Data {
		// Meta can return a row for the last day besides the row for the video's lifetime.
		period, known := metric.Period.Value(), values[metric.Name] != nil
		if len(metric.Values) > 0 && !known && (period == nil || *period == "lifetime") {
			values[metric.Name] = metric.Values[0].Value
		}
	}
	return values, nil
}
