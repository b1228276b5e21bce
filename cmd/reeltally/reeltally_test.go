package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestMain(m *testing.M) {
	// goleak must ignore the cleaner goroutine of the limiter's in-memory counter, which ends only when the counter is garbage-collected.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/ulule/limiter/v3/drivers/store/memory.(*cleaner).Run"))
}

const startTimeout = 2 * time.Minute

// newCommandRunner returns a function that runs a command of reeltally on the given database, and returns its standard output. The function fails the
// test if the command fails.
func newCommandRunner(t *testing.T, url string) func(args ...string) string {
	t.Helper()
	return func(args ...string) string {
		t.Helper()
		status, stdout, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, args...)
		require.Zero(t, status, stderr)
		require.Regexp(t, `^(The SQLite file .* did not exist and was created\.\n)?$`, stderr)
		return stdout
	}
}

// parseObject decodes a line with one JSON object.
func parseObject(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	require.Equal(t, 1, strings.Count(text, "\n"), "the JSON must be one line")
	return v
}

func TestOrg_createsChangesAndListsOrganisations(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := storetest.CreateDatabase(t, engine)
			operator := newCommandRunner(t, url)
			made := parseObject(t, operator("org", "create", "--name", "Über & Co", "--tier", "basic", "--subscription", "none", "--json"))
			require.Len(t, made, 1)
			id := made["organisation_id"].(string)
			require.NoError(t, uuid.Validate(id))
			require.Contains(t, operator("org", "create", "--name=Second"), "tier premium, subscription active")
			require.Contains(t, operator("org", "set-tier", id, "limited"), "tier limited")
			require.Contains(t, operator("org", "set-subscription", id, "active"), "subscription active")
			var listed []orgJSON
			require.NoError(t, json.Unmarshal([]byte(operator("org", "list", "--json")), &listed))
			require.Len(t, listed, 2)
			require.Equal(t, []any{"Über & Co", store.TierLimited, store.SubscriptionActive}, []any{listed[0].Name, listed[0].Tier, listed[0].Subscription})
			require.Regexp(t, `"created_at":"[0-9T:-]+\.[0-9]{6}\+00:00"`, operator("org", "list", "--json"), "times must have the form of the API")
			table := operator("org", "list")
			require.Contains(t, table, "NAME")
			require.Regexp(t, id+`\s+Über & Co\s+limited\s+active`, table)
		})
	}
}

// Requirements in docs/coverage.md: 5-04, 11.8-02
func TestTokenCommands_createListAndRevokeTokens(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	operator := newCommandRunner(t, db.URL)
	org := parseObject(t, operator("org", "create", "--name", "N", "--json"))["organisation_id"].(string)
	made := parseObject(t, operator("token", "create", "--org", org, "--name", "Reader", "--scopes", "read", "--expires", "4w2d", "--json"))
	require.Len(t, made, 2)
	secret, id := made["token"].(string), made["id"].(string)
	identity, err := db.Authenticate(t.Context(), secret)
	require.NoError(t, err)
	require.Equal(t, org, identity.Organisation.ID.String())
	require.Equal(t, []store.Scope{store.ScopeRead}, identity.Token.Scopes)
	require.WithinDuration(t, time.Now().Add(720*time.Hour), identity.Token.ExpiresAt.Time(), time.Minute)

	status, alone, explanation := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL}, "token", "create", "--org", "N", "--name", "Both")
	require.Zero(t, status, explanation)
	require.True(t, store.WellFormedToken(strings.TrimSuffix(alone, "\n")), "standard output must have only the token, but has %q", alone)
	require.Contains(t, explanation, "The new token of the organisation N is valid until it is revoked. Its name is Both")

	listed := operator("token", "list", "--org", org)
	require.Regexp(t, id+`\s+Reader\s+read\s+valid`, listed)
	require.NotContains(t, listed, "rt_")
	require.Contains(t, operator("token", "revoke", id), "is revoked")
	require.Contains(t, operator("token", "revoke", id), "is revoked", "revoking a revoked token must succeed")
	_, err = db.Authenticate(t.Context(), secret)
	require.ErrorIs(t, err, store.ErrTokenRevoked)
	var tokens []tokenJSON
	require.NoError(t, json.Unmarshal([]byte(operator("token", "list", "--org", org, "--json")), &tokens))
	require.Len(t, tokens, 2)
	require.Regexp(t, `"created_at":"[0-9T:-]+\.[0-9]{6}\+00:00","expires_at":null,"revoked_at":null`, operator("token", "list", "--org", org, "--json"), "times must have the form of the API")
	require.NotNil(t, tokens[0].RevokedAt)
	require.Nil(t, tokens[1].ExpiresAt)
	require.Nil(t, tokens[1].LastUsedAt)
	require.Equal(t, []store.Scope{store.ScopeRead, store.ScopeWrite}, tokens[1].Scopes)
}

