package instagram

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
)

// These are the metrics that the source requests from the insights of a post. If Meta removes one of them, the whole request fails.
const (
	metricViews  = "views"
	metricShares = "shares"
	metricSaved  = "saved"
)

// insightErrors are Meta's errors for a post without insights. The post was uploaded before the
// account became professional, has too few viewers, or was just deleted.
var insightErrors = graph.ErrorClasses{{Main: 100, Sub: 2108006}: source.Missing, {Main: 10}: source.Missing, {Main: 100, Sub: 33}: source.Missing}

const notEnoughViewers = "not enough viewers"

// addInsights requests the insights of the operator's post and sets views, shares and bookmarks in f.
// If a metric is missing, its count stays unchanged.
func (s *Source) addInsights(ctx context.Context, budget *source.CallBudget, mediaID string, f *source.Facts) (source.Result, error) {
	if !accountNum.MatchString(mediaID) {
		return source.Result{Class: source.Temporary, Detail: "the post has no id, which is needed to request its insights"}, nil
	}
	res, err := s.graph.Get(ctx, budget, mediaID+"/insights", insightErrors, "metric", metricViews+","+metricShares+","+metricSaved)
	if e, ok := graph.AsTargetError(err); ok {
		if strings.Contains(e.Detail, "code 10/") && !strings.Contains(strings.ToLower(e.Detail), notEnoughViewers) {
			return source.Result{}, &source.Failure{Class: source.AuthFailed, Detail: "insights: " + e.Detail}
		}
		return source.Result{Class: source.OK, Facts: f, Detail: "no insights: " + e.Detail}, nil
	}
	if err != nil {
		return source.Result{}, err
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
		return source.Result{}, graph.ErrFormat
	}
	for _, metric := range answer.Data {
		count, ok := map[string]**int64{metricViews: &f.Views, metricShares: &f.Shares, metricSaved: &f.Bookmarks}[metric.Name]
		if !ok || len(metric.Values) == 0 {
			continue
		}
		if metric.Values[0].Value.Invalid() {
			return source.Result{Class: source.Temporary, Detail: "the insights have an invalid count"}, nil
		}
		*count = metric.Values[0].Value.Value()
	}
	return source.Result{Class: source.OK, Facts: f}, nil
}
