package e2e_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

var migrateVideos = flag.Int("migrate.videos", 200, "number of videos in TestMigrateFrom_copiesTheOrganisationDespiteKills")

// newSeededStack starts a server whose database has an organisation with made-up videos. videoCount is the number of these videos.
func newSeededStack(t *testing.T, engine string, videoCount int) *stack {
	t.Helper()
	s := &stack{env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, engine), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off"}}
	var made struct {
		ID    string `json:"organisation_id"`
		Token string
	}
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "seed", "--videos", strconv.Itoa(videoCount), "--days", "120", "--json")), &made))
	require.NoError(t, json.Unmarshal([]byte(runOperator(t, s.env, "token", "create", "--org", made.ID, "--name", "Test", "--json")), &made))
	s.token = made.Token
	s.startServer(t)
	return s
}

// organiseVideos creates nested collections with videos, accounts and hashtags, tracks an account, and stops tracking some videos.
func (s *stack) organiseVideos(t *testing.T) {
	t.Helper()
	var page struct {
		Data []struct {
			ID      string `json:"ad_id"`
			Account string `json:"linked_account_id"`
			Title   string
		}
	}
	requireResponse(t, "GET", s.base+"/videos?limit=40&order_by=created_at", s.token, nil).decode(t, &page)
	created := func(path string, body map[string]any) (id string) {
		a := requireResponse(t, "POST", s.base+path, s.token, body)
		require.Equal(t, http.StatusCreated, a.status, string(a.body))
		var made struct{ ID string }
		a.decode(t, &made)
		return made.ID
	}
	ok := func(method, path string, status int, body any) {
		a := requireResponse(t, method, s.base+path, s.token, body)
		require.Equal(t, status, a.status, string(a.body))
	}
	root := created("/collections", map[string]any{"name": "Clients"})
	for _, name := range []string{"Northwind", "Northwind", "Über & Co"} { // names need not be unique
		child := created("/collections", map[string]any{"name": name, "parent_id": root, "access": "public"})
		below := created("/collections", map[string]any{"name": "Launch", "parent_id": child, "hashtags": []string{"launch"}})
		ok("POST", "/collections/"+child+"/accounts", http.StatusOK, map[string]any{"account_ids": []string{page.Data[len(name)].Account}})
		ok("POST", "/collections/"+below+"/videos", http.StatusOK, map[string]any{"video_ids": []string{page.Data[20].ID, page.Data[21+len(name)].ID}})
		ok("PATCH", "/collections/"+child, http.StatusNoContent, map[string]any{"display_settings": map[string]any{"title": name}})
	}
	var account struct {
		Link string `json:"account_link"`
	}
	requireResponse(t, "GET", s.base+"/accounts/"+page.Data[0].Account, s.token, nil).decode(t, &account)
	ok("POST", "/accounts", http.StatusOK, map[string]any{"link": account.Link, "tracking_type": "all"})
	for _, v := range page.Data[30:35] {
		ok("DELETE", "/videos/"+v.ID, http.StatusOK, nil)
	}
}

// collectionTree returns one line for each collection, with the names of its parents, its settings, and the sorted links of its videos and
// accounts.
func (s *stack) collectionTree(t *testing.T) []string {
	t.Helper()
	var all struct {
		Data []struct {
			ID, Name, Access string
			ParentID         *string         `json:"parent_id"`
			DisplaySettings  json.RawMessage `json:"display_settings"`
			Hashtags         []string
		}
	}
	requireResponse(t, "GET", s.base+"/collections", s.token, nil).decode(t, &all)
	parents, names := map[string]string{}, map[string]string{}
	for _, c := range all.Data {
		names[c.ID] = c.Name
		if c.ParentID != nil {
			parents[c.ID] = *c.ParentID
		}
	}
	var out []string
	for _, c := range all.Data {
		path := c.Name
		for id := parents[c.ID]; id != ""; id = parents[id] {
			path = names[id] + "/" + path
		}
		var videos, accounts struct {
			Data []struct {
				Video   string `json:"ad_link"`
				Account string `json:"account_link"`
				Type    string `json:"tracking_type"`
			}
		}
		requireResponse(t, "GET", s.base+"/collections/"+c.ID+"/videos?limit=5000&include_removed=true", s.token, nil).decode(t, &videos)
		requireResponse(t, "GET", s.base+"/collections/"+c.ID+"/accounts?limit=5000", s.token, nil).decode(t, &accounts)
		var links []string
		for _, m := range slices.Concat(videos.Data, accounts.Data) {
			links = append(links, m.Video+m.Account+m.Type)
		}
		slices.Sort(links)
		out = append(out, fmt.Sprintf("%s %s %s %v %v", path, c.Access, c.DisplaySettings, c.Hashtags, links))
	}
	slices.Sort(out)
	return out
}

