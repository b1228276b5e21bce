package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store/storetest"
)

// startDemo starts "reeltally up" and returns two functions that run commands. The function
// "caller" uses the demo organisation's token, and "operator" uses the database URL.
func startDemo(t *testing.T) (caller, operator func(args ...string) (status int, stdout, stderr string)) {
	t.Helper()
	url := storetest.CreateEmptyDatabase(t, "sqlite")
	u := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": url, "REELTALLY_DATA_DIR": t.TempDir()})
	return func(args ...string) (int, string, string) {
			return boottest.Run(t, run, nil, map[string]string{"REELTALLY_URL": u.base, "REELTALLY_TOKEN": u.token}, args...)
		}, func(args ...string) (int, string, string) {
			return boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, args...)
		}
}

func TestExportVideos_marksMadeUpNumbersForImport(t *testing.T) {
	t.Parallel()
	caller, operator := startDemo(t)
	realURL := storetest.CreateDatabase(t, "sqlite")
	newCommandRunner(t, realURL)("org", "create", "--name", "Real")
	realRows := fmt.Sprintf("link,date,views\nhttps://youtu.be/dQw4w9WgXcQ,%s,7\n", time.Now().UTC().Format(time.DateOnly))
	status, _, stderr := boottest.Run(t, run, strings.NewReader(realRows), map[string]string{"REELTALLY_DATABASE_URL": realURL}, "import", "--org", "Real", "-")
	require.Zero(t, status, stderr)
	status, _, stderr = operator("org", "create", "--name", "Copy")
	require.Zero(t, status, stderr)
	for _, format := range []string{"csv", "csv-semicolon", "ndjson"} {
		file := filepath.Join(t.TempDir(), "videos")
		status, _, stderr := caller("export", "videos", "--format", format, "-o", file)
		require.Zero(t, status, stderr)
		status, _, stderr = boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": realURL}, "import", "--org", "Real", file)
		require.Equal(t, 1, status, format)
		require.Contains(t, stderr, "made-up", format)
		status, stdout, stderr := operator("import", "--org", "Copy", file)
		require.Zero(t, status, "%s: %s", format, stderr)
		require.Contains(t, stdout, "60 videos", format)
	}
	_, stdout, _ := caller("export", "videos", "--format", "csv")
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	require.NoError(t, err)
	for i, row := range rows {
		require.Equal(t, map[bool]string{true: "source", false: "sandbox"}[i == 0], row[len(row)-1])
	}
}

func TestExport_ndjsonHasTheJSONOfTheAPI(t *testing.T) {
	t.Parallel()
	u := startReelTally(t, map[string]string{"REELTALLY_DATABASE_URL": storetest.CreateEmptyDatabase(t, "sqlite"), "REELTALLY_DATA_DIR": t.TempDir()})
	settings := map[string]string{"REELTALLY_URL": u.base, "REELTALLY_TOKEN": u.token}
	for list, query := range map[string]string{"videos": "", "accounts": "?paginated=true", "collections": "?paginated=true&include_children=true"} {
		var response struct{ Data []map[string]any }
		require.NoError(t, json.Unmarshal([]byte(getText(t, u.base+"/"+list+query, u.token)), &response))
		status, stdout, stderr := boottest.Run(t, run, nil, settings, "export", list, "--format", "ndjson")
		require.Zero(t, status, stderr)
		lines := slices.Collect(strings.Lines(stdout))
		require.Len(t, lines, len(response.Data), list)
		for n, line := range lines {
			got, want := parseObject(t, line), response.Data[n]
			require.Equal(t, want["created_at"], got["created_at"], list)
			require.NotRegexp(t, `T[0-9:.]+Z"`, line)
			if list == "videos" {
				require.Equal(t, "sandbox", got["source"])
				delete(got, "source")
			}
			require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
		}
	}
}

