package server_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

func TestCollectionPage_publishesTheCollectionOnASharePage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		c.send(http.MethodPatch, "/collections/"+collection.String(), map[string]any{"display_settings": map[string]any{"campaign": "Q3", "metrics": []string{"shares", "views"}}}).requireStatus(http.StatusNoContent)
		v := c.newSignedInVisitor(t)
		page := "/collection/" + collection.String()
		require.Contains(t, string(v.visit(page).body), "only your organisation can see it")
		require.Contains(t, string(v.post(page, "access", "protected", "metric", "views").requireStatus(http.StatusConflict).body), "password")
		v.post(page, "access", "public", "title", "Our launch", "theme", "light", "metric", "views", "metric", "likes", "metric", "shares", "show_history", "true").requireStatus(http.StatusSeeOther)

		changed := decode[client.Collection](c.send(http.MethodGet, "/collections/"+collection.String(), nil).requireStatus(http.StatusOK))
		var settings map[string]any
		require.NoError(t, json.Unmarshal(changed.DisplaySettings, &settings))
		require.Equal(t, map[string]any{"campaign": "Q3", "title": "Our launch", "theme": "light", "metrics": []any{"shares", "views", "likes"}, "show_history": true, "show_accounts": false}, settings)
		require.Contains(t, string(v.visit(page).body), "https://app.example.test/c/"+*changed.Hash)
		require.Contains(t, string((&visitor{app: a, t: t}).visit("/c/"+*changed.Hash).requireStatus(http.StatusOK).body), "Our launch")
		reader := a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t)
		reader.post(page, "access", "private").requireStatus(http.StatusForbidden)
	})
}

func TestCollectionPage_checksOnlyTheChosenPartsOfTheSharePage(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := c.createNamedCollection("Launch")
	v := c.newSignedInVisitor(t)
	for _, settings := range []struct {
		stored            map[string]any
		history, accounts bool
	}{
		{nil, true, false}, // the defaults
		{map[string]any{"show_history": false, "show_accounts": true}, false, true},
		{map[string]any{"show_history": true, "show_accounts": false}, true, false},
	} {
		if settings.stored != nil {
			c.send(http.MethodPatch, "/collections/"+collection.String(), map[string]any{"display_settings": settings.stored}).requireStatus(http.StatusNoContent)
		}
		page := string(v.visit("/collection/" + collection.String()).requireStatus(http.StatusOK).body)
		for name, checked := range map[string]bool{"show_history": settings.history, "show_accounts": settings.accounts} {
			want := `name="` + name + `" value="true">`
			if checked {
				want = `name="` + name + `" value="true" checked>`
			}
			require.Contains(t, page, want, "%v", settings.stored)
		}
	}
}

func TestCollectionPage_showsExpiryAndLastVisitOfItsSharePage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()
		day := a.Clock.Now().UTC().AddDate(0, 0, 2).Format(time.DateOnly)
		v.post(page, "access", "public", "metric", "views", "last_day", day).requireStatus(http.StatusSeeOther)
		before := string(v.visit(page).body)
		require.Contains(t, textOf(v.visit(page).parsePage()), "Open until the end of "+day+" (UTC)")
		require.Contains(t, before, "Not opened yet")
		stored := decode[client.Collection](c.send(http.MethodGet, "/collections/"+collection.String(), nil).requireStatus(http.StatusOK))
		require.Equal(t, day, stored.ShareExpiresAt.UTC().AddDate(0, 0, -1).Format(time.DateOnly))
		require.Equal(t, "00:00:00", stored.ShareExpiresAt.UTC().Format(time.TimeOnly), "the page must be open until the end of the day")

		c.send(http.MethodPatch, "/collections/"+collection.String(), map[string]any{"share_expires_at": day + "T08:30:00Z"}).requireStatus(http.StatusNoContent)
		require.Contains(t, textOf(v.visit(page).parsePage()), "Open until "+day+" 08:30 UTC")
		v.post(page, "access", "public", "metric", "views", "last_day", "").requireStatus(http.StatusSeeOther)
		v.post(page, "access", "public", "metric", "views", "last_day", day).requireStatus(http.StatusSeeOther)

		visitor := &visitor{app: a, t: t}
		opened := func() string {
			return "Last opened <time datetime=\"" + a.Clock.Now().UTC().Format("2006-01-02T15:04:05")
		}
		open := func() {
			visitor.visit("/c/" + *stored.Hash).requireStatus(http.StatusOK)
			a.server.Close() // Close waits for the background write that stores the time of the visit
		}
		open()
		first := opened()
		require.Contains(t, string(v.visit(page).body), first)
		a.Clock.Advance(store.ShareVisitInterval - time.Second)
		open()
		require.Contains(t, string(v.visit(page).body), first, "the time of the last visit must be stored at most once in each ShareVisitInterval")
		a.Clock.Advance(time.Second)
		open()
		require.Contains(t, string(v.visit(page).body), opened())

		a.Clock.Advance(72 * time.Hour)
		require.Contains(t, textOf(v.visit(page).parsePage()), "Closed since the end of "+day+" (UTC)")
		v.post(page, "access", "public", "metric", "views", "last_day", day, "title", "Our launch").requireStatus(http.StatusSeeOther)
		visitor.visit("/c/" + *stored.Hash).requireStatus(http.StatusNotFound)
		require.Contains(t, string(v.post(page, "access", "public", "metric", "views", "last_day", "soon").requireStatus(http.StatusBadRequest).body), "2026-12-31")
		v.post(page, "access", "public", "metric", "views", "last_day", "").requireStatus(http.StatusSeeOther)
		visitor.visit("/c/" + *stored.Hash).requireStatus(http.StatusOK)
	})
}

