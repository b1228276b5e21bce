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

// insightErrors are the classes of errors about insights. None of them means an invalid token, because the token was just used to read the
// video.
var insightErrors = graph.ErrorClasses{
	{Main: 100}: graph.MetricUnknown,
	// An error with one of these subcodes means that the video does not support insights.
	{Main: 200, Sub: 2069030}: graph.NoInsights, {Main: 200, Sub: 2069031}: graph.NoInsights, {Main: 200, Sub: 2069033}: graph.NoInsights,
}.WithPermissions(graph.PermissionMissing)

// warnInterval is the minimum time between two warnings that the insights of a page were refused. Without it, each video of the page
// would cause a warning.
const warnInterval = 24 * time.Hour

// addInsights sets the views and shares of a video from its insights. Missing counts are nil: the public number of views is not used
// instead, because Facebook counts it in another way. If Facebook refuses a metric, "detail" is the reason.
func (s *Source) addInsights(ctx context.Context, budget *source.CallBudget, page string, v video, f *source.Facts) (detail string, err error) {
	metricViews := s.videoMetric
	if permalink := v.Permalink.Value(); permalink != nil && strings.Contains(*permalink, "/reel/") {
		metricViews = s.reelMetric
	}
	values, refused, err := graph.Insights([]string{metricViews, metricActions}, func(metricNames string) (graph.Answer, error) {
		res, err := s.Client.GetWithPageToken(ctx, budget, page, string(v.ID)+"/video_insights", insightErrors, "metric", metricNames)
		if f, ok := errors.AsType[*source.Failure](err); ok && errors.Is(err, graph.ErrPageToken) {
			// Meta requires the token of the page, but the owner of the configured token has no role on this page.
			err = &graph.TargetError{Class: graph.PermissionMissing, Detail: f.Detail}
		}
		return res, err
	})
	if err != nil {
		return "", err
	}
	if refused != nil {
		detail = graph.MissingDetail(values, refused)
		if refused.Class == graph.PermissionMissing {
			s.warnMissingPermission(ctx, page, refused.Detail)
		}
	}
	var views fetch.Count
	var actions struct {
		Shares fetch.Count `json:"SHARE"`
	}
	// A value that is absent, or has another type, leaves the count empty.
	_ = json.Unmarshal(values[metricViews], &views)
	_ = json.Unmarshal(values[metricActions], &actions)
	if views.Invalid() || actions.Shares.Invalid() {
		return "", &source.Failure{Class: source.Temporary, Detail: "the insights have an invalid count"}
	}
	f.Views, f.Shares = views.Value(), actions.Shares.Value()
	return detail, nil
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
