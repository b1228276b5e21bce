package migrate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/storetest"
)

const testToken = "secret-token-of-the-service"

// service imitates the hosted service from which data is copied. The field "responses" maps a path to the JSON
// of the response.
type service struct {
	responses map[string]string
	// intercept is called first for each request; n is the number of the request. intercept returns true if it has
	// answered the request.
	intercept func(w http.ResponseWriter, r *http.Request, n int) bool

	*httptest.Server
	requests []string
	waits    []time.Duration
}

const serviceVideo = "https://www.tiktok.com/@a/video/7301234567890123456"

// newService starts a hosted service whose organisation has one video.
func newService(t *testing.T) *service {
	t.Helper()
	s := &service{responses: map[string]string{
		"/authenticate": `{"organisation":{"id":"o","name":"Hosted","tier":"premium","subscription":"active"}}`,
		"/collections":  `{"data":[],"pagination":{"total":0,"total_pages":0}}`,
		"/accounts":     `{"data":[],"pagination":{"total":0,"total_pages":0}}`,
		"/videos":       `{"data":[{"ad_id":"v1","ad_link":"` + serviceVideo + `","username":"a","title":"=1+1","latest_views":7}],"pagination":{"total":1,"total_pages":1}}`,
	}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+testToken {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		s.requests = append(s.requests, r.URL.RequestURI())
		if s.intercept != nil && s.intercept(w, r, len(s.requests)) {
			return
		}
		response, ok := s.responses[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = w.Write([]byte(response))
	}))
	t.Cleanup(s.Close)
	return s
}

// newRemote returns a client for the service. The client does not wait between requests: it only records in s.waits how long it would have waited.
func (s *service) newRemote(t *testing.T) *Remote {
	t.Helper()
	r, err := NewRemote(s.URL, testToken, func(string, time.Duration) {})
	require.NoError(t, err)
	r.sleep = func(_ context.Context, wait time.Duration) error {
		s.waits = append(s.waits, wait)
		return nil
	}
	t.Cleanup(r.close)
	return r
}

// runMigration copies the data of the service into a new organisation.
func (s *service) runMigration(t *testing.T, db *storetest.DB, dir string) (*store.Org, Summary, error) {
	t.Helper()
	o, err := db.CreateOrganisation(t.Context(), "Tester", store.TierPremium, store.SubscriptionActive)
	require.NoError(t, err)
	summary, err := s.runMigrationInto(t, db.Org(o.ID), db, dir)
	return db.Org(o.ID), summary, err
}

// runMigrationInto copies the data of the service into an existing organisation.
func (s *service) runMigrationInto(t *testing.T, o *store.Org, db *storetest.DB, dir string) (Summary, error) {
	t.Helper()
	r := s.newRemote(t)
	from, err := r.Organisation(t.Context())
	if err != nil {
		return Summary{}, err
	}
	return Migration{Remote: r, From: from, Org: o, Dir: dir, Now: db.Clock.Now, Progress: func(Stage, int, int) {},
		ImportProgress: func(transfer.Stage, int64, int64) {}, Resolve: func(_ context.Context, l link.Link) (link.Link, error) { return l, nil }}.Run(t.Context())
}

func historyJSON(t *testing.T, points ...map[string]any) string {
	t.Helper()
	text, err := json.Marshal(points)
	require.NoError(t, err)
	return string(text)
}

// Requirements in docs/coverage.md: 11.9-11
func TestMigration_storesOnlyMeasuredPoints(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		today := store.DateOf(db.Clock.Now())
		for _, marked := range []bool{false, true} {
			s := newService(t)
			s.intercept = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
				if marked {
					w.Header().Set("API-Version", "2026-01-01")
				}
				return false
			}
			s.responses["/videos/v1/history"] = historyJSON(t, map[string]any{"date": (today - 1).String(), "views": 20, "likes": nil},
				map[string]any{"date": (today - 2).String(), "views": 15, "interpolated": true}, map[string]any{"date": (today - 200).String(), "views": 5}, map[string]any{"date": (today - 201).String(), "views": 4, "interpolated": true})
			o, summary, err := s.runMigration(t, db, filepath.Join(t.TempDir(), "work"))
			require.NoError(t, err)
			l, err := link.Parse(serviceVideo)
			require.NoError(t, err)
			points, err := o.History(t.Context(), store.Ref{Link: l}, 0, today)
			require.NoError(t, err)
			points = slices.DeleteFunc(points, func(p store.Point) bool { return p.Quality == store.QualityInterpolated })
			require.EqualValues(t, 20, *points[0].Views)
			require.Nil(t, points[0].Likes, "a count that is unknown on the remote server must stay unknown")
			require.EqualValues(t, 2, summary.Interpolated)
			if marked {
				require.Len(t, points, 2)
				require.Zero(t, summary.Unmarked)
			} else {
				require.Len(t, points, 1, "a point that is older than dailyDays must be left out if the service does not say whether it was measured")
				require.EqualValues(t, 1, summary.Unmarked)
			}
			require.Equal(t, marked, strings.Contains(strings.Join(s.requests, " "), "include"), "the parameter include must not be sent to hosted services, because they do not have it")
		}
	})
}

