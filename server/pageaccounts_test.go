package server_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// accountSection returns the text of the section "Accounts" of a page, and the text of each row of its table. If the page does not have
// this section, the results are empty.
func (a response) accountSection() (text string, rows []string) {
	a.t.Helper()
	for _, section := range findElements(a.parsePage(), "section") {
		if heading := findElements(section, "h2"); len(heading) == 0 || textOf(heading[0]) != "Accounts" {
			continue
		}
		for _, row := range findElements(section, "tr")[1:] { // the first row is the heading of the table
			rows = append(rows, textOf(row))
		}
		return textOf(section), rows
	}
	return "", nil
}

func TestPages_sayHowManyAccountsOfACollectionTheyList(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, videos := createDashboardData(a, c)
	share := c.shareCollection(collection, "public", map[string]any{"display_settings": map[string]any{"show_accounts": true}})
	page := "/collection/" + collection.String()
	v, visitor := c.newSignedInVisitor(t), &visitor{app: a, t: t}
	// requireAccounts checks the share page and the page of the collection. total is the number of accounts as the pages write it, or "" if
	// the pages list all accounts.
	requireAccounts := func(listed int, total string) {
		t.Helper()
		for _, opened := range []struct {
			page       response
			start, end string // text before and after total
		}{
			{visitor.visit(share), "The first 50 of ", " accounts."},
			{visitor.visit(share + "?embed=1"), "The first 50 of ", " accounts."},
			{v.visit(page), "The table has the first 50 of ", " accounts, ordered by views."},
			{v.visit(page + "?subtree=true"), "The table has the first 50 of ", " accounts, ordered by views."},
		} {
			text, rows := opened.page.requireStatus(http.StatusOK).accountSection()
			require.Len(t, rows, listed)
			if total == "" {
				require.NotContains(t, text, "he first")
			} else {
				require.Contains(t, text, opened.start+total+opened.end)
			}
		}
	}
	requireAccounts(0, "")
	links := accountURLs(1, 1000)
	track := func(some []string) {
		c.trackAccounts(http.StatusOK, some, "label_ids", []uuid.UUID{collection})
	}
	track(links[:1])
	requireAccounts(1, "")
	track(links[1:49])
	requireAccounts(49, "")
	track(links[49:50])
	requireAccounts(50, "")
	track(links[50:51])
	requireAccounts(50, "51")
	track(links[51:500])
	track(links[500:])
	requireAccounts(50, "1,000")

	// An account with views comes first, although it was added last.
	c.addAccounts(collection, *c.video(videos[0].String()).LinkedAccountID)
	requireAccounts(50, "1,001")
	for _, opened := range []response{visitor.visit(share), v.visit(page)} {
		_, rows := opened.accountSection()
		require.Contains(t, rows[0], "@northwind.studio")
	}

	c.stopAccounts(http.StatusOK, links[:500]...)
	requireAccounts(50, "501")
	c.stopAccounts(http.StatusOK, links[500:951]...)
	requireAccounts(50, "")
	c.stopAccounts(http.StatusOK, links[951:]...)
	requireAccounts(1, "")

	// A tier that hides numbers also hides how many accounts there are.
	track(links[:60])
	requireAccounts(50, "61")
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(time.Second)
	requireAccounts(1, "")
}

func TestAccounts_addsTheChosenAccountsToACollection(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	first, second := c.trackAccountLink("https://www.tiktok.com/@ann").String(), c.trackAccountLink("https://www.tiktok.com/@bob").String()
	require.NotContains(t, mainText(v.visit("/account")), "Add the chosen accounts", "there is no collection")
	collection := c.createNamedCollection("Spring").String()
	require.Contains(t, mainText(v.visit("/account")), "Add the chosen accounts")
	const add = "/account/chosen/collect"
	target := v.post(add, "account", first, "account", second, "collection", collection).requireStatus(http.StatusSeeOther).Header.Get("Location")
	shown := v.visit(target).requireStatus(http.StatusOK)
	require.Contains(t, mainText(shown), "The accounts are in the collection.")
	_, rows := shown.accountSection()
	require.Len(t, rows, 2)

	require.Contains(t, mainText(v.post(add, "collection", collection).requireStatus(http.StatusBadRequest)), "Choose at least one account")
	require.Contains(t, mainText(v.post(add, "account", first, "collection", "").requireStatus(http.StatusBadRequest)), "Choose a collection.")
	v.post(add, "account", "x", "collection", collection).requireStatus(http.StatusBadRequest)
	otherVisitor := a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
	otherVisitor.post(add, "account", first, "collection", collection).requireStatus(http.StatusNotFound)
	readOnly := a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t)
	require.NotContains(t, mainText(readOnly.visit("/account")), "Add the chosen accounts")
	readOnly.post(add, "account", first, "collection", collection).requireStatus(http.StatusForbidden)
}

