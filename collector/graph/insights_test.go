package graph_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
)

func TestInsights_requestsMetricsAloneOnlyIfOneIsUnknown(t *testing.T) {
	t.Parallel()
	row := func(metric string) string { return `{"data":[{"name":"` + metric + `","values":[{"value":7}]}]}` }
	unknown := &graph.TargetError{Class: graph.MetricUnknown, Detail: "unknown metric"}
	forbidden := &graph.TargetError{Class: graph.PermissionMissing, Detail: "permission missing"}
	fewViewers := &graph.TargetError{Class: graph.PermissionMissing, Detail: "(#10) Not enough viewers"}
	type answers = map[string]any // maps the requested metrics to Meta's answer or error
	for name, tt := range map[string]struct {
		answers answers
		values  []string // names of the metrics with a value
		class   source.Class
		detail  string
	}{
		"all metrics known":         {answers{"a,b": row("a")}, []string{"a"}, "", ""},
		"one metric unknown":        {answers{"a,b": unknown, "a": unknown, "b": row("b")}, []string{"b"}, graph.MetricUnknown, "metric a: unknown metric"},
		"both known if alone":       {answers{"a,b": unknown, "a": row("a"), "b": row("b")}, []string{"a", "b"}, "", ""},
		"permission missing":        {answers{"a,b": forbidden}, nil, graph.PermissionMissing, "permission missing"},
		"one metric forbidden":      {answers{"a,b": unknown, "a": forbidden, "b": unknown}, nil, graph.PermissionMissing, "metric a: permission missing"},
		"not enough viewers":        {answers{"a,b": fewViewers}, nil, graph.NoInsights, "(#10) Not enough viewers"},
		"few viewers of one metric": {answers{"a,b": unknown, "a": row("a"), "b": fewViewers}, []string{"a"}, graph.NoInsights, "metric b: (#10) Not enough viewers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, refused, err := graph.Insights([]string{"a", "b"}, func(metrics string) (graph.Answer, error) {
				switch answer := tt.answers[metrics].(type) {
				case string:
					return graph.Answer{Body: []byte(answer)}, nil
				case *graph.TargetError:
					copied := *answer
					return graph.Answer{}, &copied
				}
				return graph.Answer{}, errors.New("unexpected request for " + metrics)
			})
			require.NoError(t, err)
			require.Len(t, values, len(tt.values))
			for _, metric := range tt.values {
				require.JSONEq(t, "7", string(values[metric]))
			}
			require.Equal(t, tt.class != "", refused != nil)
			if refused != nil {
				require.Equal(t, tt.class, refused.Class)
				require.Equal(t, tt.detail, refused.Detail)
			}
		})
	}
}

func TestInsights_usesOnlyValuesForTheLifetime(t *testing.T) {
	t.Parallel()
	values, refused, err := graph.Insights([]string{"a"}, func(string) (graph.Answer, error) {
		return graph.Answer{Body: []byte(`{"data":[{"name":"a","period":"day","values":[{"value":1}]},{"name":"a","period":"lifetime","values":[{"value":7}]}]}`)}, nil
	})
	require.NoError(t, err)
	require.Nil(t, refused)
	require.Equal(t, map[string]json.RawMessage{"a": json.RawMessage("7")}, values)
}