func TestLoginLink_printsALinkForATokenOfTheOrganisation(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	operator := newCommandRunner(t, db.URL)
	operator("org", "create", "--name", "N")
	status, link, note := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_APP_URL": "https://reeltally.example.com/"},
		"login-link", "--org", "N", "--scopes", "read")
	require.Zero(t, status, note)
	secret, ok := strings.CutPrefix(strings.TrimSuffix(link, "\n"), "https://reeltally.example.com/login/")
	require.True(t, ok, link)
	require.Contains(t, note, "The link signs in to the organisation N. It works once, within 30 minutes.")
	db.Clock.Set(time.Now()) // the command uses the machine's clock, so the test's database must have the same time
	id, err := db.LoginLink(t.Context(), secret)
	require.NoError(t, err)
	require.Equal(t, "N", id.Organisation.Name)
	require.Equal(t, []store.Scope{store.ScopeRead}, id.Token.Scopes)
	require.WithinDuration(t, time.Now().Add(store.SessionLife), id.Token.ExpiresAt.Time(), time.Minute, "the token of a login link must be valid for store.SessionLife, the maximum duration of a session")
	require.Contains(t, operator("token", "list", "--org", "N"), "Login link")
	for _, wrong := range [][]string{{"--org", "N", "--app-url", "reeltally.example.com"}, {"--org", "N", "--scopes", "owner"}, {"--org", "unknown"}} {
		status, _, note := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL}, append([]string{"login-link"}, wrong...)...)
		require.NotZero(t, status)
		require.Contains(t, note, wrong[len(wrong)-1])
	}
}

func TestLoginLink_printsASetupLinkIfThereIsNoOrganisation(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	env := map[string]string{"REELTALLY_DATABASE_URL": db.URL, "REELTALLY_APP_URL": "https://reeltally.example.com/"}
	status, link, note := boottest.Run(t, run, nil, env, "login-link")
	require.Zero(t, status, note)
	secret, ok := strings.CutPrefix(strings.TrimSuffix(link, "\n"), "https://reeltally.example.com/setup/")
	require.True(t, ok, link)
	require.Contains(t, note, "The link creates the first organisation. It works once, within 30 minutes.")
	db.Clock.Set(time.Now()) // the command uses the machine's clock, so the test's database must have the same time
	_, err := db.SetUp(t.Context(), secret, "N")
	require.NoError(t, err)

	_, link, note = boottest.Run(t, run, nil, env, "login-link")
	require.Contains(t, link, "https://reeltally.example.com/login/")
	require.Contains(t, note, "The link signs in to the organisation N.", "if there is only one organisation, the command must not require --org")
	newCommandRunner(t, db.URL)("org", "create", "--name", "M")
	status, _, note = boottest.Run(t, run, nil, env, "login-link")
	require.Equal(t, 2, status)
	require.Contains(t, note, "there are 2 organisations: name one with --org")
}