// Requirements in docs/coverage.md: 11.9-10
func TestRemote_waitsForRateLimitsAndRepeatsFailedRequests(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.intercept = func(w http.ResponseWriter, _ *http.Request, n int) bool {
		switch {
		case n <= 2*maxAttempts: // a request that gets status 429 does not count as an attempt
			w.Header().Set("Retry-After", "37")
			w.WriteHeader(http.StatusTooManyRequests)
		case n == 2*maxAttempts+1:
			w.Header().Set("Content-Length", "1000") // the body is shorter than this length, so the client sees a broken connection
			_, _ = w.Write([]byte(`{"organisation"`))
		case n == 2*maxAttempts+2:
			w.WriteHeader(http.StatusBadGateway)
		default:
			return false
		}
		return true
	}
	o, err := s.newRemote(t).Organisation(t.Context())
	require.NoError(t, err)
	require.Equal(t, "Hosted", o.Name)
	want := slices.Repeat([]time.Duration{37 * time.Second}, 2*maxAttempts)
	require.Equal(t, append(want, time.Second, 2*time.Second), s.waits)

	s.intercept = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	}
	s.waits = nil
	_, err = s.newRemote(t).Organisation(t.Context())
	require.ErrorContains(t, err, fmt.Sprintf("after %d attempts", maxAttempts))
	require.Len(t, s.waits, maxAttempts-1)
	require.Equal(t, maxBackoff, slices.Max(s.waits))

	s.Close()
	s.waits = nil
	_, err = s.newRemote(t).Organisation(t.Context())
	require.ErrorContains(t, err, "refused")
	require.Len(t, s.waits, maxAttempts-1)
}

// Requirements in docs/coverage.md: 11.9-12
func TestMigration_refusesServicesThatDoNotShowAllData(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	for want, change := range map[string]func(*service){
		"the token's organisation has the tier basic": func(s *service) { s.responses["/authenticate"] = `{"organisation":{"tier":"basic"}}` },
		"the service masks the numbers": func(s *service) {
			s.responses["/videos"] = strings.Replace(s.responses["/videos"], `"username"`, `"metrics_masked":true,"username"`, 1)
		},
		"status 401": func(s *service) {
			s.intercept = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
				w.WriteHeader(http.StatusUnauthorized)
				return true
			}
		},
		`it redirects to "https://example.com/"`: func(s *service) {
			s.intercept = func(w http.ResponseWriter, r *http.Request, _ int) bool {
				http.Redirect(w, r, "https://example.com/", http.StatusMovedPermanently)
				return true
			}
		},
		"the response is not the expected JSON": func(s *service) { s.responses["/videos"] = "<html>" },
	} {
		s := newService(t)
		change(s)
		_, _, err := s.runMigration(t, db, filepath.Join(t.TempDir(), "work"))
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), testToken)
	}
	for _, address := range []string{"", "api.example.com", "ftp://example.com", "https://user:password@example.com", "https://example.com?a=b"} {
		_, err := NewRemote(address, testToken, nil)
		require.ErrorContains(t, err, fmt.Sprintf("%q is not the address of an API", address))
	}
}

func TestMigration_refusesFolderOfAnotherMigration(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s, dir := newService(t), filepath.Join(t.TempDir(), "work")
	s.responses["/videos"] = "<html>"
	_, _, err := s.runMigration(t, db, dir)
	require.ErrorContains(t, err, "the response is not the expected JSON")
	_, _, err = s.runMigration(t, db, dir)
	require.ErrorContains(t, err, "belongs to another migration")
}

// The folder of another program must stay as it is, even if it has files with the names of a migration's files.
func TestMigration_refusesFolderWithOtherFiles(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	for _, name := range []string{"tmp/note.txt", tempDir + "/note.txt", "accounts.json", identityFile} {
		s, dir := newService(t), t.TempDir()
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("{}"), 0o600))
		_, _, err := s.runMigration(t, db, dir)
		require.ErrorContains(t, err, dir+" is not empty, and it is not the folder of an interrupted migration: name a new or empty folder", name)
		require.Equal(t, []string{"/authenticate"}, s.requests, "the refused migration must request nothing")
		require.FileExists(t, path)
		require.Equal(t, 1, countFiles(t, dir), "the refused migration must write nothing")
	}
}

// countFiles returns the number of files in a folder and its subfolders.
func countFiles(t *testing.T, dir string) (n int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			n++
		}
		return err
	}))
	return n
}

