package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// unknownID is a valid UUID that is not the id of any video, account or collection.
const unknownID = "01938c36-9999-7999-8999-999999999999"

// Requirements in docs/coverage.md: 3-01, 3-03, 3-04, 4.3-01, 4.3-02, 4.3-05, 4.3-06, 4.3-07, 7-01
func TestTrackVideo_returnsTheSameVideoForEveryFormOfTheLink(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		first := c.send(http.MethodPost, "/videos", map[string]any{"link": tiktokLink}).requireStatus(http.StatusOK)
		result := decode[client.TrackVideoResult](first)
		require.Nil(t, result.Error)
		require.Equal(t, "https://app.example.test/video/tiktok/"+result.VideoID.String(), result.DirectURL)

		t.Run("a second request for the video", func(t *testing.T) {
			again := c.send(http.MethodPost, "/videos", map[string]any{
				"link": "m.tiktok.com/@Northwind.Studio/video/7338812345678901234?_r=1&utm_source=copy"}).requireStatus(http.StatusOK)
			second := decode[client.TrackVideoResult](again)
			require.Equal(t, result.VideoID, second.VideoID)
			require.Equal(t, result.DirectURL, second.DirectURL)
			require.Contains(t, *second.Error, "already")
		})
		t.Run("null and empty collections", func(t *testing.T) {
			c.send(http.MethodPost, "/videos", `{"link":"`+videoURL(1)+`","collection_ids":null,"collection_names":[]}`).requireStatus(http.StatusOK)
			c.send(http.MethodPost, "/videos", `{"link":"`+videoURL(2)+`","collection_ids":[],"collection_names":null}`).requireStatus(http.StatusOK)
		})
		t.Run("a Content-Type with parameters and upper case letters", func(t *testing.T) {
			for _, contentType := range []string{"application/json; charset=utf-8", "Application/JSON", "application/json;charset=ISO-8859-1"} {
				c.send(http.MethodPost, "/videos", map[string]any{"link": tiktokLink}, "Content-Type", contentType).requireStatus(http.StatusOK)
			}
		})
	})
}

// Requirements in docs/coverage.md: 3-02, 4.3-03, 4.3-04
func TestTrackVideo_addsTheVideoToTheGivenCollections(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		c.send(http.MethodPost, "/videos", map[string]any{"link": tiktokLink, "collection_names": []string{"Launch", "Été 🌞"}}).requireStatus(http.StatusOK)
		v := decode[client.Video](c.send(http.MethodGet, "/videos/"+c.track(tiktokLink).String(), nil).requireStatus(http.StatusOK))
		require.Equal(t, []string{"Launch", "Été 🌞"}, v.LabelNames)

		c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(1), "collection_ids": v.LabelIds, "collection_names": []string{"Launch"}}).requireStatus(http.StatusOK)
		page := c.listVideos("collections=" + v.LabelIds[0].String())
		require.Len(t, page.Data, 2, "if a root collection has the name in collection_names, the video must be added to this collection")

		t.Run("status 404 for an unknown collection", func(t *testing.T) {
			p := c.send(http.MethodPost, "/videos", map[string]any{"link": videoURL(2), "collection_ids": []string{v.LabelIds[0].String(), unknownID}}).
				requireProblem(http.StatusNotFound, server.CodeNotFound)
			require.Contains(t, p.Detail, unknownID)
			require.Len(t, p.Errors, 1)
			require.Equal(t, "/collection_ids/1", *p.Errors[0].Pointer)
			require.Len(t, c.listVideos("").Data, 2)
		})
	})
}

