package server_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"github.com/reeltally/reeltally/store"
)

// undoForm returns the action and the fields of the form with the button Undo. The action is "" if the page has no such form.
func undoForm(page *html.Node) (action string, fields []string) {
	for _, form := range findElements(page, "form") {
		if fieldValue(form, "added_at") == "" {
			continue
		}
		for _, input := range findElements(form, "input") {
			fields = append(fields, attributeValue(input, "name"), attributeValue(input, "value"))
		}
		return attributeValue(form, "action"), fields
	}
	return "", nil
}

func TestUndo_takesOutExactlyTheVideosThatWereAdded(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection := c.createNamedCollection("Spring")
		before, kept, again, gone := c.track(videoURL(1)), c.track(videoURL(2)), c.track(videoURL(3)), c.track(videoURL(4))
		c.addVideos(collection, before)
		a.Clock.Advance(time.Minute)
		members := func() (ids []uuid.UUID) {
			for _, id := range []uuid.UUID{before, kept, again, gone} {
				if slices.Contains(c.video(id.String()).LabelIds, collection) {
					ids = append(ids, id)
				}
			}
			return ids
		}
		member := c.newSignedInVisitor(t)
		add := func() response {
			return member.post("/video/chosen/collect", "back", "/video?q=a", "collection", collection.String(), "video", before.String(), "video", kept.String(), "video", again.String(), "video", gone.String()).requireStatus(http.StatusOK)
		}
		action, fields := undoForm(add().parsePage())
		require.NotContains(t, fields, before.String(), "the form must not name a video that was added before")
		undone := member.post(action, fields...).requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Equal(t, "/video?notice=undone-videos&q=a", undone)
		require.Contains(t, mainText(member.visit(undone)), "The addition was undone.")
		require.Equal(t, []uuid.UUID{before}, members())

		action, fields = undoForm(add().parsePage())
		a.Clock.Advance(time.Minute)
		c.changeMembers(http.MethodDelete, collection, "videos", []uuid.UUID{again, gone}).requireStatus(http.StatusOK)
		c.addVideos(collection, again)
		undone = member.post(action, fields...).requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Contains(t, mainText(member.visit(undone)), "The addition was undone, except for videos")
		require.Equal(t, []uuid.UUID{before, again}, members(), "a video that was added anew must stay")
		undone = member.post(action, fields...).requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Contains(t, mainText(member.visit(undone)), "Nothing was changed: what was added")
		require.Equal(t, []uuid.UUID{before, again}, members())

		// Undo removes only the membership of the video itself. If the account of the video is also in the collection, the video stays in the collection.
		c.addAccounts(collection, c.trackAccountLink("https://www.tiktok.com/@northwind.studio"))
		require.Len(t, members(), 4)
		action, fields = undoForm(add().parsePage())
		require.NotEmpty(t, action)
		member.post(action, fields...).requireStatus(http.StatusSeeOther)
		require.Len(t, members(), 4)

		readOnly, otherVisitor := a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t), a.newCaller(t, store.TierPremium).newSignedInVisitor(t)
		c.changeMembers(http.MethodDelete, collection, "videos", []uuid.UUID{kept}).requireStatus(http.StatusOK)
		action, fields = undoForm(add().parsePage())
		readOnly.post(action, fields...).requireStatus(http.StatusForbidden)
		otherVisitor.post(action, fields...).requireStatus(http.StatusSeeOther)
		at := slices.Index(fields, "added_at") + 1
		times, err := a.Org(c.org.ID).TimesOfAdding(t.Context(), collection, "video", []uuid.UUID{kept})
		require.NoError(t, err)
		require.NotEmpty(t, times, "only a member of the organisation with the scope write can undo")
		for _, back := range []string{"https://example.com/", "//example.com/", "///example.com/", "video", ":"} {
			member.post(action, "kind", "video", "added_at", fields[at], "video", kept.String(), "back", back).requireStatus(http.StatusBadRequest)
		}
	})
}