func TestMigration_keepsFilesThatWereAddedToItsFolder(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s, dir := newService(t), t.TempDir() // an empty folder is accepted
	note := filepath.Join(dir, "tmp", "note.txt")
	s.intercept = func(_ http.ResponseWriter, r *http.Request, _ int) bool {
		if r.URL.Path == "/videos" {
			_ = errors.Join(os.Mkdir(filepath.Dir(note), 0o700), os.WriteFile(note, nil, 0o600)) // the test checks the file below
		}
		return false
	}
	_, summary, err := s.runMigration(t, db, dir)
	require.NoError(t, err, "other files in the folder must not make the migration fail")
	require.EqualValues(t, 1, summary.Import.New)
	require.FileExists(t, note)
	require.Equal(t, 1, countFiles(t, dir), "the migration must delete its own files")
}

func TestMigration_continuesInFolderOfInterruptedMigration(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s, dir := newService(t), filepath.Join(t.TempDir(), "work")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, identityFile+".new"), []byte(`{"u`), 0o600))
	videos := s.responses["/videos"]
	s.responses["/videos"] = "<html>"
	o, _, err := s.runMigration(t, db, dir)
	require.Error(t, err)
	require.NoError(t, CheckDir(dir))
	s.responses["/videos"] = videos
	_, err = s.runMigrationInto(t, o, db, dir)
	require.NoError(t, err)
	require.NoDirExists(t, dir)
}

// If the remote server answers 404 for the history of a video, the video must be migrated without points.
func TestMigration_countsVideosWithoutHistory(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s := newService(t)
	_, summary, err := s.runMigration(t, db, filepath.Join(t.TempDir(), "work"))
	require.NoError(t, err)
	require.EqualValues(t, 1, summary.Gone)
	require.EqualValues(t, 1, summary.Import.New)
	require.Zero(t, summary.Import.Added)
}

// A database with real numbers must not get the made-up numbers of a server with the sandbox.
func TestMigration_refusesMadeUpNumbersInDatabaseWithRealNumbers(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s := newService(t)
	s.responses["/videos/v1/history"] = historyJSON(t, map[string]any{"date": (store.DateOf(db.Clock.Now()) - 1).String(), "views": 20})
	_, _, err := s.runMigration(t, db, filepath.Join(t.TempDir(), "work"))
	require.NoError(t, err)
	s.intercept = func(w http.ResponseWriter, _ *http.Request, _ int) bool {
		w.Header().Set("ReelTally-Sandbox", "true")
		return false
	}
	_, _, err = s.runMigration(t, db, filepath.Join(t.TempDir(), "work"))
	var kind *store.DataKindError
	require.ErrorAs(t, err, &kind)
}

// The summary must say that entries are missing, even after an interruption.
func TestMigration_reportsEntriesThatTheServiceDoesNotList(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s, dir := newService(t), filepath.Join(t.TempDir(), "work")
	s.intercept = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if r.URL.Query().Get("page") != "2" {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		return true
	}
	s.responses["/collections"] = `{"data":[{"id":"c","name":"A"}],"pagination":{"total":2,"total_pages":1}}`
	s.responses["/collections/c/accounts"] = `{"data":[],"pagination":{"total":5,"total_pages":1}}`
	s.responses["/accounts"] = `{"data":[],"pagination":{"total":3,"total_pages":1}}`
	videos := strings.Replace(s.responses["/videos"], `"total":1`, `"total":8`, 1)
	s.responses["/videos"] = "<html>"
	o, _, err := s.runMigration(t, db, dir)
	require.Error(t, err)
	s.responses["/videos"] = videos
	summary, err := s.runMigrationInto(t, o, db, dir)
	require.NoError(t, err)
	require.Equal(t, Counts{Collections: 1, Accounts: 3, Videos: 7}, summary.Unlisted)
	require.Equal(t, 5, summary.MissingMembers)
}

// A migration can take several days, because the service limits the rate of requests.
func TestMigration_requestsOnlyAllowedDaysAfterSeveralMidnights(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	s := newService(t)
	s.responses["/videos"] = `{"data":[{"ad_id":"v1","ad_link":"https://www.tiktok.com/@a/video/7301234567890123451"},{"ad_id":"v2","ad_link":"https://www.tiktok.com/@a/video/7301234567890123452"}],"pagination":{"total":2,"total_pages":1}}`
	var requested, want [][2]string // the first and the last day of each request
	s.intercept = func(w http.ResponseWriter, r *http.Request, _ int) bool {
		if !strings.HasSuffix(r.URL.Path, "/history") {
			return false
		}
		today := store.DateOf(db.Clock.Now())
		requested = append(requested, [2]string{r.URL.Query().Get("start_date"), r.URL.Query().Get("end_date")})
		want = append(want, [2]string{(today - historyDays).String(), today.String()})
		_, _ = w.Write([]byte(historyJSON(t, map[string]any{"date": today.String(), "views": 20})))
		db.Clock.Advance(3 * 24 * time.Hour)
		return true
	}
	_, summary, err := s.runMigration(t, db, filepath.Join(t.TempDir(), "work"))
	require.NoError(t, err)
	require.Len(t, requested, 2)
	require.Equal(t, want, requested)
	require.Empty(t, summary.Bad, "points of days after the start of the migration must be imported")
	require.EqualValues(t, 2, summary.Import.Added)
}
