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

// What the errors of insights mean: none of them says anything of the credential, since the page itself has just been read with it.
const (
	unknownMetric = source.Unsupported // the platform does not have the metric (any more)
	noneOfIt      = source.Missing     // of this video there are none
	notAllowed    = source.Restricted  // of this page there are none, as long as a permission is missing
)

var insightRefusals = func() graph.Verdicts {
	v := graph.Verdicts{{Main: 100}: unknownMetric, {Main: 10}: notAllowed}
	for code := 200; code <= 299; code++ {
		v[graph.Code{Main: code}] = notAllowed
	}
	for _, sub := range []int{2069030, 2069031, 2069033} { // the edge is not supported for it
		v[graph.Code{Main: 200, Sub: sub}] = noneOfIt
	}
	return v
}()

const (
	notEnoughViewers = "not enough viewers" // which comes with the code of a missing permission
	// warnEvery is how often an operator is told that a page's insights are refused: each of its videos meets that.
	warnEvery = 24 * time.Hour
)

// addInsights puts in place of the views what the owner alone is told, and adds shares. Of what the platform does not have yet,
// nothing is said. Where it refuses a video's insights as a whole, nobody says the views, and why tells the reason: those that everybody is told
// are another count, between which and this one a series would jump.
func (s *Source) addInsights(ctx context.Context, budget *source.CallBudget, page string, v video, f *source.Facts) (why string, err error) {
	views := s.video
	if v.Permalink != nil && strings.Contains(*v.Permalink, "/reel/") {
		views = s.reel
	}
	values, err := s.insights(ctx, budget, page, string(v.ID), views+","+metricActions)
	if refusal, ok := graph.AsRefusal(err); ok && refusal.Class == unknownMetric { // one unknown metric fails all
		values, err = s.oneByOne(ctx, budget, page, string(v.ID), views, metricActions)
	}
	if refusal, ok := graph.AsRefusal(err); ok {
		if refusal.Class == notAllowed {
			s.warn(ctx, page, refusal.Detail)
		}
		f.Views, f.Shares = nil, nil
		return "no insights: " + refusal.Detail, nil
	}
	if err != nil {
		return "", err
	}
	var plays, shares fetch.Count
	var actions struct {
		Shares fetch.Count `json:"SHARE"`
	}
	if raw := values[views]; raw != nil {
		_ = plays.UnmarshalJSON(raw) // which never fails
	}
	if raw := values[metricActions]; raw != nil && json.Unmarshal(raw, &actions) == nil {
		shares = actions.Shares
	}
	if plays.Invalid() || shares.Invalid() {
		return "", &source.Failure{Class: source.Temporary, Detail: "the insights have a count that is no whole number"}
	}
	f.Views, f.Shares = plays.Value(), shares.Value()
	return "", nil
}

// warn tells the operator once in a while that a page's insights are refused for want of a permission.
func (s *Source) warn(ctx context.Context, page, detail string) {
	now := s.now()
	s.mu.Lock()
	last, known := s.warned[page]
	again := known && now.Sub(last) < warnEvery
	if !again {
		s.warned[page] = now
	}
	s.mu.Unlock()
	if !again {
		s.log.WarnContext(ctx, "insights refused: no views and no shares of the own page as long as the permission read_insights is missing",
			"source", Name, "page", page, "detail", detail)
	}
}

// oneByOne are the values of those metrics that the platform knows.
func (s *Source) oneByOne(ctx context.Context, budget *source.CallBudget, page, id string, metrics ...string) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, metric := range metrics {
		one, err := s.insights(ctx, budget, page, id, metric)
		if refusal, ok := graph.AsRefusal(err); ok && refusal.Class == unknownMetric {
			continue
		}
		if err != nil {
			return nil, err
		}
		values[metric] = one[metric]
	}
	return values, nil
}

// insights are the values of a video's metrics, by their names.
func (s *Source) insights(ctx context.Context, budget *source.CallBudget, page, id, metrics string) (map[string]json.RawMessage, error) {
	res, err := s.graph.GetAsPage(ctx, budget, page, id+"/video_insights", insightRefusals, "metric", metrics)
	if f, ok := errors.AsType[*source.Failure](err); ok && errors.Is(err, graph.ErrPageToken) { // the token has no role on the page
		return nil, &graph.Refusal{Class: notAllowed, Detail: f.Detail}
	}
	if refusal, ok := graph.AsRefusal(err); ok && strings.Contains(strings.ToLower(refusal.Detail), notEnoughViewers) {
		refusal.Class = noneOfIt
	}
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data []struct {
			Name   string `json:"name"`
			Values []struct {
				Value json.RawMessage `json:"value"`
			} `json:"values"`
		} `json:"data"`
	}
	if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
		return nil, graph.ErrShape
	}
	values := map[string]json.RawMessage{}
	for _, metric := range answer.Data {
		if len(metric.Values) > 0 {
			values[metric.Name] = metric.Values[0].Value
		}
	}
	return values, nil
}