func TestAccountPage_countsTheVideosThatJoinedOrLeftItsSums(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	views := int64(1000)
	fetchAll := func() {
		a.fetch(func(queue.Target) ingest.VideoFacts {
			return ingest.VideoFacts{Views: new(views), Username: new("northwind.studio"), AccountID: new("6890000000000000000")}
		})
		views += 100
	}
	nextDay := func() {
		a.Clock.Advance(24 * time.Hour)
		fetchAll()
	}
	first, second := c.track(videoURL(1)), c.track(videoURL(2))
	fetchAll()
	nextDay()
	page := "/account/tiktok/" + c.video(first.String()).LinkedAccountID.String()
	// tileOfViews returns the text of the tile of views, and whether the change has a colour.
	tileOfViews := func(query string) (text string, coloured bool) {
		for _, link := range findElements(v.visit(page+query).requireStatus(http.StatusOK).parsePage(), "a") {
			if attributeValue(link, "class") != "tile" || !strings.Contains(textOf(link), "Views") {
				continue
			}
			for _, span := range findElements(link, "span") {
				coloured = coloured || strings.HasPrefix(attributeValue(span, "class"), "trend ")
			}
			text = strings.Join(strings.Fields(textOf(link)), " ")
		}
		return text, coloured
	}
	text, coloured := tileOfViews("")
	require.Contains(t, text, "+200 since")
	compare := "/compare?account=" + strings.TrimPrefix(page, "/account/tiktok/")
	require.Contains(t, mainText(v.visit(compare)), "Views of each account", "without known followers, the chart must begin with the views")
	require.Contains(t, mainText(v.visit(compare+"&metric=followers")), "Followers of each account")
	require.NotContains(t, text, "newly tracked")
	require.True(t, coloured)

	a.Clock.Advance(24 * time.Hour)
	third := c.track(videoURL(3))
	fetchAll()
	text, coloured = tileOfViews("")
	require.Contains(t, text, "1 video newly tracked")
	require.NotContains(t, text, "no longer tracked")
	require.Contains(t, text, "change of the total: +", "the change must not look like gained views")
	require.False(t, coloured, "the change contains the earlier views of the third video")

	c.stopVideos(http.StatusOK, first.String(), second.String())
	nextDay()
	text, coloured = tileOfViews("")
	require.Contains(t, text, "1 video newly tracked, 2 no longer tracked")
	require.False(t, coloured, "the views of the videos did not fall")
	body := string(v.visit(page).body)
	require.NotContains(t, body, "corrected")
	require.NotContains(t, body, "lower than before")
	text, coloured = tileOfViews("?start=" + a.daysAgo(2) + "&end=" + a.daysAgo(1))
	require.Contains(t, text, "with 1 video fewer")
	require.False(t, coloured)

	// After the last tracked video of the account was stopped, the views of the account are unknown.
	a.Clock.Advance(24 * time.Hour)
	c.stopVideos(http.StatusOK, third.String())
	text, _ = tileOfViews("")
	require.Equal(t, "Views – no video is tracked", text, "the change of an unknown number must not be shown")
	require.Contains(t, textOf(v.visit(page+"?metric=views").parsePage()), "Views are unknown on 1 of the days with numbers: no video of the account was tracked.")
	require.Contains(t, mainText(v.visit(compare)), "0 tracked videos–––– 2 videos no longer tracked")
	text, _ = tileOfViews("?start=" + a.daysAgo(3) + "&end=" + a.daysAgo(1))
	require.Contains(t, text, "−700 in 3 days", "the numbers of days before the stop stay")
}

func TestAccountPage_listsTheVideosThatGainedMost(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	videos := make([]uuid.UUID, 8)
	for n := range videos {
		videos[n] = c.track(videoURL(n))
	}
	views := func(factor int64) func(queue.Target) ingest.VideoFacts {
		return func(target queue.Target) ingest.VideoFacts {
			n := int64(target.ExternalID[len(target.ExternalID)-1] - '0')
			return ingest.VideoFacts{Username: new("someone"), Title: new("Clip " + target.ExternalID), Views: new(1000 + factor*n)}
		}
	}
	a.fetch(views(0))
	v := c.newSignedInVisitor(t)
	accounts := decode[[]client.Account](c.send(http.MethodGet, "/accounts?include_linked=true&username=someone", nil).requireStatus(http.StatusOK))
	require.Len(t, accounts, 1)
	path := "/account/tiktok/" + accounts[0].AccountID.String()
	rows := func(query string) (out []string) {
		t.Helper()
		for _, section := range findElements(v.visit(path+query).requireStatus(http.StatusOK).parsePage(), "section") {
			if heading := findElements(section, "h2"); len(heading) > 0 && textOf(heading[0]) == "Gained most" {
				for _, row := range findElements(section, "tr") {
					out = append(out, strings.Join(strings.Fields(textOf(row)), " "))
				}
				if len(out) == 0 {
					return []string{strings.Join(strings.Fields(textOf(section)), " ")}
				}
				return out[1:]
			}
		}
		return nil
	}
	require.Equal(t, []string{"Gained mostNo gain is known in this period. A gain needs the numbers of two days since the video was added."}, rows(""), "an unknown gain is not 0")
	a.Clock.Advance(24 * time.Hour)
	a.fetch(views(10))
	got := rows("?limit=1&order_by=latest_views")
	require.Len(t, got, 5)
	for n, want := range []string{"70", "60", "50", "40", "30"} {
		require.Contains(t, got[n], "Clip ")
		require.Contains(t, got[n], "+"+want+" since ")
		require.True(t, strings.HasSuffix(got[n], "1,0"+want), got[n])
	}
	c.stopVideos(http.StatusOK, videos[7].String())
	require.Contains(t, rows("")[0], "+60 since ", "stopped videos are left out")
	require.Equal(t, []string{"Gained mostNo gain is known in this period. A gain needs the numbers of two days since the video was added."}, rows("?start="+a.daysAgo(9)+"&end="+a.daysAgo(3)), "the list must follow the period")
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(2 * time.Second)
	require.Empty(t, rows(""), "the order of the videos would reveal which gained more")
}