// Requirements in docs/coverage.md: 4.3-02, 4.3-03
func TestTrackVideo_refusesLinksThatAreNotVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for raw, code := range map[string]server.Code{
		"not a link at all":                  server.CodeInvalidURL,
		"https://example.com/clip":           server.CodeUnsupportedPlatform,
		"https://www.tiktok.com/about":       server.CodeUnsupportedLink,
		"https://www.tiktok.com/@northwind":  server.CodeWrongKind,
		"https://www.youtube.com/@northwind": server.CodeWrongKind,
	} {
		p := c.send(http.MethodPost, "/videos", map[string]any{"link": raw}).requireProblem(http.StatusBadRequest, code)
		require.Equal(t, "/link", *p.Errors[0].Pointer, raw)
		require.Equal(t, string(code), p.Errors[0].Code)
	}
	for name, body := range map[string]any{
		"a body without a link":               map[string]any{},
		"null as the link":                    map[string]any{"link": nil},
		"a number as the link":                map[string]any{"link": 7},
		"an empty link":                       map[string]any{"link": ""},
		"a link that is too long":             map[string]any{"link": "https://www.tiktok.com/" + strings.Repeat("a", 2048)},
		"an invalid collection id":            map[string]any{"link": tiktokLink, "collection_ids": []string{"{" + unknownID + "}"}},
		"a collection id with urn:uuid:":      map[string]any{"link": tiktokLink, "collection_ids": []string{"urn:uuid:" + unknownID}},
		"a blank collection name":             map[string]any{"link": tiktokLink, "collection_names": []string{"  "}},
		"a collection name of 101 characters": map[string]any{"link": tiktokLink, "collection_names": []string{strings.Repeat("é", 101)}},
		"a member in upper case":              map[string]any{"Link": tiktokLink},
	} {
		require.NotEmpty(t, c.send(http.MethodPost, "/videos", body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest).Errors, name)
	}
	p := c.send(http.MethodPost, "/videos", `{"collection_ids":["x"],"collection_names":[""],"colour":1}`).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	require.Len(t, p.Errors, 4, "the response must list every fault, but its detail is: %s", p.Detail)

	var many strings.Builder
	for n := range 9_000 {
		fmt.Fprintf(&many, `"m%d":0,`, n)
	}
	p = c.send(http.MethodPost, "/videos", "{"+many.String()+`"`+strings.Repeat("x", 500)+`":0}`).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	require.Len(t, p.Errors, 1000, "the response must list at most 1000 faults")
	require.Empty(t, c.listVideos("").Data)
}

func TestTrackVideo_resolvesShortLinks(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		const short = "https://vm.tiktok.com/ZMabcdef1/"
		c := a.newCaller(t, store.TierPremium)
		t.Run("status 503 if the platform fails temporarily", func(t *testing.T) {
			for _, target := range []string{"", respond429} {
				a.platforms.redirect(short, target)
				c.send(http.MethodPost, "/videos", map[string]any{"link": short}).requireProblem(http.StatusServiceUnavailable, server.CodeLinkUnresolved)
			}
		})
		t.Run("status 404 for a dead short link", func(t *testing.T) {
			c.send(http.MethodPost, "/videos", map[string]any{"link": "https://vm.tiktok.com/ZMdead0001/"}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		})
		t.Run("status 400 for a short link of an account", func(t *testing.T) {
			a.platforms.redirect("https://vm.tiktok.com/ZMaccount1/", "https://www.tiktok.com/@northwind.studio")
			c.send(http.MethodPost, "/videos", map[string]any{"link": "https://vm.tiktok.com/ZMaccount1/"}).requireProblem(http.StatusBadRequest, server.CodeWrongKind)
		})
		a.platforms.redirect(short, tiktokLink+"?_t=8")
		id := c.track(short)
		require.Equal(t, id, c.track(tiktokLink))
		t.Run("a short link that was resolved for another organisation", func(t *testing.T) {
			before := a.platforms.requestCount()
			c.track(short)
			a.newCaller(t, store.TierBasic).track(short)
			require.Equal(t, before, a.platforms.requestCount())
		})
		t.Run("GET and DELETE accept short links", func(t *testing.T) {
			v := decode[client.Video](c.send(http.MethodGet, "/videos/https%3A%2F%2Fvm.tiktok.com%2FZMabcdef1%2F", nil).requireStatus(http.StatusOK))
			require.Equal(t, id, v.AdID)
			require.Len(t, c.listVideos("link=https%3A%2F%2Fvm.tiktok.com%2FZMabcdef1%2F").Data, 1)
			require.Empty(t, c.listVideos("link=https%3A%2F%2Fvm.tiktok.com%2FZMdead0001%2F").Data)
			c.send(http.MethodDelete, "/videos", map[string]any{"id": short}).requireStatus(http.StatusOK)
		})
	})
}