func TestUndo_isBelowTheNoticeOfThePage(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		collection, videos := createDashboardData(a, c)
		other := c.createNamedCollection("Autumn")
		video := c.video(videos[0].String())
		member, readOnly := c.newSignedInVisitor(t), a.newToken(t, c.org, store.ScopeRead).newSignedInVisitor(t)
		account := video.LinkedAccountID.String()
		for page, text := range map[string]string{"/video/tiktok/" + videos[0].String(): "A video that is also in the collection", "/account/tiktok/" + account: "Videos that were added themselves"} {
			add := func() response {
				return member.visit(member.post(page+"/collect", "collection", other.String()).requireStatus(http.StatusSeeOther).Header.Get("Location"))
			}
			added := add()
			require.Contains(t, mainText(added), "Added to the collection.")
			undo, fields := undoForm(added.parsePage())
			require.Contains(t, mainText(member.visit(member.post(undo, fields...).requireStatus(http.StatusSeeOther).Header.Get("Location"))), "The addition was undone. "+text)
			add()
			again := add()
			require.Contains(t, mainText(again), "it was added to the collection before")
			action, _ := undoForm(again.parsePage())
			require.Empty(t, action)
		}
		a.Clock.Advance(time.Minute)
		c.changeMembers(http.MethodDelete, other, "videos", []uuid.UUID{videos[0]}).requireStatus(http.StatusOK)
		c.changeMembers(http.MethodDelete, other, "accounts", []uuid.UUID{*video.LinkedAccountID}).requireStatus(http.StatusOK)

		page := "/video/tiktok/" + videos[0].String()
		added := member.post(page+"/collect", "collection", other.String()).requireStatus(http.StatusSeeOther).Header.Get("Location")
		action, fields := undoForm(member.visit(added).parsePage())
		hidden, _ := undoForm(readOnly.visit(added).parsePage())
		require.Empty(t, hidden)
		require.Equal(t, page+"?notice=undone-videos", member.post(action, fields...).requireStatus(http.StatusSeeOther).Header.Get("Location"))
		require.NotContains(t, c.video(videos[0].String()).LabelIds, other)
		require.Contains(t, c.video(videos[0].String()).LabelIds, collection)

		added = member.post("/account/chosen/collect", "account", account, "collection", other.String()).requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Contains(t, c.video(videos[1].String()).LabelIds, other)
		shown := member.visit(added)
		require.Contains(t, mainText(shown), "The accounts are in the collection.")
		action, fields = undoForm(shown.parsePage())
		undone := member.post(action, fields...).requireStatus(http.StatusSeeOther).Header.Get("Location")
		require.Contains(t, mainText(member.visit(undone)), "The addition was undone. Videos that were added themselves")
		require.NotContains(t, c.video(videos[1].String()).LabelIds, other)

		// The parameter "notice" of a link can have any text. The page must show the button Undo only for the valid notice of an addition.
		valid := "added.account." + other.String() + ".1." + account
		action, _ = undoForm(member.visit(page + "?notice=" + valid).parsePage())
		require.Equal(t, "/collection/"+other.String()+"/undo", action)
		for _, notice := range []string{
			"added.video", "added.video.x.1.y", "added.video." + other.String() + ".x." + account, "x.account." + other.String() + ".1." + account,
			"deleted.video." + other.String() + ".1." + account, "added.video." + other.String() + "/delete?.1." + account, "added.video.%2e%2e/logout#.1." + account,
			"added.video." + other.String() + ".1.x", valid + strings.Repeat("."+account, 50),
		} {
			shown := member.visit(page + "?notice=" + url.QueryEscape(notice)).requireStatus(http.StatusOK)
			action, _ := undoForm(shown.parsePage())
			require.Empty(t, action, notice)
		}
		action, _ = undoForm((&visitor{app: a, t: t}).visit("/errors?notice=" + valid).parsePage())
		require.Empty(t, action, "a visitor who has not signed in cannot undo anything")
		for _, path := range []string{"/account/chosen/collect", "/collection/" + other.String() + "/undo"} {
			form := []string{"collection", other.String(), "kind", "account", "added_at", "1", "back", "/account"}
			require.Contains(t, mainText(member.post(path, form...).requireStatus(http.StatusBadRequest)), "Choose at least one account")
			for range 51 {
				form = append(form, "account", uuid.NewString())
			}
			require.Contains(t, mainText(member.post(path, form...).requireStatus(http.StatusBadRequest)), "You chose 51 accounts; at most 50 can be changed at once.")
		}
	})
}