func TestCommands_errorNamesTheInvalidArgument(t *testing.T) {
	t.Parallel()
	url := storetest.CreateDatabase(t, "sqlite")
	unknownID := store.NewID().String()
	for _, c := range []struct {
		args   string
		status int
		wants  []string
	}{
		{"org create", 2, []string{"--name"}},
		{"org create --name= ", 2, []string{"--name", "1 to 100"}},
		{"token create --name= --org " + unknownID, 2, []string{"--name", "1 to 100"}},
		{"org create --name N --tier gold", 2, []string{"--tier", `"premium"`, `"gold"`}},
		{"org create --name N --subscription maybe", 2, []string{"--subscription", `"maybe"`}},
		{"org set-tier nonsense basic", 1, []string{"no such organisation", "nonsense"}},
		{"org set-tier " + unknownID + " gold", 2, []string{`"gold"`}},
		{"org set-tier " + unknownID + " basic", 1, []string{"no such organisation", unknownID}},
		{"org set-subscription " + unknownID + " none", 1, []string{"no such organisation", unknownID}},
		{"token create --name N --org " + unknownID, 1, []string{"no such organisation", unknownID}},
		{"token create --name N --org " + unknownID + " --scopes owner", 2, []string{"--scopes", `"owner"`, "read, write"}},
		{"token create --name N --org " + unknownID + " --expires=-1h", 2, []string{"--expires", "-1h"}},
		{"token create --name N --org " + unknownID + " --expires 0", 2, []string{"--expires", `"0" is too short: the duration must be longer than 0`}},
		{"token create --name N --org " + unknownID + " --expires 0d", 2, []string{"--expires", `"0d" is too short: the duration must be longer than 0`}},
		{"token create --name N --org " + unknownID + " --expires 999999d", 2, []string{"--expires", `"999999d" is too long: the maximum is 106751d`}},
		{"token create --name N --org " + unknownID + " --expires soon", 2, []string{"--expires", `"soon"`, "30d"}},
		{"token list --org " + unknownID, 1, []string{"no such organisation"}},
		{"token revoke " + unknownID, 1, []string{"no such token"}},
		{"seed --videos 0", 2, []string{"--videos"}},
		{"seed --days 731", 2, []string{"731", "1 to 730"}},
		{"seed --orgs 0", 2, []string{"--orgs"}},
		{"seed --orgs 2 --org " + unknownID, 2, []string{"--org"}},
		{"seed --org " + unknownID, 1, []string{"no such organisation"}},
		{"import --org " + unknownID + " reeltally_test.go", 1, []string{"no such organisation", unknownID}},
		{"import --org Unknown reeltally_test.go", 1, []string{"no such organisation: Unknown"}},
		{"import reeltally_test.go", 2, []string{"--org"}},
		{"import --org N missing.csv", 1, []string{"missing.csv"}},
		{"import --org N --map a=b reeltally_test.go", 2, []string{`program: --map a=b: the field "b" must be one of `, "views"}},
		{"export --org " + unknownID, 1, []string{"no such organisation", unknownID}},
		{"export --org N --format xml", 2, []string{"--format", `"xml"`, "jsonl"}},
		{"export --org N --from 2026-02-30", 2, []string{"2026-02-30", "YYYY-MM-DD"}},
		{"export --org N --from 2026-02-02 --to 2026-02-01", 2, []string{"--from", "2026-02-02", "--to"}},
		{"export --org N --resume", 2, []string{"--resume", "--out"}},
		{"sandbox --listen nowhere", 1, []string{"nowhere"}},
		{"dance", 2, []string{"dance"}},
		{"", 2, []string{"expected one of"}},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Parallel()
			status, stdout, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, strings.Fields(c.args)...)
			require.Equal(t, c.status, status, stderr)
			require.Empty(t, stdout)
			for _, want := range c.wants {
				require.Contains(t, stderr, want)
			}
		})
	}
}

func TestMigrate_updatesSchema(t *testing.T) {
	t.Parallel()
	url := storetest.CreateEmptyDatabase(t, "postgres")
	env := map[string]string{"REELTALLY_DATABASE_URL": url}
	status, _, stderr := boottest.Run(t, run, nil, env, "org", "list")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "run `reeltally migrate`")
	operator := newCommandRunner(t, url)
	require.Regexp(t, `[0-9]+ migrations applied, up to number [0-9]+\.\n$`, operator("migrate"))
	require.Contains(t, operator("migrate"), "nothing to do")
	require.Contains(t, operator("org", "list"), "SUBSCRIPTION")

	operator = newCommandRunner(t, storetest.CreateEmptyDatabase(t, "sqlite"))
	require.Contains(t, operator("org", "create", "--name=First"), "First", "a command must create the schema of a new SQLite file")
	require.Contains(t, operator("migrate"), "nothing to do")
}

func TestCommands_nameASQLiteFileThatTheyCreate(t *testing.T) {
	t.Parallel()
	damaged := filepath.Join(t.TempDir(), "damaged.backup")
	require.NoError(t, os.WriteFile(damaged, []byte("PK"), 0o600))
	for _, test := range []struct {
		args   []string
		status int
	}{
		{[]string{"migrate"}, 0}, {[]string{"org", "create", "--name=First", "--json"}, 0}, {[]string{"restore", damaged}, 1},
	} {
		url := storetest.CreateEmptyDatabase(t, "sqlite")
		env := map[string]string{"REELTALLY_DATABASE_URL": url}
		status, _, stderr := boottest.Run(t, run, nil, env, test.args...)
		require.Equal(t, test.status, status, stderr)
		created := "The SQLite file " + strings.TrimPrefix(url, "sqlite:") + " did not exist and was created.\n"
		require.True(t, strings.HasPrefix(stderr, created) && (test.status != 0 || stderr == created), stderr)
		status, _, stderr = boottest.Run(t, run, nil, env, test.args...)
		require.Equal(t, test.status, status, stderr)
		require.NotContains(t, stderr, "was created", "the file exists already")
	}
}

