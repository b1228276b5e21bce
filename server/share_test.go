package server_test

import (
	"bytes"
	"fmt"
	"image/png"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
)

const sharePassword = "correct horse battery"

// shareCollection changes the access of a collection, and returns the path of its share page.
// otherMembers contains further changes to the collection.
func (c *caller) shareCollection(collection uuid.UUID, access string, otherMembers map[string]any) string {
	c.t.Helper()
	changes := map[string]any{"access": access}
	maps.Copy(changes, otherMembers)
	c.send(http.MethodPatch, "/collections/"+collection.String(), changes).requireStatus(http.StatusNoContent)
	hash := decode[client.Collection](c.send(http.MethodGet, "/collections/"+collection.String(), nil).requireStatus(http.StatusOK)).Hash
	require.NotNil(c.t, hash)
	return "/c/" + *hash
}

func TestSharePage_showsTheNumbersOfAPublicCollection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		settings := map[string]any{"title": "Our <b>launch</b>", "description": "In numbers", "metrics": []string{"likes", "views"}, "theme": "dark",
			"sort": map[string]any{"by": "latest_likes", "direction": "asc"}}
		path := c.shareCollection(collection, "public", map[string]any{"display_settings": settings})
		visitor := &visitor{app: a, t: t}
		got := visitor.visit(path).requireStatus(http.StatusOK)
		page := string(got.body)
		require.Nil(t, visitor.cookie)
		require.Equal(t, "noindex, nofollow", got.Header.Get("X-Robots-Tag"))
		require.Contains(t, got.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		require.Contains(t, page, "Our &lt;b&gt;launch&lt;/b&gt;")
		require.Contains(t, page, `<html lang="en" data-theme="dark">`)
		require.Contains(t, page, `property="og:image" content="https://app.example.test`+path+`/card.png"`)

		statistics := decode[client.CollectionStatistics](c.send(http.MethodGet, "/collections/"+collection.String()+"/statistics", nil).requireStatus(http.StatusOK))
		members := decode[client.CollectionVideoPage](c.send(http.MethodGet, "/collections/"+collection.String()+"/videos?order_by=latest_likes&order_direction=asc", nil).requireStatus(http.StatusOK))
		onPage := numbersIn(got.parsePage())
		require.Equal(t, []string{digits(statistics.Videos), digits(statistics.Likes), digits(statistics.Views), digits(statistics.ViewsGained)}, onPage[:4])
		var want []string
		for _, v := range members.Data {
			want = append(want, digits(v.LatestLikes), digits(v.LatestViews))
			require.Contains(t, page, v.AdLink)
		}
		require.Equal(t, want, onPage[len(onPage)-len(want):], "the display settings must determine the order of the columns and of the rows")
		for _, hidden := range append([]string{c.org.ID.String(), "Northwind</", collection.String(), "Comments"}, toStrings(videos)...) {
			require.NotContains(t, page, hidden, "a share page must show only the chosen metrics, and must not reveal ids or the name of the organisation")
		}

		embedded := visitor.visit(path + "?embed=1").requireStatus(http.StatusOK)
		require.Contains(t, embedded.Header.Get("Content-Security-Policy"), "frame-ancestors *")
		card := visitor.visit(path + "/card.png").requireStatus(http.StatusOK)
		picture, err := png.Decode(bytes.NewReader(card.body))
		require.NoError(t, err)
		require.Equal(t, 1200, picture.Bounds().Dx())
		require.Contains(t, string(visitor.visit(path+"?page=0").requireStatus(http.StatusBadRequest).body), "it must be 1 or more")
		require.NotContains(t, string(visitor.visit(path+"?page=0").body), "Northwind</", "an error on a share page must not name the organisation")
	})
}

// toStrings converts UUIDs to strings.
func toStrings(all []uuid.UUID) []string {
	out := make([]string, len(all))
	for n, id := range all {
		out[n] = id.String()
	}
	return out
}

