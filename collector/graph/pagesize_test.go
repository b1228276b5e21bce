package graph_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/graph"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
)

func TestClient_halvesPagesThatHaveTooMuchData(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	p.respond(http.StatusInternalServerError, `{"error":{"code":1,"message":"Please reduce the amount of data you're asking for, then retry"}}`, nil)
	require.ErrorIs(t, p.requireFailure(t, nil), graph.ErrTooMuchData)
	p.respond(http.StatusInternalServerError, `{"error":{"code":1,"message":"An unknown error occurred"}}`, nil)
	require.NotErrorIs(t, p.requireFailure(t, nil), graph.ErrTooMuchData)

	tooMuch := &source.Failure{Class: source.Temporary, Cause: graph.ErrTooMuchData}
	sizes := func(list string, largest int) (requested []int, err error) {
		_, size, err := p.GetPage(list, 50, func(size int) (graph.Answer, error) {
			requested = append(requested, size)
			if size > largest {
				return graph.Answer{}, tooMuch
			}
			return graph.Answer{}, nil
		})
		require.Equal(t, requested[len(requested)-1], size)
		return requested, err
	}
	for _, tt := range []struct {
		list      string
		largest   int
		requested []int
		ok        bool
	}{
		{"mira", 50, []int{50}, true},
		{"mira", 20, []int{50, 25, 12}, true},
		{"mira", 20, []int{12}, true}, // the size is cached
		{"rails", 50, []int{50}, true},
		{"rails", 1, []int{50, 25, 12, 6}, false},
	} {
		requested, err := sizes(tt.list, tt.largest)
		require.Equal(t, tt.requested, requested)
		require.Equal(t, tt.ok, err == nil)
	}
	p.setClock(sourcetest.Now.Add(24 * time.Hour))
	requested, err := sizes("mira", 50)
	require.NoError(t, err)
	require.Equal(t, []int{50}, requested, "a full page must be requested again after a day")

	calls := 0
	_, _, err = p.GetPage("other", 50, func(int) (graph.Answer, error) { calls++; return graph.Answer{}, errors.New("another error") })
	require.Error(t, err)
	require.Equal(t, 1, calls)
}

func TestClient_recognisesErrorsWithStatus200(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	for body, class := range map[string]source.Class{
		`{"error":{"message":"Application request limit reached","code":4}}`: source.RateLimited,
		`{"error":{"message":"The session has expired","code":190}}`:         source.AuthFailed,
		`{"error":{"message":"Another error","code":2500}}`:                  source.BadRequest,
	} {
		p.respond(http.StatusOK, body, nil)
		require.Equal(t, class, p.requireFailure(t, nil).Class, body)
	}
	p.respond(http.StatusOK, `{"error":{"message":"alias","code":803}}`, nil)
	_, err := p.Get(t.Context(), nil, "x", graph.ErrorClasses{{Main: 803}: source.Missing})
	e, ok := graph.AsTargetError(err)
	require.True(t, ok)
	require.Equal(t, source.Missing, e.Class)
	for _, body := range []string{`{"id":"1","error":null}`, `{"id":"1","error":{}}`, `{"id":"1","error":"none"}`} {
		p.respond(http.StatusOK, body, nil)
		_, err := p.Get(t.Context(), nil, "x", nil)
		require.NoError(t, err, body)
	}
}
