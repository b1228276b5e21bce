package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

func TestComparison_showsTheHistoriesOfUpToFiveVideos(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		_, videos := createDashboardData(a, c)
		v := c.newSignedInVisitor(t)
		require.Contains(t, string(v.visit("/compare").requireStatus(http.StatusOK).body), "No video is chosen. Choose up to 5 with the boxes at the left of the list")
		chosen := url.Values{"video": {videos[0].String(), videos[1].String(), videos[0].String()}}
		points := v.visit("/compare?" + chosen.Encode() + "&csv=history").table()
		var links []string
		for _, id := range videos[:2] {
			links = append(links, decode[client.Video](c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK)).AdLink)
		}
		require.Equal(t, []string{"date", links[0], links[0] + " computed", links[1], links[1] + " computed"}, points[0], "the columns must name the videos, and a video that is chosen twice must be shown once")
		for n, id := range videos[:2] {
			history := decode[client.VideoHistory](c.send(http.MethodGet, "/videos/"+id.String()+"/history", nil).requireStatus(http.StatusOK))
			require.Len(t, points, len(history)+1)
			for day, p := range history {
				require.Equal(t, digits(p.Views), points[len(history)-day][2*n+1], "the table must contain the exact numbers of views")
			}
		}
		page := v.visit("/compare?" + chosen.Encode())
		require.Len(t, findElements(page.parsePage(), "figure"), 1)

		third := decode[client.Video](c.send(http.MethodGet, "/videos/"+videos[2].String(), nil).requireStatus(http.StatusOK))
		added := v.visit("/compare?" + chosen.Encode() + "&link=" + url.QueryEscape(third.AdLink)).requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Contains(t, added, "video="+videos[2].String())
		v.visit(added).requireStatus(http.StatusOK)

		six := url.Values{}
		for n := range 6 {
			six.Add("video", c.track(videoURL(900+n)).String())
		}
		for query, reason := range map[string]string{
			six.Encode(): "You chose 6 videos; a comparison has at most 5.", "video=x": "it must be the id of a video", "link=https%3A%2F%2Fyoutu.be%2FdQw4w9WgXcQ": "Your organisation does not track the video",
		} {
			require.Contains(t, string(v.visit("/compare?"+query).requireStatus(http.StatusBadRequest).body), reason)
		}
		v.visit("/compare?video=" + uuid.NewString()).requireStatus(http.StatusNotFound)
		other := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
		require.Equal(t, string(other.visit("/compare?video="+uuid.NewString()).requireStatus(http.StatusNotFound).body), string(other.visit("/compare?video="+videos[0].String()).requireStatus(http.StatusNotFound).body))
	})
}

func TestComparison_marksComputedDays(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	video := c.track(videoURL(1))
	for range 3 {
		a.fetch(factsWithViews(1000))
		a.Clock.Advance(48 * time.Hour)
	}
	marked := 0
	for _, point := range c.videoHistory(video.String(), "") {
		if point.Interpolated != nil {
			marked++
		}
	}
	require.Equal(t, 2, marked)
	page := string(c.newSignedInVisitor(t).visit("/compare?video=" + video.String()).requireStatus(http.StatusOK).body)
	require.Equal(t, marked, strings.Count(page, `data-quality="interpolated"`))
	require.Equal(t, marked, strings.Count(page, "calculated</span>"))
	computed := 0
	for _, row := range c.newSignedInVisitor(t).visit("/compare?video=" + video.String() + "&csv=history").table()[1:] {
		if row[2] == "true" {
			computed++
		}
	}
	require.Equal(t, marked, computed)
}