func TestSharePage_privateCollectionsAndUnknownHashesGetTheSameResponse(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		path := c.shareCollection(collection, "public", nil)
		visitor := &visitor{app: a, t: t}
		visitor.visit(path).requireStatus(http.StatusOK)
		c.shareCollection(collection, "private", nil)
		visitor.visit(path).requireStatus(http.StatusNotFound) // meanwhile, the server ends the request that made the collection private
		for _, suffix := range []string{"", "?embed=1", "/card.png"} {
			a.Guard.Statements()
			private := visitor.visit(path + suffix).requireStatus(http.StatusNotFound)
			sent := a.Guard.Statements()
			unknown := visitor.visit("/c/aaaaaaaaaaaaaa" + suffix).requireStatus(http.StatusNotFound)
			require.Equal(t, string(unknown.body), string(private.body))
			require.Equal(t, fmt.Sprint(withoutRequestID(unknown.Header)), fmt.Sprint(withoutRequestID(private.Header)))
			require.Len(t, a.Guard.Statements(), len(sent), "both requests must run the same SQL statements, and the first one ran %q", sent)
		}
		require.Equal(t, string(visitor.post("/c/aaaaaaaaaaaaaa", "password", "x").requireStatus(http.StatusNotFound).body), string(visitor.post(path, "password", "x").requireStatus(http.StatusNotFound).body))
		require.Equal(t, path, c.shareCollection(collection, "public", nil), "a collection that becomes public again must have the same share page address as before")
		visitor.visit(path).requireStatus(http.StatusOK)
		c.send(http.MethodDelete, "/collections/"+collection.String(), nil).requireStatus(http.StatusOK)
		visitor.visit(path).requireStatus(http.StatusNotFound)
	})
}

// withoutRequestID returns a copy of the headers without X-Request-Id and Date. These two can differ between responses that are otherwise
// equal.
func withoutRequestID(h http.Header) http.Header {
	h = h.Clone()
	h.Del("X-Request-Id")
	h.Del("Date")
	return h
}

func TestSharePage_asksForThePasswordOfAProtectedCollection(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		path := c.shareCollection(collection, "protected", map[string]any{"password": sharePassword, "display_settings": map[string]any{"title": "Secret launch"}})
		visitor := &visitor{app: a, t: t}
		locked := visitor.visit(path).requireStatus(http.StatusOK)
		require.Empty(t, numbersIn(locked.parsePage()))
		require.NotContains(t, string(locked.body), "Secret launch")
		require.Contains(t, textOf(locked.parsePage()), "This page is protected\nType the password that you were given with the address of the page.")
		require.Contains(t, string(locked.body), "<title>This page is protected</title>")
		visitor.visit(path + "/card.png").requireStatus(http.StatusNotFound)
		require.Contains(t, string(visitor.post(path, "password", "wrong password").requireStatus(http.StatusForbidden).body), `role="alert"`)
		require.Nil(t, visitor.cookie)

		require.Equal(t, path, visitor.post(path, "password", sharePassword).requireStatus(http.StatusSeeOther).Header.Get("Location"))
		require.True(t, visitor.cookie.HttpOnly)
		require.True(t, visitor.cookie.Secure)
		require.Equal(t, path, visitor.cookie.Path)
		require.Contains(t, string(visitor.visit(path).requireStatus(http.StatusOK).body), "Secret launch")
		require.Contains(t, visitor.visit(path+"?embed=1").Header.Get("Content-Security-Policy"), "frame-ancestors 'none'", "another web site must not show a protected page in a frame")

		other, _ := createDashboardData(a, c)
		require.NotContains(t, string(visitor.visit(c.shareCollection(other, "protected", map[string]any{"password": sharePassword})).requireStatus(http.StatusOK).body), "<table", "the cookie of one share page must not open the share page of another collection")
		kept := *visitor.cookie
		for _, forged := range []string{"", ".", kept.Value + "x", "9" + kept.Value, strings.Split(kept.Value, ".")[0] + "."} {
			visitor.cookie = &http.Cookie{Name: kept.Name, Value: forged}
			require.NotContains(t, string(visitor.visit(path).body), "Secret launch", forged)
		}
		visitor.cookie = &kept
		a.Clock.Advance(web.ShareSessionLife)
		require.NotContains(t, string(visitor.visit(path).body), "Secret launch", "after ShareSessionLife, the cookie of a share page must no longer open the page")
		visitor.post(path, "password", sharePassword).requireStatus(http.StatusSeeOther)
		c.shareCollection(collection, "protected", map[string]any{"password": "another password"})
		require.NotContains(t, string(visitor.visit(path).body), "Secret launch", "after a change of the password, the cookie must no longer open the share page")
		require.NotContains(t, a.log.String(), sharePassword)
	})
}