// A migration that is killed three times and started again must copy everything, and must copy nothing twice.
//
// Requirements in docs/coverage.md: 11.9-08, 11.9-09
func TestMigrateFrom_copiesTheOrganisationDespiteKills(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			source := newSeededStack(t, engine, *migrateVideos)
			source.organiseVideos(t)
			target := &stack{env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, engine), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off"}}
			var made struct {
				ID    string `json:"organisation_id"`
				Token string
			}
			require.NoError(t, json.Unmarshal([]byte(runOperator(t, target.env, "org", "create", "--name", "Target", "--json")), &made))
			require.NoError(t, json.Unmarshal([]byte(runOperator(t, target.env, "token", "create", "--org", made.ID, "--name", "Test", "--json")), &made))
			target.token = made.Token

			dir := filepath.Join(t.TempDir(), "work")
			env := append(slices.Clone(target.env), "REELTALLY_MIGRATE_TOKEN="+source.token)
			args := []string{"migrate-from", "reeltally", "--url", source.base, "--org", "Target", "--work-dir", dir, "--json"}
			histories := func() (n int) {
				var state struct{ Videos int }
				if text, err := os.ReadFile(filepath.Join(dir, "histories-state.json")); err == nil {
					require.NoError(t, json.Unmarshal(text, &state))
				}
				return state.Videos
			}
			var accounts []any
			requireResponse(t, "GET", source.base+"/accounts", source.token, nil).decode(t, &accounts)
			require.NotEmpty(t, accounts)
			require.JSONEq(t, fmt.Sprintf(`{"collections":%d,"accounts":%d,"videos":%d}`, len(source.collectionTree(t)), len(accounts), *migrateVideos), runOperator(t, env, append(slices.Clone(args), "--dry-run")...))
			require.NoDirExists(t, dir, "a dry run must write nothing")
			for kill := range 2 {
				p := startProgram(t, "reeltally", env, args...)
				require.Eventually(t, func() bool { return histories() > *migrateVideos*(kill+1)/3 }, 5*time.Minute, time.Millisecond)
				p.kill()
				require.ErrorContains(t, p.err, "killed", "the test must kill the migration before the migration ends")
				require.Less(t, histories(), *migrateVideos)
			}
			// Kill the migration a third time, while it writes into the database. The next run must still copy everything.
			p := startProgram(t, "reeltally", env, args...)
			require.Eventually(t, func() bool {
				_, err := os.Stat(filepath.Join(dir, "reeltally-import"))
				return err == nil
			}, 5*time.Minute, time.Millisecond)
			p.kill()

			var summary struct {
				NewCollections int `json:"new_collections"`
				Missing        int `json:"missing_members"`
				Import         struct{ Videos, Added, Existing, Bad, Kept int }
			}
			require.NoError(t, json.Unmarshal([]byte(runOperator(t, env, args...)), &summary))
			require.Equal(t, *migrateVideos, summary.Import.Videos)
			require.Zero(t, summary.Import.Bad+summary.Import.Kept+summary.Missing)
			require.NoDirExists(t, dir)

			export := func(s *stack, org string) []string {
				return slices.Sorted(strings.Lines(runOperator(t, s.env, "export", "--org", org, "--include-removed")))
			}
			var sourceOrg struct{ Organisation struct{ ID string } }
			requireResponse(t, "GET", source.base+"/authenticate", source.token, nil).decode(t, &sourceOrg)
			want := export(source, sourceOrg.Organisation.ID)
			require.Greater(t, len(want), *migrateVideos)
			require.Equal(t, want, export(target, "Target"))

			target.startServer(t)
			require.Equal(t, source.collectionTree(t), target.collectionTree(t))
			type counts struct {
				Total, Removed int
				ByPlatform     map[string]int `json:"by_platform"`
			}
			statistics := func(s *stack) (c counts) {
				requireResponse(t, "GET", s.base+"/statistics/videos", s.token, nil).decode(t, &c)
				return c
			}
			require.Equal(t, 5, statistics(source).Removed)
			require.Equal(t, statistics(source), statistics(target))

			require.NoError(t, json.Unmarshal([]byte(runOperator(t, env, args...)), &summary))
			require.Zero(t, summary.NewCollections, "a repeated migration must create nothing")
			require.Zero(t, summary.Import.Added)
			require.Equal(t, want, export(target, "Target"))
		})
	}
}
