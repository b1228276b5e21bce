package server_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

// TestReads_useFewStatementsAndAllocations counts the SQL statements and the allocated objects of a request, from the router to the last
// byte of the response. Earlier requests have already filled the caches.
//
//nolint:paralleltest // testing.AllocsPerRun counts the allocations of the whole process
func TestReads_useFewStatementsAndAllocations(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres"} {
		db := storetest.New(t, engine)
		counted := newApp(t, db)
		plain, err := store.Open(t.Context(), store.Options{URL: db.URL, Now: db.Clock.Now}) // this store has no check of SQL statements, because the check allocates many objects
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, plain.Close()) })
		measured := newApp(t, db, func(o *server.Options) { o.Store = plain })
		c := counted.newCaller(t, store.TierPremium)
		require.Equal(t, http.StatusOK, c.send(http.MethodGet, "/authenticate", nil).StatusCode)
		var first []string
		require.Eventually(t, func() bool { // the server records the token's last use after it has sent the response
			first = append(first, db.Guard.Statements()...)
			return slices.ContainsFunc(first, func(s string) bool { return strings.Contains(s, "token_uses") })
		}, time.Minute, time.Millisecond)
		require.Equal(t, http.StatusOK, c.send(http.MethodGet, "/authenticate", nil).StatusCode)
		require.Empty(t, db.Guard.Statements(), "a request with a known token must cause no SQL statement, even if no video has been fetched yet")
		org := db.Org(c.org.ID)
		launch := storetest.Collection(t, org, "Launch", nil).ID
		var ids []uuid.UUID
		for _, tracked := range storetest.Track(t, org, storetest.VideoLinksFrom(t, 0, 300)...) {
			ids = append(ids, tracked.ID)
		}
		_, err = org.AddVideos(t.Context(), launch, ids, nil)
		require.NoError(t, err)
		storetest.Deliver(t, db, link.TikTok, storetest.Views(5))
		video := ids[0].String()
		day := db.Clock.Now().UTC().Format(time.DateOnly)
		for _, read := range []struct {
			path             string
			statements       int
			sqlite, postgres float64 // maximum number of allocated objects
		}{
			{"/authenticate", 0, 190, 190},
			{"/videos/" + video, 2, 550, 400},
			{"/videos?limit=100", 2, 3200, 610},
			{"/videos?limit=100&username=someone", 2, 3300, 680},
			{"/videos?limit=100&collections=Launch", 2, 3700, 780},
			{"/videos/" + video + "/history?start_date=" + day, 3, 460, 420}, // the third statement of this request finds the last point before start_date
			{"/organisation/history?start_date=" + day, 2, 370, 330},
			{"/accounts?limit=100", 2, 670, 530},
		} {
			request := func(a *app) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, read.path, nil)
				r.Header.Set("Authorization", "Bearer "+c.token)
				w := httptest.NewRecorder()
				a.server.Handler().ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					t.Fatalf("%s: %d %s", read.path, w.Code, w.Body)
				}
			}
			for range 3 {
				request(counted)
				request(measured)
			}
			db.Guard.Statements()
			request(counted)
			statements := db.Guard.Statements()
			require.Len(t, statements, read.statements, "%s: %q", read.path, statements)
			objects := testing.AllocsPerRun(50, func() { request(measured) })
			t.Logf("on %s, the request %s allocates %.0f objects", engine, read.path, objects)
			require.LessOrEqual(t, objects, map[string]float64{"sqlite": read.sqlite, "postgres": read.postgres}[engine], "%s %s", engine, read.path)
		}
	}
}