func TestSharePage_limitsWrongPasswordsOfConcurrentVisitors(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = server.NewMemoryRateStore() })
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	path := c.shareCollection(collection, "protected", map[string]any{"password": sharePassword})
	statuses := a.postConcurrently(t, 64, path, func(n int) url.Values {
		return url.Values{"password": {fmt.Sprintf("wrong password %d", n)}}
	})
	require.Equal(t, map[int]int{http.StatusForbidden: 10, http.StatusTooManyRequests: 54}, statuses)
	refused := (&visitor{app: a, t: t}).post(path, "password", sharePassword).requireStatus(http.StatusTooManyRequests)
	require.NotEmpty(t, refused.Header.Get("Retry-After"))
	require.Contains(t, string(refused.body), "too many wrong passwords")
}

func TestSharePage_oneAddressCannotUseUpTheAttemptsOfOtherVisitors(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) {
		o.RateStore, o.TrustedProxies = server.NewMemoryRateStore(), []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	c := a.newCaller(t, store.TierPremium)
	path := c.shareCollection(c.createNamedCollection("Launch"), "protected", map[string]any{"password": sharePassword})
	attacker := &visitor{app: a, t: t, headers: []string{"X-Forwarded-For", "203.0.113.66"}}
	for n := range 115 {
		attacker.post(path, "password", fmt.Sprintf("wrong password %d", n))
	}
	for range 12 { // correct passwords do not count towards the limit of ten wrong ones
		(&visitor{app: a, t: t, headers: []string{"X-Forwarded-For", "203.0.113.7"}}).post(path, "password", sharePassword).requireStatus(http.StatusSeeOther)
	}
}

func TestSharePage_hidesNumbersIfTheTierOfTheOrganisationIsLow(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		path := c.shareCollection(collection, "public", nil)
		require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
		a.Clock.Advance(time.Second)
		got := (&visitor{app: a, t: t}).visit(path).requireStatus(http.StatusOK)
		for _, number := range numbersIn(got.parsePage()) {
			require.Empty(t, number)
		}
		require.Contains(t, string(got.body), "The numbers of this page are hidden")
	})
}

func TestSharePage_visitsDoNotCountAgainstTheRateLimitsOfTheOrganisation(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = server.NewMemoryRateStore() })
	c := a.newCaller(t, store.TierPremium)
	path := c.shareCollection(c.createNamedCollection("Launch"), "public", nil)
	visitor := &visitor{app: a, t: t}
	for range 120 {
		visitor.visit(path).requireStatus(http.StatusOK)
	}
	refused := visitor.visit(path).requireStatus(http.StatusTooManyRequests)
	require.Contains(t, string(refused.body), "more than 120 requests for share pages in a minute")
	c.send(http.MethodGet, "/videos", nil).requireStatus(http.StatusOK)
}

func TestSharePage_closesAtItsExpiryTime(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		closes := a.Clock.Now().UTC().Add(90 * time.Minute)
		path := c.shareCollection(collection, "public", map[string]any{"share_expires_at": closes})
		visitor := &visitor{app: a, t: t}
		a.Clock.Advance(89 * time.Minute)
		visitor.visit(path).requireStatus(http.StatusOK)
		a.Clock.Advance(time.Minute)
		for _, suffix := range []string{"", "?embed=1", "/card.png"} {
			closed := visitor.visit(path + suffix).requireStatus(http.StatusNotFound)
			unknown := visitor.visit("/c/aaaaaaaaaaaaaa" + suffix).requireStatus(http.StatusNotFound)
			require.Equal(t, string(unknown.body), string(closed.body))
		}

		about := "/collections/" + collection.String()
		got := decode[client.Collection](c.send(http.MethodGet, about, nil).requireStatus(http.StatusOK))
		require.Equal(t, closes, got.ShareExpiresAt.UTC())
		c.send(http.MethodPatch, about, map[string]any{"name": "Launch"}).requireStatus(http.StatusNoContent)
		visitor.visit(path).requireStatus(http.StatusNotFound)
		c.send(http.MethodPatch, about, map[string]any{"share_expires_at": nil}).requireStatus(http.StatusNoContent)
		visitor.visit(path).requireStatus(http.StatusOK)
		c.send(http.MethodPatch, about, map[string]any{"share_expires_at": a.Clock.Now()}).requireStatus(http.StatusNoContent)
		visitor.visit(path).requireStatus(http.StatusNotFound)
	})
}