func TestExport_hasStoppedVideosAndAccountsOnlyIfRequested(t *testing.T) {
	t.Parallel()
	caller, _ := startDemo(t)
	runCommand := func(args ...string) string {
		t.Helper()
		status, stdout, stderr := caller(args...)
		require.Zero(t, status, stderr)
		return stdout
	}
	for _, of := range []struct {
		list, link string
		stop       []string
	}{
		{"videos", "ad_link", []string{"stop"}},
		{"accounts", "account_link", []string{"accounts", "stop"}},
	} {
		before := slices.Collect(strings.Lines(runCommand("export", of.list, "--format", "ndjson")))
		runCommand(append(of.stop, parseObject(t, before[0])[of.link].(string))...)
		tracked, all := runCommand("export", of.list, "--format", "ndjson"), runCommand("export", of.list, "--format", "ndjson", "--include-removed")
		require.Equal(t, []int{0, len(before) - 1}, []int{strings.Count(tracked, `"removed":true`), strings.Count(tracked, "\n")}, of.list)
		require.Equal(t, []int{1, len(before)}, []int{strings.Count(all, `"removed":true`), strings.Count(all, "\n")}, of.list)
		rows, err := csv.NewReader(strings.NewReader(runCommand("export", of.list, "--include-removed"))).ReadAll()
		require.NoError(t, err)
		require.Len(t, rows, 1+len(before), of.list)
	}
}

func TestLists_warnIfTierAllowsOnlyOneResult(t *testing.T) {
	t.Parallel()
	caller, operator := startDemo(t)
	commands := [][]string{{"list"}, {"list", "--json"}, {"accounts", "list"}, {"export", "videos"}, {"export", "histories"}, {"export", "accounts"}}
	for _, command := range commands {
		status, _, stderr := caller(command...)
		require.Zero(t, status, stderr)
		require.NotContains(t, stderr, "returns only the first result", command)
	}
	status, stdout, stderr := operator("org", "list", "--json")
	require.Zero(t, status, stderr)
	_, id, _ := strings.Cut(stdout, `"organisation_id":"`)
	status, _, stderr = operator("org", "set-tier", id[:36], "basic")
	require.Zero(t, status, stderr)
	for _, command := range commands {
		require.Eventually(t, func() bool {
			status, _, stderr = caller(command...)
			return status == 0 && strings.Count(stderr, "In the tier of this organisation, a list returns only the first result, without metrics.") == 1
		}, startTimeout, 100*time.Millisecond, "%s: %s", command, stderr)
	}
	status, _, stderr = caller("list", "--collection", "Hidden from this tier")
	require.Zero(t, status, stderr)
}

func TestLists_refuseUnknownCollections(t *testing.T) {
	t.Parallel()
	caller, _ := startDemo(t)
	for _, command := range [][]string{{"list"}, {"accounts", "list"}} {
		status, stdout, stderr := caller(append(command, "--collection", "Nope")...)
		require.Equal(t, 1, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, `there is no collection "Nope"`)
	}
}

func TestCollections_areFoundByIDIfTheTierHidesThem(t *testing.T) {
	t.Parallel()
	caller, operator := startDemo(t)
	ids := map[string]string{}
	for _, name := range []string{"Spring", "Autumn"} {
		status, stdout, stderr := caller("collections", "create", name)
		require.Zero(t, status, stderr)
		fields := strings.Fields(stdout)
		ids[name] = fields[len(fields)-1]
	}
	status, stdout, stderr := operator("org", "list", "--json")
	require.Zero(t, status, stderr)
	_, organisation, _ := strings.Cut(stdout, `"organisation_id":"`)
	status, _, stderr = operator("org", "set-tier", organisation[:36], "basic")
	require.Zero(t, status, stderr)
	require.Eventually(t, func() bool {
		_, _, stderr := caller("list")
		return strings.Contains(stderr, "returns only the first result")
	}, startTimeout, 100*time.Millisecond)

	const video = "https://youtu.be/dQw4w9WgXcQ"
	for name, id := range ids {
		for _, command := range [][]string{
			{"track", "--collection", id, video}, {"collections", "add", id, video}, {"collections", "remove", id, video},
			{"collections", "create", "Below " + name, "--parent", strings.ToUpper(id)},
		} {
			status, _, stderr = caller(command...)
			require.Zero(t, status, "%s: %s", command, stderr)
		}
	}
	unknownID := uuid.NewString()
	for nameOrID, want := range map[string]string{
		unknownID:               "there is no collection with the id " + unknownID,
		"Hidden from this tier": `shows only one collection in the list, and its name is not "Hidden from this tier"; use the id of the collection`,
	} {
		status, _, stderr = caller("track", "--collection", nameOrID, video)
		require.Equal(t, 1, status)
		require.Contains(t, stderr, want)
	}
}