func TestMigrate_dividesTheTablesBetweenTheNodesOfCitus(t *testing.T) {
	t.Parallel()
	for engine, because := range map[string]string{"sqlite": "this database is SQLite", "postgres": "CREATE EXTENSION citus", "citus": ""} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			url := storetest.CreateEmptyDatabase(t, engine)
			status, stdout, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, "migrate", "--citus")
			if because != "" {
				require.Equal(t, 1, status)
				require.Contains(t, stderr, because)
				return
			}
			require.Zero(t, status, stderr)
			require.Regexp(t, `Citus now distributes [0-9]+ tables: .*\bvideos\b.*\.\n$`, stdout)
			operator := newCommandRunner(t, url)
			require.Contains(t, operator("migrate", "--citus"), "already distributed")
			require.Contains(t, operator("org", "create", "--name=First"), "First")
		})
	}
}

// Requirements in docs/coverage.md: 11.8-03
func TestCommands_doNotCreateAMissingDatabase(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"status", "doctor", "export --org N", "import --org N reeltally_test.go", "org list", "org set-tier N basic", "token list --org N",
		"token create --org N --name T"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "data")
			path := filepath.Join(folder, "new.db")
			status, stdout, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": "sqlite:" + path}, strings.Fields(args)...)
			require.Equal(t, 1, status)
			require.Contains(t, stdout+stderr, path)
			require.Contains(t, stdout+stderr, "does not exist")
			require.NoDirExists(t, folder)
		})
	}
}

// Requirements in docs/coverage.md: 11.8-04
func TestCommands_acceptTheNameOfAnOrganisation(t *testing.T) {
	t.Parallel()
	url := storetest.CreateDatabase(t, "sqlite")
	operator := newCommandRunner(t, url)
	operator("org", "create", "--name=Northwind Studio")
	operator("org", "create", "--name=Twin")
	status, _, warning := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, "org", "create", "--name=Twin")
	require.Zero(t, status, warning)
	require.Contains(t, operator("org", "set-tier", "Northwind Studio", "basic"), "tier basic")
	require.Contains(t, operator("org", "set-subscription", "Northwind Studio", "none"), "subscription none")
	require.Contains(t, operator("token", "list", "--org=Northwind Studio"), "SCOPES")
	require.Contains(t, operator("seed", "--org=Northwind Studio", "--videos=5", "--days=2", "--json", "--log-level=warn"), "organisation_id")
	status, _, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, "token", "list", "--org=Twin")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, `2 organisations are named "Twin"`)
}

func TestLinks_describesEachLine(t *testing.T) {
	t.Parallel()
	input := "https://youtu.be/dQw4w9WgXcQ\r\n\nno link\n" + strings.Repeat("x", 3<<20) + "\nhttps://www.tiktok.com/@A.b/video/7301234567890123456\nhttps://vm.tiktok.com/ZMabcdefg/"
	status, stdout, _ := boottest.Run(t, run, strings.NewReader(input), nil, "links")
	require.Zero(t, status)
	noLink := `{"platform":null,"kind":null,"id":null,"handle":null,"canonical":null}`
	lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
	require.Equal(t, []string{
		`{"platform":"youtube","kind":"video","id":"dQw4w9WgXcQ","handle":null,"canonical":"https://www.youtube.com/watch?v=dQw4w9WgXcQ"}`,
		noLink, noLink, noLink,
		`{"platform":"tiktok","kind":"video","id":"7301234567890123456","handle":"a.b","canonical":"https://www.tiktok.com/@a.b/video/7301234567890123456"}`,
	}, lines[:5])
	require.Contains(t, lines[5], `"kind":"short"`)
	require.Len(t, lines, 6)
}