func TestSharePage_showsTheLast30DaysIfThePeriodIsInvalid(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	path := c.shareCollection(collection, "public", nil)
	visitor := &visitor{app: a, t: t}
	usual := visitor.visit(path)
	today := a.Clock.Now().UTC()
	for want, query := range map[string]string{
		"is after the last day": "?start=" + today.Format(time.DateOnly) + "&end=" + today.AddDate(0, 0, -7).Format(time.DateOnly),
		"after today":           "?start=" + today.Format(time.DateOnly) + "&end=" + today.AddDate(0, 0, 3).Format(time.DateOnly),
	} {
		got := visitor.visit(path + query).requireStatus(http.StatusBadRequest)
		page := string(got.body)
		require.Contains(t, page, want)
		typed, err := url.ParseQuery(query[1:])
		require.NoError(t, err)
		for name := range typed {
			require.Contains(t, page, `name="`+name+`" value="`+typed.Get(name)+`"`, "the form must keep the dates")
		}
		require.Contains(t, page, `max="`+today.Format(time.DateOnly)+`"`)
		require.NotContains(t, page, `href="/"`)
		require.Contains(t, page, "These are the numbers of the last 30 days.")
		parsed, err := html.Parse(bytes.NewReader(got.body))
		require.NoError(t, err)
		require.Equal(t, numbersIn(usual.parsePage()), numbersIn(parsed))
	}
}

func TestSharePage_errorPagesDoNotLinkToTheDashboard(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	path := c.shareCollection(collection, "public", nil)
	visitor := &visitor{app: a, t: t}
	unknown := string(visitor.visit("/c/aaaaaaaaaaaaaa").requireStatus(http.StatusNotFound).body)
	require.Contains(t, unknown, "<h1>This page is not shared</h1>")
	require.Contains(t, unknown, "ask the sender of the link for a new one.")
	require.NotContains(t, unknown, "organisation")
	require.NotContains(t, unknown, "<a ")
	invalid := string(visitor.visit(path + "?page=0").requireStatus(http.StatusBadRequest).body)
	require.Contains(t, invalid, `<a href="https://app.example.test`+path+`">`)
	require.NotContains(t, invalid, "Overview")
}

func TestSharePage_showsMinutesUntilNextPasswordAttempt(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t), func(o *server.Options) { o.RateStore = server.NewMemoryRateStore() })
	c := a.newCaller(t, store.TierPremium)
	path := c.shareCollection(c.createNamedCollection("Launch"), "protected", map[string]any{"password": sharePassword})
	visitor := &visitor{app: a, t: t}
	for range 10 {
		visitor.post(path, "password", "wrong password").requireStatus(http.StatusForbidden)
	}
	require.Regexp(t, `Try again in (9|10) minutes\.`, string(visitor.post(path, "password", sharePassword).requireStatus(http.StatusTooManyRequests).body))
}

func TestSharePage_explainsTheColumnsOfChanges(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	path := c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"metrics": []string{"views", "increase_1d", "increase_7d"}}})
	text := textOf((&visitor{app: a, t: t}).visit(path).parsePage())
	require.Contains(t, text, "Change 1 d, Change 7 d: growth of the views in percent. The period ends with the last fetch of the video. The label says how many days the period has.")
}

// metaContents returns the contents of the meta elements of a page, by name or property.
func (a response) metaContents() map[string]string {
	a.t.Helper()
	out := map[string]string{}
	for _, meta := range findElements(a.parsePage(), "meta") {
		out[attributeValue(meta, "name")+attributeValue(meta, "property")] = attributeValue(meta, "content")
	}
	return out
}

// tileTexts returns the texts of the tiles of a page, without line breaks.
func (a response) tileTexts() []string {
	a.t.Helper()
	var out []string
	for n := range a.parsePage().Descendants() {
		if n.Type == html.ElementNode && attributeValue(n, "class") == "tile" {
			out = append(out, strings.Join(strings.Fields(textOf(n)), " "))
		}
	}
	return out
}