func TestCollectionPage_shareFormKeepsItsValuesIfItIsRefused(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()
	etag := fieldValue(v.visit(page).requireStatus(http.StatusOK).parsePage(), "etag")
	typed := []string{"etag", etag, "title", "Our launch", "description", "All <videos>", "theme", "dark", "show_accounts", "true"}
	for _, wrong := range []struct {
		fields  []string
		status  int
		message string
	}{
		{[]string{"access", "public", "last_day", "2030-01-01"}, http.StatusBadRequest, "Choose at least one of the numbers"},
		{[]string{"access", "protected", "last_day", "2030-01-01", "metric", "likes"}, http.StatusConflict, "Type a password of at least 8 characters"},
		{[]string{"access", "protected", "last_day", "2030-01-01", "metric", "likes", "password", "secret1"}, http.StatusBadRequest, "\"New password\" must have at least 8 characters, not 7. Type the new password again."},
		{[]string{"access", "public", "last_day", "soon", "metric", "likes"}, http.StatusBadRequest, "\"Last day (UTC)\" must be a date"},
	} {
		refused := v.post(page, append(typed, wrong.fields...)...).requireStatus(wrong.status)
		shown := refused.parseHTML()
		require.Contains(t, alerts(shown), wrong.message)
		require.NotContains(t, string(refused.body), "secret1")
		require.Equal(t, "Our launch", fieldValue(shown, "title"), wrong.message)
		require.Equal(t, "All <videos>", fieldValue(shown, "description"), wrong.message)
		require.Equal(t, wrong.fields[3], fieldValue(shown, "last_day"), wrong.message)
		require.Contains(t, string(refused.body), `<option value="`+wrong.fields[1]+`" selected>`)
		require.Contains(t, string(refused.body), `<option value="dark" selected>`)
		require.Contains(t, string(refused.body), `name="show_accounts" value="true" checked>`)
		require.NotContains(t, string(refused.body), `name="show_history" value="true" checked>`)
		require.Equal(t, len(wrong.fields) > 4, strings.Contains(string(refused.body), `name="metric" value="likes" checked>`), wrong.message)
		require.Contains(t, string(refused.body), "<details open><summary>Make a share page")
	}
	a.Clock.Advance(time.Second)
	c.send(http.MethodPatch, "/collections/"+collection.String(), map[string]any{"name": "Autumn"}).requireStatus(http.StatusNoContent)
	refused := v.post(page, append(typed, "access", "public")...).requireStatus(http.StatusBadRequest)
	require.Equal(t, etag, fieldValue(refused.parseHTML(), "etag"), "the form must not overwrite a change that the visitor has not seen")
}

func TestCollectionPage_saysThatASharePageWithAPastLastDayIsClosed(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()
	notice := func(access, day string) string {
		target := v.post(page, "access", access, "metric", "views", "last_day", day).requireStatus(http.StatusSeeOther).Header.Get("Location")
		return textOf(v.visit(target).requireStatus(http.StatusOK).parsePage())
	}
	today := a.Clock.Now().UTC()
	const closed = "The share page was changed. It is closed, because its last day has passed."
	require.Contains(t, notice("public", today.AddDate(0, 0, -1).Format(time.DateOnly)), closed)
	require.NotContains(t, notice("private", today.AddDate(0, 0, -1).Format(time.DateOnly)), closed)
	require.NotContains(t, notice("public", today.Format(time.DateOnly)), closed)
	require.NotContains(t, notice("public", ""), closed)

	over := func(day string) bool {
		refused := v.post(page, "access", "public", "last_day", day).requireStatus(http.StatusBadRequest).parseHTML()
		return !slices.ContainsFunc(findElements(refused, "span"), func(n *html.Node) bool {
			return attributeValue(n, "class") == "over more" && slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "hidden" })
		})
	}
	require.True(t, over(today.AddDate(0, 0, -1).Format(time.DateOnly)))
	for _, day := range []string{today.Format(time.DateOnly), "", "soon"} {
		require.False(t, over(day), day)
	}
}

