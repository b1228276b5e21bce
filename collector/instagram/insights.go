package instagram

import (
	"context"
	"encoding/json"
	"strings"

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

// insightErrors are Meta's errors for a post without insights, and for a metric that Meta does not have for the post (Unsupported). A post
// has no insights if it was uploaded before the account became professional, has too few viewers, or was just deleted.
var insightErrors = graph.ErrorClasses{
	{Main: 100, Sub: 2108006}: source.Missing, {Main: 10}: source.Missing, {Main: 100, Sub: 33}: source.Missing, {Main: 100}: source.Unsupported,
}

const notEnoughViewers = "not enough viewers"

// addInsights requests the insights of the operator's post and sets views, shares and bookmarks in f.
// If a metric is missing, its count stays unchanged.
func (s *Source) addInsights(ctx context.Context, budget *source.CallBudget, mediaID string, f *source.Facts) (source.Result, error) {
	if !accountNum.MatchString(mediaID) {
		return source.Result{Class: source.Temporary, Detail: "the post has no id, which is needed to request its insights"}, nil
	}
	values, err := s.requestInsights(ctx, budget, mediaID, metricViews+","+metricShares+","+metricSaved)
	detail := ""
	e, refused := graph.AsTargetError(err)
	switch {
	case refused && e.Class == source.Unsupported: // if Meta refuses one metric, the whole call fails, so each metric is requested alone
		if values, detail, err = s.requestInsightsOneByOne(ctx, budget, mediaID, metricViews, metricShares, metricSaved); err != nil {
			return source.Result{}, err
		}
	case refused && strings.Contains(e.Detail, "code 10/") && !strings.Contains(strings.ToLower(e.Detail), notEnoughViewers):
		return source.Result{}, &source.Failure{Class: source.AuthFailed, Detail: "insights: " + e.Detail}
	case refused:
		detail = "no insights: " + e.Detail
	case err != nil:
		return source.Result{}, err
	}
	for metric, count := range map[string]**int64{metricViews: &f.Views, metricShares: &f.Shares, metricSaved: &f.Bookmarks} {
		v, ok := values[metric]
		if !ok {
			continue
		}
		if v.Invalid() {
			return source.Result{Class: source.Temporary, Detail: "the insights have an invalid count"}, nil
		}
		*count = v.Value()
	}
	return source.Result{Class: source.OK, Facts: f, Detail: detail}, nil
}

// requestInsightsOneByOne requests each metric of a post in a separate call. The returned map has no refused metric. If a metric is
// refused, "detail" is the reason.
func (s *Source) requestInsightsOneByOne(ctx context.Context, budget *source.CallBudget, mediaID string, metrics ...string) (values map[string]fetch.Count, detail string, err error) {
	values = map[string]fetch.Count{}
	for _, metric := range metrics {
		one, err := s.requestInsights(ctx, budget, mediaID, metric)
		if e, ok := graph.AsTargetError(err); ok {
			detail = "no insight " + metric + ": " + e.Detail
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if v, ok := one[metric]; ok {
			values[metric] = v
		}
	}
	return values, detail, nil
}

// requestInsights requests metrics of a post. It returns a map from metric names to values. The names in metricNames are separated by
// commas.
func (s *Source) requestInsights(ctx context.Context, budget *source.CallBudget, mediaID, metricNames string) (map[string]fetch.Count, error) {
	res, err := s.graph.Get(ctx, budget, mediaID+"/insights", insightErrors, "metric", metricNames)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			Name   string `json:"name"`
			Values []struct {
				Value fetch.Count `json:"value"`
			} `json:"values"`
		} `json:"data"`
	}
	if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
		return nil, graph.ErrFormat
	}
	values := map[string]fetch.Count{}
	for _, metric := range answer.Data {
		if len(metric.Values) > 0 {
			values[metric.Name] = metric.Values[0].Value
		}
	}
	return values, nil
}