func TestSharePage_tileAndSummaryCountStoppedVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, videos := createDashboardData(a, c)
	path := c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"metrics": []string{"views"}}})
	visitor := &visitor{app: a, t: t}
	require.Equal(t, "Videos 3", visitor.visit(path).tileTexts()[0])
	c.stopVideos(http.StatusOK, videos[2].String())
	for _, suffix := range []string{"", "?embed=1"} {
		got := visitor.visit(path + suffix)
		tiles, meta := got.tileTexts(), got.metaContents()
		require.Equal(t, "Videos 3 1 no longer tracked", tiles[0])
		require.Equal(t, "Views 6,999", tiles[1])
		require.Contains(t, textOf(got.parsePage()), "1–2 of 2")
		require.Equal(t, "3 videos · 6,999 views · 999 gained views since "+a.daysAgo(4), meta["og:description"])
		require.Equal(t, meta["og:description"], meta["description"])
	}
}

func TestSharePage_tilesSayForHowManyVideosACountIsUnknown(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	path := c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"metrics": []string{"likes", "shares", "bookmarks", "views", "engagement"}}})
	statistics := decode[client.CollectionStatistics](c.send(http.MethodGet, "/collections/"+collection.String()+"/statistics", nil).requireStatus(http.StatusOK))
	require.Equal(t, []string{"1", "1", "3", "3", "0"}, []string{digits(statistics.UnknownLikes), digits(statistics.UnknownComments), digits(statistics.UnknownShares), digits(statistics.UnknownBookmarks), digits(statistics.UnknownViews)})
	visitor := &visitor{app: a, t: t}
	for _, suffix := range []string{"", "?embed=1"} {
		require.Equal(t, []string{"Videos 3", "Likes 36 unknown for 1 video", "Shares – unknown for 3 videos", "Bookmarks – unknown for 3 videos", "Views 6,999",
			"Gained views 999 since " + a.daysAgo(4) + " (5 of 30 days) +16.7 % of the views at the start", "Engagements 36 unknown for 1 video"}, visitor.visit(path+suffix).tileTexts())
	}
	c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"metrics": []string{"comments"}}})
	require.Equal(t, []string{"Videos 3", "Comments 0 unknown for 1 video"}, visitor.visit(path).tileTexts())
}

func TestCollectionPages_showNoGainOfVideosThatWereFetchedOnce(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Launch")
		for n := range 2 {
			c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(n), "collection_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK)
		}
		a.fetch(factsWithViews(5))
		visitor := c.newSignedInVisitor(t)
		requireTiles := func(gained string) {
			t.Helper()
			tiles := visitor.visit("/collection/" + collection.String()).tileTexts()
			require.Contains(t, tiles[0], gained)
			require.Equal(t, strings.Contains(gained, "–"), strings.Contains(textOf(visitor.visit("/collection/"+collection.String()).parsePage()), "can also count from such a day"))
			require.Equal(t, "Engagements – unknown for 2 videos", tiles[2])
			require.Contains(t, visitor.visit("/collection/report/" + c.createReport(collection).String()).tileTexts()[0], gained)
			require.Contains(t, visitor.visit(c.shareCollection(collection, "public", nil)).tileTexts()[2], gained)
		}
		for range 3 {
			requireTiles("Gained views – unknown for 2 videos")
			a.Clock.Advance(24 * time.Hour) // without a fetch, the days have the views of the last fetch
		}
		statistics := decode[client.CollectionStatistics](c.send(http.MethodGet, "/collections/"+collection.String()+"/statistics", nil).requireStatus(http.StatusOK))
		require.Nil(t, statistics.ViewsGained)
		require.Nil(t, statistics.ViewsAtStart)
		require.Empty(t, statistics.Best)
		require.EqualValues(t, 2, *statistics.UnknownGains)
		require.Equal(t, 2, strings.Count(string(visitor.visit("/collection/"+collection.String()).body), `class="spark"`), "only the tiles of views and videos must have a line")

		a.fetch(factsWithViews(5))
		requireTiles("Gained views 0 since " + a.daysAgo(2) + " (3 of 3")
		c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(7), "collection_ids": []uuid.UUID{collection}}).requireStatus(http.StatusOK)
		a.fetch(factsWithViews(5))
		require.Contains(t, visitor.visit("/collection/" + collection.String()).tileTexts()[0], "days), unknown for 1 video")
	})
}