func TestCollectionPage_keepsItsViewAfterTheShareForm(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()
	action := ""
	for _, form := range findElements(v.visit(page+"?days=7&metric=views&notice=created").parsePage(), "form") {
		if fieldValue(form, "etag") != "" {
			action = attributeValue(form, "action")
		}
	}
	require.Equal(t, page+"?days=7&metric=views", action)
	refused := v.post(action, "access", "public").requireStatus(http.StatusBadRequest).parseHTML()
	current := ""
	for _, link := range findElements(refused, "a") {
		if attributeValue(link, "aria-current") == "true" {
			current += " " + textOf(link)
		}
	}
	require.Contains(t, current, "7 days")
	saved := page + "?days=7&metric=views&notice=share-saved"
	require.Equal(t, saved, v.post(action, "access", "public", "metric", "views").requireStatus(http.StatusSeeOther).Header.Get("Location"))
	notice := findElements(v.visit(saved).parsePage(), "p")[0]
	require.Contains(t, textOf(notice), "The share page was changed. Its address is http")
	address := findElements(notice, "a")
	require.Len(t, address, 1)
	(&visitor{app: a, t: t}).visit(attributeValue(address[0], "href")).requireStatus(http.StatusOK)
	v.post(action, "access", "private").requireStatus(http.StatusSeeOther)
	require.Empty(t, findElements(findElements(v.visit(saved).parsePage(), "p")[0], "a"), "a private collection has no address")
}

func TestPages_sayThatASharePageStaysPrivate(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v := c.newSignedInVisitor(t)
	for _, page := range []string{"/collection/" + collection.String(), "/collection/report/" + c.createReport(collection).String()} {
		selected := func() string {
			choice := findElements(v.visit(page).parsePage(), "select")
			for _, option := range slices.Concat(findElements(choice[len(choice)-2], "option"), findElements(choice[len(choice)-1], "option")) {
				if strings.Contains(textOf(option), "(") && slices.ContainsFunc(option.Attr, func(a html.Attribute) bool { return a.Key == "selected" }) {
					return attributeValue(option, "value")
				}
			}
			return ""
		}
		require.Equal(t, "protected", selected(), "a new share page must have a link after it was saved")
		target := v.post(page+"?metric=views", "access", "private", "password", "a long secret", "metric", "views").requireStatus(http.StatusSeeOther).Header.Get("Location")
		notice := findElements(v.visit(target).requireStatus(http.StatusOK).parsePage(), "p")[0]
		require.Equal(t, "Saved. Nobody can open the page: it is private. To open it, choose who can open it: Share page", textOf(notice))
		require.Equal(t, page+"?metric=views#share", linkWithText(notice, "Share page"))

		target = v.post(page, "access", "public", "metric", "views").requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Contains(t, textOf(findElements(v.visit(target).parsePage(), "p")[0]), "Its address is http")
		require.Equal(t, "public", selected())
		require.NotContains(t, textOf(v.visit(page+"?notice=share-private").parsePage()), "To open it")
	}
}

func TestCollectionPage_saysWhatVisitorsOfTheSharePageSee(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()
	for want, settings := range map[string]map[string]any{
		"Visitors see the videos, views, likes, comments and a chart of the days.": nil,
		"Visitors see the videos, likes, outlier and the accounts.":                {"metrics": []string{"likes", "outlier_multiplier"}, "show_history": false, "show_accounts": true},
		"Visitors see the videos and outlier.":                                     {"metrics": []string{"outlier_multiplier"}, "show_history": true},
	} {
		c.shareCollection(collection, "public", map[string]any{"display_settings": settings})
		require.Contains(t, textOf(v.visit(page).parsePage()), want)
	}
}

func TestCollectionPage_sharePanelDoesNotContradictItself(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection, _ := createDashboardData(a, c)
	v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()

	refused := string(v.post(page, "access", "protected", "metric", "views").requireStatus(http.StatusConflict).body)
	require.Contains(t, refused, "Type a password of at least 8 characters")
	require.NotContains(t, refused, "request")

	v.post(page, "access", "public", "metric", "shares").requireStatus(http.StatusSeeOther)
	require.Contains(t, string(v.post(page, "access", "public").requireStatus(http.StatusBadRequest).body), "Choose at least one of the numbers")
	stored := decode[client.Collection](c.send(http.MethodGet, "/collections/"+collection.String(), nil).requireStatus(http.StatusOK))
	require.Contains(t, string(stored.DisplaySettings), `"shares"`)

	c.shareCollection(collection, "public", map[string]any{"share_expires_at": a.Clock.Now()})
	closed := textOf(v.visit(page).parsePage())
	require.Contains(t, closed, "The page is closed: nobody can open it.")
	require.NotContains(t, closed, "Everyone who has the address")
}

