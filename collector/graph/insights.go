package graph

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// These are the classes of Meta's refusals of insights. The ErrorClasses of a request for insights must use them.
const (
	MetricUnknown     = source.Unsupported // Meta does not have one of the requested metrics for this video or post
	NoInsights        = source.Missing     // the video or post has no insights
	PermissionMissing = source.Restricted  // the token lacks a permission that the insights require
)

// notEnoughViewers is a part of Meta's error for a video or post with too few viewers. A missing permission has the same error code, but
// not this text.
const notEnoughViewers = "not enough viewers"

// Insights requests metrics of one video or post. The function get sends a request for metrics, whose names are separated by commas.
// Insights requests all metrics in one call. If Meta refuses this call because of an unknown metric, Insights requests each metric alone.
//
// The returned map has the values of the metrics in Meta's answers. If Meta refused metrics, "refused" is the refusal of one of them. A
// refusal of another class than MetricUnknown has precedence.
func Insights(metrics []string, get func(metricNames string) (Answer, error)) (values map[string]json.RawMessage, refused *TargetError, err error) {
	values, refused, err = requestMetrics(strings.Join(metrics, ","), get)
	if err != nil || refused == nil || refused.Class != MetricUnknown {
		return values, refused, err
	}
	values, refused = map[string]json.RawMessage{}, nil
	for _, metric := range metrics {
		one, refusal, err := requestMetrics(metric, get)
		if err != nil {
			return nil, nil, err
		}
		if refusal != nil && (refused == nil || refused.Class == MetricUnknown) {
			refused = refusal
			refused.Detail = "metric " + metric + ": " + refused.Detail
		}
		maps.Copy(values, one)
	}
	return values, refused, nil
}

// MissingDetail returns the detail of a result whose insights Meta has refused, completely or in part. values and refused are those that
// Insights returned; refused must not be nil.
func MissingDetail(values map[string]json.RawMessage, refused *TargetError) string {
	if len(values) == 0 {
		return "no insights: " + refused.Detail
	}
	return "an insight is missing: " + refused.Detail
}

// requestMetrics requests metrics of one video or post in one call. See Insights.
func requestMetrics(metricNames string, get func(metricNames string) (Answer, error)) (values map[string]json.RawMessage, refused *TargetError, err error) {
	res, err := get(metricNames)
	if e, ok := AsTargetError(err); ok {
		if e.Class == PermissionMissing && strings.Contains(strings.ToLower(e.Detail), notEnoughViewers) {
			e.Class = NoInsights
		}
		return nil, e, nil
	}
	if err != nil {
		return nil, nil, err
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
		return nil, nil, ErrFormat
	}
	values = map[string]json.RawMessage{}
	for _, metric := range answer.Data {
		// Meta can return a row for the last day besides the row for the lifetime of the video or post.
		period, known := metric.Period.Value(), values[metric.Name] != nil
		if len(metric.Values) > 0 && !known && (period == nil || *period == "lifetime") {
			values[metric.Name] = metric.Values[0].Value
		}
	}
	return values, nil, nil
}