func TestSharePage_statesNoNumberOfVideosIfNumbersAreHidden(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	path := c.shareCollection(collection, "public", nil)
	described := c.shareCollection(c.createNamedCollection("Launch"), "public", map[string]any{"display_settings": map[string]any{"title": "Spring", "description": "In numbers"}})
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(time.Second)
	visitor := &visitor{app: a, t: t}
	for _, suffix := range []string{"", "?embed=1"} {
		got := visitor.visit(path + suffix)
		meta := got.metaContents()
		require.NotContains(t, meta, "description")
		require.NotContains(t, meta, "og:description")
		require.Equal(t, "Spring", meta["og:title"])
		text := textOf(got.parsePage())
		require.Contains(t, text, "The numbers of this page are hidden")
		require.NotContains(t, text, "1 of 1", "the list of a masked page has one video, which is not the number of videos")
		require.Equal(t, []string{"Videos –", "Views –", "Gained views –", "Likes –", "Comments –"}, got.tileTexts())
		require.Equal(t, "In numbers", visitor.visit(described + suffix).metaContents()["og:description"])
	}
	require.Equal(t, visitor.visit(described+"/card.png").body, visitor.visit(path+"/card.png").body, "the picture of a masked page must show only the title")
}

func TestSharePage_statesNoNumberOfVideosOfALargeCollectionIfNumbersAreHidden(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierBasic)
	collection := c.createNamedCollection("Launch")
	createVideosWithManyLabels(t, c, 2000, 0)
	a.Exec(t, `INSERT INTO collection_videos (organisation_id, collection_id, video_id, added_at) SELECT organisation_id, ?, id, 0 FROM videos WHERE organisation_id = ?`, collection, c.org.ID)
	path := c.shareCollection(collection, "public", nil) + "?start=" + a.daysAgo(85) + "&end=" + a.daysAgo(0)
	visitor := &visitor{app: a, t: t}
	require.NotContains(t, textOf(visitor.visit(path).parsePage()), "2000")
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierPremium))
	a.Clock.Advance(time.Second)
	got := visitor.visit(path)
	require.Contains(t, textOf(got.parsePage()), "The collection has 2000 videos, and the period has 86 days")
	require.Equal(t, "2,000 videos", got.metaContents()["og:description"])
}

func TestSharePage_ignoresThePeriodOfTheQueryIfTheChartIsOff(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	earlier := "start=" + a.daysAgo(9) + "&end=" + a.daysAgo(3)
	visitor := &visitor{app: a, t: t}
	path := c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"show_history": true}})
	require.NotEqual(t, visitor.visit(path).tileTexts(), visitor.visit(path+"?"+earlier).tileTexts(), "if the chart is on, visitors can choose the period")

	c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"show_history": false}})
	tiles, card := visitor.visit(path).tileTexts(), visitor.visit(path+"/card.png").body
	require.NotEmpty(t, tiles)
	for _, period := range []string{earlier, "days=7", "days=1000", "start=yesterday"} {
		for _, embed := range []string{"", "&embed=1"} {
			require.Equal(t, tiles, visitor.visit(path+"?"+period+embed).requireStatus(http.StatusOK).tileTexts(), period)
		}
		require.Equal(t, card, visitor.visit(path+"/card.png?"+period).requireStatus(http.StatusOK).body, period)
	}
}

func TestSharePage_textsAreTrueForStoppedVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, videos := createDashboardData(a, c)
	path := c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"show_accounts": true}})
	visitor := &visitor{app: a, t: t}
	text := textOf(visitor.visit(path).parsePage())
	require.Contains(t, text, "Newest numbers in the list of videos: ")
	require.Less(t, strings.Index(text, "Newest numbers in the list"), strings.Index(text, "Views"), "visitors must see how old the numbers are before they read them")
	c.stopVideos(http.StatusOK, toStrings(videos)...)
	got := visitor.visit(path)
	require.Equal(t, "Videos 3 3 no longer tracked", got.tileTexts()[0])
	text = textOf(got.parsePage())
	require.Contains(t, text, "No videos are tracked here now.")
	require.NotContains(t, text, "Newest numbers")
}
