package instagram

import (
	"context"
	"encoding/json"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
)

// These are the metrics that the source requests from the insights of a post.
const (
	metricViews  = "views"
	metricShares = "shares"
	metricSaved  = "saved"
)

// insightErrors are the classes of errors about insights. A post has no insights if it was uploaded before the account became professional,
// has too few viewers, or was just deleted.
var insightErrors = graph.ErrorClasses{
	{Main: 100, Sub: 2108006}: graph.NoInsights, {Main: 100, Sub: 33}: graph.NoInsights, {Main: 100}: graph.MetricUnknown, {Main: 10}: graph.PermissionMissing,
}

// addInsights requests the insights of the operator's post and sets views, shares and bookmarks in f.
// If a metric is missing, its count stays unchanged.
func (s *Source) addInsights(ctx context.Context, budget *source.CallBudget, mediaID string, f *source.Facts) (source.Result, error) {
	if !accountNum.MatchString(mediaID) {
		return source.Result{Class: source.Temporary, Detail: "the post has no id, which is needed to request its insights"}, nil
	}
	values, refused, err := graph.Insights([]string{metricViews, metricShares, metricSaved}, func(metricNames string) (graph.Answer, error) {
		return s.Client.Get(ctx, budget, mediaID+"/insights", insightErrors, "metric", metricNames)
	})
	if err != nil {
		return source.Result{}, err
	}
	r := source.Result{Class: source.OK, Facts: f}
	if refused != nil {
		if refused.Class == graph.PermissionMissing {
			return source.Result{}, &source.Failure{Class: source.AuthFailed, Detail: "insights: " + refused.Detail}
		}
		r.Detail = graph.MissingDetail(values, refused)
	}
	for metric, count := range map[string]**int64{metricViews: &f.Views, metricShares: &f.Shares, metricSaved: &f.Bookmarks} {
		raw, ok := values[metric]
		if !ok {
			continue
		}
		var v fetch.Count
		_ = json.Unmarshal(raw, &v) // an invalid value causes no error
		if v.Invalid() {
			return source.Result{Class: source.Temporary, Detail: "the insights have an invalid count"}, nil
		}
		*count = v.Value()
	}
	return r, nil
}
