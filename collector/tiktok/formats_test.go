package tiktok_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestDisplay_returnsCountsIfAnOptionalMemberHasAnUnexpectedType(t *testing.T) {
	t.Parallel()
	var changed string
	base, _ := recordRequests(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/oauth/token/") {
			serveOtherRequests(w, r)
			return
		}
		_, _ = w.Write([]byte(changed))
	})
	d := newDisplay(t, storetest.New(t, "sqlite"), base, nil, nil)
	for replaced, by := range map[string]string{
		`"Leek soup 🥣"`:         `7`,
		`"Leek soup, slowly"`:   `["Leek soup"]`,
		`"share_url":"https://`: `"share_url":{},"x":"https://`,
		`"duration":58`:         `"duration":{}`,
		`"create_time"`:         `"username":[1],"create_time"`,
	} {
		answer := videoListAnswer(displayVideoJSON(soup, counts))
		changed = strings.Replace(answer, replaced, by, 1)
		require.NotEqual(t, answer, changed, replaced)
		r := fetchBatch(t, d, []queue.Target{videoTarget(soup, "soup.season", true)})[0]
		require.Equal(t, source.OK, r.Class, "%s: %s", by, r.Detail)
		require.Equal(t, []int64{1482337, 90211, 1204}, []int64{*r.Facts.Views, *r.Facts.Likes, *r.Facts.Comments}, by)
	}
}
