package server_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

func TestSearch_findsVideosAccountsAndCollections(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c, other := a.newCaller(t, store.TierPremium), a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		video := decode[client.Video](c.send(http.MethodGet, "/videos/"+videos[0].String(), nil).requireStatus(http.StatusOK))
		v := c.newSignedInVisitor(t)
		search := func(v *visitor, text string) string {
			return string(v.sendRequest(http.MethodGet, "/search?q="+url.QueryEscape(text), nil, "HX-Request", "true").requireStatus(http.StatusOK).body)
		}
		require.Contains(t, search(v, "sPRin"), "/collection/"+collection.String())
		require.Contains(t, search(v, "@northwind.studio"), "/account/tiktok/"+video.LinkedAccountID.String())
		for _, text := range []string{video.AdLink, strings.TrimPrefix(video.AdLink, "https://"), strings.TrimPrefix(video.AdLink, "https://www.")} {
			require.Contains(t, search(v, text), "/video/tiktok/"+videos[0].String(), text)
			rows := v.visit("/video?q=" + url.QueryEscape(text)).rows()
			require.Len(t, rows, 2, text)
			require.Equal(t, "/video/tiktok/"+videos[0].String(), rows[1].link, text)
		}
		require.Contains(t, search(v, "unknown campaign"), "Nothing was found for “<bdi>unknown campaign</bdi>”")
		require.Contains(t, search(v, `"><script>`), "Nothing was found")
		require.Contains(t, search(v, "https://no.such.platform/x"), "Nothing was found", "a search for a link of an unknown platform must find nothing")
		require.NotContains(t, search(v, "sPRin"), "<!doctype html>", "the response to the search dialog must contain only the results and not a whole page")
		require.Contains(t, string(v.visit("/search?q=spring").requireStatus(http.StatusOK).body), "<!doctype html>")
		require.NotContains(t, search(other.newSignedInVisitor(t), "spring"), collection.String())
	})
}

func TestPages_findAccountsByTheBeginningOfTheirUsernames(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		createDashboardData(a, c)
		v := c.newSignedInVisitor(t)
		const account, hint = `">@northwind.studio</a>`, "An account is found by the beginning of its username."
		for path, want := range map[string]string{
			"/account?include_linked=true&username=@NorthW":          account,
			"/account?include_linked=true&username=northwind.studio": account,
			"/account?include_linked=true&username=north*":           account,
			"/account?include_linked=true&username=wind":             hint,
			"/account?include_linked=true&username=n%25":             hint,
			"/search?q=north":                           `<span dir="auto">@northwind.studio</span>`,
			"/search?q=studio":                          "Nothing was found",
			"/video?username=northwind&platform=tiktok": `Do you mean the account <a href="?platform=tiktok&amp;username=northwind.studio"><bdi>@northwind.studio</bdi></a> (TikTok)?`,
			"/video?username=wind":                      "This filter needs the whole username of an account.",
			"/account?include_linked=true&username=northwind&csv=accounts":   "northwind.studio",
			"/account?include_linked=true&username=northwind.studio2&page=1": hint,
		} {
			require.Contains(t, string(v.visit(path).requireStatus(http.StatusOK).body), want, path)
		}
		for _, path := range []string{"/account?platform=facebook", "/video?q=unknown", "/video?username=northwind.studio"} {
			page := string(v.visit(path).requireStatus(http.StatusOK).body)
			require.NotContains(t, page, hint, path)
			require.NotContains(t, page, "Do you mean", path)
		}
		v.visit("/account?username=@").requireStatus(http.StatusBadRequest)
		require.Empty(t, decode[client.AccountPage](c.send(http.MethodGet, "/accounts?include_linked=true&paginated=true&username=north*", nil).requireStatus(http.StatusOK)).Data,
			"the beginning of a username is not a filter of the API")
	})
}

func TestSettingsPage_storesTheChosenColourScheme(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	v := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	session := *v.cookie
	require.Contains(t, string(v.visit("/settings").body), `<html lang="en">`)
	v.post("/settings/theme", "theme", "dark").requireStatus(http.StatusSeeOther)
	theme := v.cookie
	for value, want := range map[string]string{theme.Value: `<html lang="en" data-theme="dark">`, "x": `<html lang="en">`} {
		cookies := session.Name + "=" + session.Value + "; " + theme.Name + "=" + value
		require.Contains(t, string(a.send(t, http.MethodGet, "/settings", nil, "Cookie", cookies).requireStatus(http.StatusOK).body), want)
	}
	v.cookie = &session
	v.post("/settings/theme", "theme", "pink").requireStatus(http.StatusBadRequest)
}