// Requirements in docs/coverage.md: 2.2-07, 3-06, 3-07, 3-13, 4.3-08, 4.3-09, 4.3-10, 4.3-11
func TestStopVideo_keepsTheCollectedDataReadable(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		for name, stop := range map[string]func(id uuid.UUID) response{
			"DELETE with the id in the path": func(id uuid.UUID) response { return c.send(http.MethodDelete, "/videos/"+id.String(), nil) },
			"DELETE with an id in upper case in the path": func(id uuid.UUID) response {
				return c.send(http.MethodDelete, "/videos/"+strings.ToUpper(id.String()), nil)
			},
			"DELETE with the id in the body": func(id uuid.UUID) response {
				return c.send(http.MethodDelete, "/videos", map[string]any{"id": id})
			},
			"DELETE with the link in the body": func(uuid.UUID) response {
				return c.send(http.MethodDelete, "/videos", map[string]any{"id": tiktokLink + "?x=1"})
			},
		} {
			id := c.track(tiktokLink)
			a.fetch(factsWithViews(100))
			require.NotEmpty(t, decode[client.Message](stop(id).requireStatus(http.StatusOK)).Message, name)

			v := decode[client.Video](c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK))
			require.True(t, v.Removed)
			require.NotNil(t, v.LatestViews)
			require.Len(t, decode[[]client.VideoHistoryPoint](c.send(http.MethodGet, "/videos/"+id.String()+"/history", nil).requireStatus(http.StatusOK)), 1)
			require.Empty(t, c.listVideos("").Data)
			require.Len(t, c.listVideos("include_removed=true").Data, 1)

			stop(id).requireProblem(http.StatusNotFound, server.CodeNotFound)
		}
		id := c.track(tiktokLink)
		v := decode[client.Video](c.send(http.MethodGet, "/videos/"+id.String(), nil).requireStatus(http.StatusOK))
		require.False(t, v.Removed, "a stopped video that is tracked again must keep its id")
	})
}

// Requirements in docs/coverage.md: 4-03, 4.3-10
func TestStopVideo_refusesUntrackedVideos(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	for _, id := range []string{unknownID, "00000000-0000-0000-0000-000000000000", tiktokLink, "https://www.tiktok.com/@northwind", "nonsense", "bulk"} {
		p := c.send(http.MethodDelete, "/videos", map[string]any{"id": id}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Contains(t, p.Detail, id)
	}
	c.send(http.MethodDelete, "/videos/"+unknownID, nil).requireProblem(http.StatusNotFound, server.CodeNotFound)
	for _, id := range []string{"nonsense", "%7B" + unknownID + "%7D", "urn:uuid:" + unknownID, strings.ReplaceAll(unknownID, "-", "")} {
		p := c.send(http.MethodDelete, "/videos/"+id, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Equal(t, "ad_id", *p.Errors[0].Name)
		require.Equal(t, "format", p.Errors[0].Code)
	}
}

// requireOneCreated calls track 64 times concurrently. All calls must return the same id, and exactly one call must return isNew as true.
func requireOneCreated(t *testing.T, track func() (id uuid.UUID, isNew bool, err error)) {
	t.Helper()
	var mu sync.Mutex
	var requests sync.WaitGroup
	ids, createdCount := map[uuid.UUID]bool{}, 0
	for range 64 {
		requests.Go(func() {
			id, isNew, err := track()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("a request failed: %v", err)
				return
			}
			ids[id] = true
			if isNew {
				createdCount++
			}
		})
	}
	requests.Wait()
	require.Len(t, ids, 1)
	require.Equal(t, 1, createdCount)
}

// TestTrackVideo_concurrentCallsOfTheGeneratedClientCreateOneVideo sends the same link 64 times concurrently. The requests must create one
// video, and 63 of the responses must report that the video was already tracked.
func TestTrackVideo_concurrentCallsOfTheGeneratedClientCreateOneVideo(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		requireOneCreated(t, func() (uuid.UUID, bool, error) {
			got, err := c.TrackVideo(t.Context(), client.TrackVideoOptions{Link: tiktokLink})
			if err != nil {
				return uuid.Nil, false, err
			}
			return got.VideoID, got.Error == nil, nil
		})
		require.Len(t, c.listVideos("").Data, 1)
	})
}
