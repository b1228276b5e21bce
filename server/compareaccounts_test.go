package server_test

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

func TestComparison_showsTheHistoriesOfUpToFiveAccounts(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, _, accounts := newCallerWithCollectionAccounts(t, a)
		v := c.newSignedInVisitor(t)
		require.Contains(t, mainText(v.visit("/compare?kind=accounts").requireStatus(http.StatusOK)), "No account is chosen. Choose up to 5 with the boxes at the left of the list")
		require.Contains(t, string(v.visit("/account").requireStatus(http.StatusOK).body), `name="account" value="`+accounts["anna"].String()+`" form="compare"`)
		a.Clock.Advance(24 * time.Hour)
		require.Equal(t, http.StatusAccepted, c.send(http.MethodPost, "/refresh/accounts", map[string]string{"link": accounts["anna"].String()}).StatusCode)
		a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return ingest.AccountFacts{Followers: new(int64(17))} })
		c.track("https://www.tiktok.com/@anna/video/7300000000000000099")
		a.fetch(factsWithViews(1000))

		query := "kind=accounts&" + url.Values{"account": {accounts["anna"].String(), accounts["carl"].String(), accounts["anna"].String()}}.Encode()
		page := v.visit("/compare?" + query).requireStatus(http.StatusOK)
		require.Len(t, findElements(page.parseHTML(), "figure"), 1)
		require.Contains(t, mainText(page), "1@annaTikTok · 3 tracked videos17+10")
		require.Contains(t, mainText(page), "1 video newly tracked")
		require.Contains(t, mainText(page), "When a video is tracked, the sum rises by the views that it already has.")
		for metric, want := range map[string]string{"followers": "17", "views": "3000"} {
			points := v.visit("/compare?" + query + "&csv=history&metric=" + metric).table()
			link := "https://www.tiktok.com/@anna " + metric
			require.Equal(t, []string{"date", link, link + " computed"}, points[0][:3])
			require.Len(t, points[0], 5, "an account that is chosen twice must be shown once")
			require.Equal(t, want, points[len(points)-1][1], metric)
		}

		added := v.visit("/compare?" + query + "&link=" + url.QueryEscape("tiktok.com/@dora")).requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Contains(t, added, "account="+accounts["dora"].String())
		v.visit(added).requireStatus(http.StatusOK)
		six := url.Values{}
		for _, handle := range []string{"a1", "a2", "a3", "a4", "a5", "a6"} {
			six.Add("account", c.trackAccountLink("https://www.tiktok.com/@"+handle).String())
		}
		for query, reason := range map[string]string{
			six.Encode(): "You chose 6 accounts; a comparison has at most 5.", "account=x": "it must be the id of an account",
			"kind=accounts&link=https%3A%2F%2Fwww.tiktok.com%2F%40nobody": "Your organisation does not track the account",
		} {
			require.Contains(t, string(v.visit("/compare?"+query).requireStatus(http.StatusBadRequest).body), reason)
		}
		other := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
		require.Equal(t, string(other.visit("/compare?account="+uuid.NewString()).requireStatus(http.StatusNotFound).body), string(other.visit("/compare?account="+accounts["anna"].String()).requireStatus(http.StatusNotFound).body))
	})
}