func TestCollectionPage_shareFormDoesNotOverwriteLaterChanges(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()
		share := c.shareCollection(collection, "public", nil)
		shown := fieldValue(v.visit(page).requireStatus(http.StatusOK).parsePage(), "etag")
		require.NotEmpty(t, shown)
		a.Clock.Advance(time.Second)
		c.shareCollection(collection, "private", nil)

		refused := v.post(page, "etag", shown, "access", "public", "metric", "views", "title", "Our launch").requireStatus(http.StatusPreconditionFailed)
		require.Contains(t, textOf(refused.parseHTML()), "The collection was changed meanwhile. Nothing was saved. The form has your values: to replace the present settings with them, save again.")
		require.Equal(t, "Our launch", fieldValue(refused.parseHTML(), "title"))
		(&visitor{app: a, t: t}).visit(share).requireStatus(http.StatusNotFound)
		require.NotContains(t, string(v.visit(page).body), "Our launch")

		shown = fieldValue(refused.parseHTML(), "etag")
		v.post(page, "etag", shown, "access", "public", "metric", "views", "title", "Our launch").requireStatus(http.StatusSeeOther)
		require.Contains(t, string((&visitor{app: a, t: t}).visit(share).requireStatus(http.StatusOK).body), "Our launch")
	})
}

func TestCollectionPage_shareFormKeepsOtherSettingsAndLineBreaks(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, _ := createDashboardData(a, c)
		const other = `{"id":9007199254740993,"ratio":1.50,"text":"a<b>&c","none":null}`
		description := "\nFirst line\n\nSecond <line>"
		c.send(http.MethodPatch, "/collections/"+collection.String(), map[string]any{"display_settings": map[string]any{"campaign": json.RawMessage(other), "description": description, "metrics": []string{"views"}}}).requireStatus(http.StatusNoContent)
		stored := func() map[string]json.RawMessage {
			var settings map[string]json.RawMessage
			got := decode[client.Collection](c.send(http.MethodGet, "/collections/"+collection.String(), nil).requireStatus(http.StatusOK))
			require.NoError(t, json.Unmarshal(got.DisplaySettings, &settings))
			return settings
		}
		before := stored()
		v, page := c.newSignedInVisitor(t), "/collection/"+collection.String()
		shown := fieldValue(v.visit(page).parsePage(), "description")
		require.Equal(t, description, shown)
		v.post(page, "access", "public", "metric", "views", "description", strings.ReplaceAll(shown, "\n", "\r\n")).requireStatus(http.StatusSeeOther)
		after := stored()
		require.Equal(t, string(before["campaign"]), string(after["campaign"]))
		var text string
		require.NoError(t, json.Unmarshal(after["description"], &text))
		require.Equal(t, description, text)
	})
}

func TestCollectionPage_warnsThatItsSharePageLeavesOutSubcollections(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	parent := c.createNamedCollection("Campaigns")
	child := c.createNamedCollection("Launch", parent)
	v, page := c.newSignedInVisitor(t), "/collection/"+parent.String()
	require.NotContains(t, string(v.visit(page).body), "Visitors will see", "without videos, the share page leaves out none")

	c.addVideos(child, c.track(videoURL(1)), c.track(videoURL(2)))
	const none = "Visitors will see 0 videos: the 2 videos are in subcollections, which share pages leave out."
	for _, query := range []string{"", "?subtree=true"} {
		require.Equal(t, 1, strings.Count(string(v.visit(page+query).body), none), "the form must warn before the page is shared")
	}
	c.shareCollection(parent, "public", nil)
	for _, query := range []string{"", "?subtree=true"} {
		require.Equal(t, 2, strings.Count(string(v.visit(page+query).body), none), "the form and the address of the page must have the warning")
	}
	c.addVideos(parent, c.track(videoURL(3)))
	require.NotContains(t, string(v.visit(page).body), "Visitors will see")
	require.Contains(t, string(v.visit(page+"?subtree=true").body), "Visitors will see 1 video of 3. The others are in subcollections, which share pages leave out.")
	c.addVideos(parent, c.track(videoURL(1)), c.track(videoURL(2)))
	require.NotContains(t, string(v.visit(page+"?subtree=true").body), "Visitors will see")
}