func TestLinks_writesDescriptionBeforeReadingNextLine(t *testing.T) {
	t.Parallel()
	in, feed := io.Pipe()
	p := boottest.Start(t, run, in, nil, "links")
	for i := range 3 {
		_, err := fmt.Fprintf(feed, "https://www.youtube.com/watch?v=dQw4w9WgXc%c\n", "QAE"[i])
		require.NoError(t, err)
		p.Stdout.Await(t, startTimeout, "dQw4w9WgXc"+string("QAE"[i]))
	}
	require.NoError(t, feed.Close())
	require.Zero(t, p.Wait())

	in, feed = io.Pipe()
	p = boottest.Start(t, run, in, nil, "links")
	require.Equal(t, 1, p.Stop(), "an interrupted command must fail, because it has not read all links")
	require.Contains(t, p.Stderr.String(), "incomplete")
	require.NoError(t, feed.Close())
}

func TestSandbox_printsOnlySettings(t *testing.T) {
	t.Parallel()
	p := boottest.Start(t, run, nil, nil, "sandbox", "--listen", "127.0.0.1:0")
	p.Stdout.Await(t, startTimeout, "REELTALLY_SHORTLINK_BASE_URL=")
	settings := map[string]string{}
	for line := range strings.Lines(p.Stdout.String()) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		require.True(t, ok && strings.HasPrefix(name, "REELTALLY_"), line)
		settings[name] = value
	}
	require.Equal(t, "true", settings["REELTALLY_SANDBOX"])
	require.NotEmpty(t, settings["REELTALLY_VENDOR"])
	require.NotEmpty(t, settings["REELTALLY_YOUTUBE_API_KEY"])
	base := strings.TrimSuffix(settings["REELTALLY_SHORTLINK_BASE_URL"], "/shortlinks")
	require.Contains(t, getText(t, base+"/_control/calls", ""), "youtube", "the sandbox must serve requests as soon as the settings are printed")
	require.Zero(t, p.Stop())
}

func TestVersion_commandAndFlagPrintNameAndVersion(t *testing.T) {
	t.Parallel()
	for _, argument := range []string{"version", "--version"} {
		var stdout, stderr bytes.Buffer
		p := boot.Process{Name: "reeltally", Args: []string{argument}, Env: func(string) (string, bool) { return "", false }, Stdout: &stdout, Stderr: &stderr}
		require.Zero(t, boot.Run(t.Context(), p, run), stderr.String())
		require.Equal(t, "reeltally "+boot.Version()+"\n", stdout.String(), argument)
	}
}

func TestSeed_createsSameDataOnSecondRun(t *testing.T) {
	t.Parallel()
	url := storetest.CreateDatabase(t, "sqlite")
	seedOnce := func() []string {
		var ids []string
		for line := range strings.Lines(runSeed(t, url, "--orgs", "2", "--videos", "20", "--days", "10", "--json")) {
			ids = append(ids, parseObject(t, line)["organisation_id"].(string))
		}
		return ids
	}
	ids := seedOnce()
	require.Len(t, ids, 2)
	require.Equal(t, ids, seedOnce(), "a second run with the same arguments must add no organisations")

	org := parseObject(t, newCommandRunner(t, url)("org", "create", "--name", "Mine", "--json"))["organisation_id"].(string)
	require.Contains(t, runSeed(t, url, "--org", org, "--videos", "20", "--days", "10"), "Organisation "+org+" has 20 videos with 10 days of history")
	status, _, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, "seed", "--org", org, "--videos", "30", "--days", "10")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "use an empty organisation")
}

func TestSeed_createsNoOrganisationsInADatabaseWithRealNumbers(t *testing.T) {
	t.Parallel()
	url := storetest.CreateDatabase(t, "sqlite")
	operator := newCommandRunner(t, url)
	operator("org", "create", "--name", "Mine")
	file := filepath.Join(t.TempDir(), "real.csv")
	text := "link,date,views\nhttps://youtu.be/dQw4w9WgXcQ," + time.Now().UTC().Format(time.DateOnly) + ",7\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	operator("import", "--org", "Mine", file)
	before := operator("org", "list")
	status, _, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, "seed", "--orgs", "2", "--videos", "5", "--days", "3")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, "this database has real numbers")
	require.Equal(t, before, operator("org", "list"))
}

// runSeed runs `reeltally seed` on the database with this URL and returns its standard output.
func runSeed(t *testing.T, url string, args ...string) string {
	t.Helper()
	status, stdout, stderr := boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": url}, append([]string{"seed"}, args...)...)
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, "points_per_second")
	return stdout
}

func getText(t *testing.T, url, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	require.NoError(t, err)
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode, string(body))
	return string(body)
}
