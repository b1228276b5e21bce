package server_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// collectionETag sends GET /collections/{collection_id} with the given query and returns the ETag of the response.
func (c *caller) collectionETag(id uuid.UUID, query string) string {
	c.t.Helper()
	tag := c.send(http.MethodGet, "/collections/"+id.String()+query, nil).requireStatus(http.StatusOK).Header.Get("ETag")
	require.NotEmpty(c.t, tag)
	return tag
}

func TestUpdateCollection_refusesAnOutdatedETagInIfMatch(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.createNamedCollection("Launch")
		rename := func(name, ifMatch string) response {
			t.Helper()
			a.Clock.Advance(time.Second)
			return c.patchCollection(id, map[string]any{"name": name}, "If-Match", ifMatch)
		}
		first := c.collectionETag(id, "")
		rename("a", first).requireStatus(http.StatusNoContent)
		rename("b", first).requireProblem(http.StatusPreconditionFailed, server.CodePreconditionFailed)
		require.Equal(t, "a", c.readCollection(id).Name, "the refused request must not change the collection")
		rename("b", c.collectionETag(id, "")).requireStatus(http.StatusNoContent)
		rename("c", c.collectionETag(id, "?include_counts=true")).requireStatus(http.StatusNoContent)
		rename("d", first+", "+c.collectionETag(id, "")).requireStatus(http.StatusNoContent)
		rename("e", "*").requireStatus(http.StatusNoContent)
		for _, wrong := range []string{`"x"`, first, first + `,"y"`, "x", `""`} {
			rename("f", wrong).requireProblem(http.StatusPreconditionFailed, server.CodePreconditionFailed)
		}
		t.Run("several If-Match headers", func(t *testing.T) {
			lines := func(tags ...string) int {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, a.http.URL+"/collections/"+id.String(), strings.NewReader("{}"))
				require.NoError(t, err)
				r.Header = http.Header{"Authorization": {"Bearer " + c.token}, "Content-Type": {"application/json"}, "If-Match": tags}
				resp, err := a.newContractCheckingClient().Do(r)
				require.NoError(t, err)
				require.NoError(t, resp.Body.Close())
				return resp.StatusCode
			}
			require.Equal(t, http.StatusNoContent, lines(first, c.collectionETag(id, "")))
			require.Equal(t, http.StatusPreconditionFailed, lines(first, `"x"`))
		})
		t.Run("the ETag of a response without include_counts, before and after a video is added", func(t *testing.T) {
			seen := c.collectionETag(id, "")
			c.addVideos(id, c.track(tiktokLink))
			rename("g", seen).requireStatus(http.StatusNoContent)
		})
		t.Run("the ETag of a response with include_counts=true, before and after a video is added", func(t *testing.T) {
			seen := c.collectionETag(id, "?include_counts=true")
			c.addVideos(id, c.track(videoURL(1)))
			rename("h", seen).requireProblem(http.StatusPreconditionFailed, server.CodePreconditionFailed)
		})
		t.Run("PATCH without If-Match", func(t *testing.T) {
			c.patchCollection(id, map[string]any{"name": "i"}).requireStatus(http.StatusNoContent)
		})
		t.Run("If-Match for an unknown collection", func(t *testing.T) {
			c.patchCollection(uuid.MustParse(unknownID), map[string]any{"name": "x"}, "If-Match", first).requireProblem(http.StatusNotFound, server.CodeNotFound)
		})
		t.Run("DELETE with an outdated ETag", func(t *testing.T) {
			remove := func(ifMatch string) response {
				t.Helper()
				return c.send(http.MethodDelete, "/collections/"+id.String(), nil, "If-Match", ifMatch)
			}
			remove(first).requireProblem(http.StatusPreconditionFailed, server.CodePreconditionFailed)
			require.Equal(t, "i", c.readCollection(id).Name)
			remove(c.collectionETag(id, "")).requireStatus(http.StatusOK)
			remove("*").requireProblem(http.StatusNotFound, server.CodeNotFound)
		})
	})
}

func TestGetCollection_etagDoesNotChangeIfAMaskedCountChanges(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.createNamedCollection("Launch")
	full := c.collectionETag(id, "?include_counts=true")
	require.NoError(t, a.SetTier(t.Context(), c.org.ID, store.TierBasic))
	a.Clock.Advance(time.Second)
	masked := c.collectionETag(id, "?include_counts=true")
	require.NotEqual(t, full, masked)
	c.patchCollection(id, map[string]any{"name": "x"}, "If-Match", full).requireProblem(http.StatusPreconditionFailed, server.CodePreconditionFailed)
	c.patchCollection(id, map[string]any{"name": "x"}, "If-Match", masked).requireStatus(http.StatusNoContent)
	hidden := c.collectionETag(id, "?include_counts=true")
	c.addVideos(id, c.track(tiktokLink))
	require.Equal(t, hidden, c.collectionETag(id, "?include_counts=true"), "the ETag must not change when a masked count changes")
}

// TestUpdateCollection_onlyOneConcurrentWriteWithTheSameIfMatchSucceeds sends 8 concurrent PATCH requests with the same ETag in If-Match.
// Exactly one of them must succeed. The test does this five times.
func TestUpdateCollection_onlyOneConcurrentWriteWithTheSameIfMatchSucceeds(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.createNamedCollection("Launch")
		for round := range 5 {
			seen := c.collectionETag(id, "")
			var succeeded, refused atomic.Int32
			var writers sync.WaitGroup
			failures := make([]error, 8)
			for n := range failures {
				writers.Go(func() {
					got, err := c.exchange(http.MethodPatch, "/collections/"+id.String(), map[string]any{"name": fmt.Sprintf("%d by %d", round, n)}, "If-Match", seen)
					if err != nil {
						failures[n] = err
						return
					}
					switch got.StatusCode {
					case http.StatusNoContent:
						succeeded.Add(1)
					case http.StatusPreconditionFailed:
						refused.Add(1)
					}
				})
			}
			writers.Wait()
			require.NoError(t, errors.Join(failures...))
			require.Equal(t, int32(1), succeeded.Load(), "exactly one of 8 writers must succeed, even if the clock does not advance")
			require.Equal(t, int32(7), refused.Load())
		}
	})
}
