package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// One organisation adds 500 links of a platform that is asked for one at a time and takes a second to answer, which is
// work for half a minute; another's single link has numbers within five seconds all the same, where a vendor alone
// is asked. Where Instagram's Graph API is asked before it, two calls of its own come on top: for its account's list, and for the
// length, which the API does not tell.
func TestFairness_aBurstDelaysNobodyElse(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, engine := range storetest.Engines {
		t.Run(engine+", a vendor alone", func(t *testing.T) {
			t.Parallel()
			burstDelaysNobodyElse(t, 5*time.Second, engine, "REELTALLY_INSTAGRAM_ACCESS_TOKEN", "REELTALLY_INSTAGRAM_ACCOUNT_ID", "REELTALLY_INSTAGRAM_APP_SECRET")
		})
		t.Run(engine+", the Graph API before it", func(t *testing.T) {
			t.Parallel()
			burstDelaysNobodyElse(t, 7*time.Second, engine)
		})
	}
}

func burstDelaysNobodyElse(t *testing.T, within time.Duration, engine string, without ...string) {
	t.Helper()
	s := startStack(t, engine, without...)
	s.fault(t, "instagram", "slow", 1)
	single := &stack{box: s.box, env: s.env, base: s.base}
	single.token = single.newOrganisation(t)
	videos := s.videos(t, link.Instagram, 501, 3)
	for n := range 10 {
		a, b := s.bulk(t, urls(videos[50*n:50*n+50]))
		require.Equal(t, http.StatusOK, a.status, string(a.body))
		require.True(t, b.TrackingEnqueued)
	}
	v := videos[500]
	require.Equal(t, http.StatusOK, call(t, http.MethodPost, s.base+"/videos", single.token, map[string]any{"link": v.url}).status)
	await(t, within, 500*time.Millisecond, func() string {
		if len(single.history(t, v)) == 1 {
			return ""
		}
		return "no number yet: " + tail(s.collector.stderr.String())
	})
	waiting := 0
	for _, v := range s.list(t) {
		if v.Views == nil {
			waiting++
		}
	}
	require.Greater(t, waiting, 100, "the burst was over before, so that this says nothing")
}
