package facebook_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/facebook"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/collector/sourcetest"
	"github.com/reeltally/reeltally/store/link"
)

func TestSource_returnsVideoIfInsightsAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refusal string
		node    string
		calls   int
	}{
		"not enough viewers":                             {graphError(10, 0, "(#10) Not enough viewers for the media to show insights"), reel, 3},
		"missing permission, code 10":                    {graphError(10, 0, "(#10) This endpoint requires the 'read_insights' permission"), reel, 3},
		"missing permission, code 200":                   {graphError(200, 0, "(#200) Requires read_insights permission"), reel, 3},
		"missing permission, code 299":                   {graphError(299, 0, "(#299) Permissions error"), reel, 3},
		"insights are not supported":                     {graphError(200, 2069030, "This endpoint is not supported in the new Pages experience"), reel, 3},
		"too few viewers and no public views":            {graphError(10, 0, "(#10) Not enough viewers"), strings.Replace(reel, `"views":1482337,`, "", 1), 3},
		"the owner of the token has no role on the page": {graphError(210, 0, "(#210) A page access token is required to request this resource."), reel, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newGraphTest(t, []string{mira}, map[string]string{videoRequest: tt.node, insightsRequest: tt.refusal})
			target := videoTarget(pancakes)
			target.NeedDetails = false
			r, err := w.fetch(t, target)
			require.NoError(t, err)
			require.Equal(t, source.OK, r.Class, r.Detail)
			require.Nil(t, r.Facts.Views, "the public views must not be used, because they are counted differently")
			require.Nil(t, r.Facts.Shares)
			require.Equal(t, int64(90211), *r.Facts.Likes)
			require.Equal(t, int64(1204), *r.Facts.Comments)
			require.Contains(t, r.Detail, "no insights: HTTP 400, code ")
			require.Len(t, *w.requests, tt.calls, "metrics must not be requested one by one")
		})
	}
	w := newGraphTest(t, []string{mira}, map[string]string{videoRequest: reel, insightsRequest: graphError(190, 463, "Error validating access token: it has expired")})
	_, err := w.fetch(t, videoTarget(pancakes))
	var f *source.Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, source.AuthFailed, f.Class, "an error about an expired token must be a failure of the source")
}

func TestSource_returnsNoViewsIfVideoHasTooFewViewersForInsights(t *testing.T) {
	t.Parallel()
	w := newGraphTest(t, []string{mira}, map[string]string{videoRequest: reel, insightsRequest: graphError(100, 0, "(#100) The value must be a valid insights metric"),
		pancakes + "/video_insights fb_reels_total_plays": graphError(10, 0, "(#10) Not enough viewers")})
	r, err := w.fetch(t, videoTarget(pancakes))
	require.NoError(t, err)
	require.Nil(t, r.Facts.Views)
	require.Nil(t, r.Facts.Shares)
}

func TestSource_logsRefusedInsightsOncePerDay(t *testing.T) {
	t.Parallel()
	var logs bytes.Buffer
	now := sourcetest.Now
	s := startSandboxWith(t, func(o *facebook.Options, w *sandbox.World) {
		useSystemUserToken(o, w)
		o.Logger, o.Now = slog.New(slog.NewTextHandler(&logs, nil)), func() time.Time { return now }
	})
	ids := s.world.Uploads(link.Facebook, s.own, sourcetest.Now)
	fetch := func(id string) *source.Facts {
		r, err := s.fetch(t, videoTarget(id))
		require.NoError(t, err)
		require.Equal(t, source.OK, r.Class, r.Detail)
		require.Equal(t, r.Facts.Shares == nil, r.Facts.Views == nil)
		return r.Facts
	}
	require.NotNil(t, fetch(ids[0]).Shares)
	require.Empty(t, logs.String())

	sourcetest.SendControlRequest(t, s.base, "meta", `{"refuse_insights":true}`)
	for _, id := range ids[:3] {
		require.Nil(t, fetch(id).Shares)
	}
	require.Equal(t, 1, strings.Count(logs.String(), "level=WARN"), "all videos of a page together must cause only one warning")
	require.Contains(t, logs.String(), "read_insights")
	require.Contains(t, logs.String(), "page="+s.own)
	for _, secret := range []string{sandbox.FacebookUserToken, sandbox.MetaAppSecret, "sandbox-facebook-page", "appsecret_proof"} {
		require.NotContains(t, logs.String(), secret)
	}
	now = now.Add(24 * time.Hour)
	fetch(ids[0])
	require.Equal(t, 2, strings.Count(logs.String(), "level=WARN"))

	sourcetest.SendControlRequest(t, s.base, "meta", `{"refuse_insights":false}`)
	require.NotNil(t, fetch(ids[0]).Shares)
}
