package e2e_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/store/storetest"
)

// sdkVideos is the number of videos that each program in testdata/sdks tracks.
const sdkVideos = 10_000

// goModule is the path of this repository's Go module.
const goModule = "github.com/reeltally/reeltally"

// sdkTest has the folders and the server with which TestSDKs_installedPackagesWork tests the client libraries.
type sdkTest struct {
	*stack
	root  string // the root of this repository
	clone string // a clone of this repository in a folder with the name reeltally, with all files that git does not ignore, including uncommitted changes
}

// runTool runs a program in a folder and returns its standard output. The program gets the environment of the test and the variables in
// env.
func runTool(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	var failed strings.Builder
	c.Stderr = &failed
	out, err := c.Output()
	require.NoError(t, err, "%s %s\n%s%s", name, strings.Join(args, " "), out, failed.String())
	return string(out)
}

func copyFiles(t *testing.T, dir string, paths ...string) {
	t.Helper()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600))
	}
}

// globFiles returns the files that match a pattern. It fails the test if no file matches.
func globFiles(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, found, pattern)
	return found
}

// cloneRepository makes a git repository with one commit, which has all files of this repository that git does not ignore.
func cloneRepository(t *testing.T, root string) string {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "reeltally")
	require.NoError(t, os.Mkdir(clone, 0o700))
	runTool(t, root, nil, "bash", "-euo", "pipefail", "-c", `git ls-files -z --cached --others --exclude-standard --deduplicate |
		while IFS= read -r -d '' file; do [[ ! -f $file ]] || printf '%s\0' "$file"; done | tar --create --null --files-from=- | tar --extract --directory="$0"`, clone)
	git := []string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "--all"}, {"commit", "--quiet", "--message=Copy the files"}} {
		runTool(t, clone, nil, "git", append(slices.Clone(git), args...)...)
	}
	return clone
}

// newCallerFolder makes a folder with the given name beside the clone. In this folder, the path of the clone is ../reeltally, as in docs/clients.md.
func (s *sdkTest) newCallerFolder(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(s.clone), name)
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// install runs the commands with which docs/clients.md installs the library in gen/<library>.
func (s *sdkTest) install(t *testing.T, library, dir string, env ...string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(s.clone, "docs/clients.md"))
	require.NoError(t, err)
	block := regexp.MustCompile(`(?s)\n\[[^\n]*\]\(\.\./gen/` + library + `/README\.md\).*?` + "```sh\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, block, "docs/clients.md must say how to install gen/%s", library)
	runTool(t, dir, env, "bash", "-euc", string(block[1]))
}

// runProgram runs a program that uses an installed library. It checks the numbers that the program
// prints and the videos that the program exports.
func (s *sdkTest) runProgram(t *testing.T, name string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "videos.csv")
	env := []string{"REELTALLY_URL=" + s.base, "REELTALLY_TOKEN=" + s.newOrganisation(t)}
	// The last argument of the program is the path of the exported file.
	printed := runTool(t, t.TempDir(), env, name, append(args, file)...)
	require.Equal(t, fmt.Sprintf("%d 5 %d %d\n", sdkVideos, sdkVideos, sdkVideos), printed, "the program must print four numbers: the tracked videos, the videos on one page, the total of the list, and the videos on all pages")
	exported, err := os.Open(file)
	require.NoError(t, err)
	defer func() { _ = exported.Close() }()
	rows, err := csv.NewReader(exported).ReadAll()
	require.NoError(t, err)
	column := slices.Index(rows[0], "ad_id")
	require.GreaterOrEqual(t, column, 0, rows[0])
	ids := map[string]bool{}
	for _, row := range rows[1:] {
		ids[row[column]] = true
	}
	require.Len(t, rows, 1+sdkVideos)
	require.Len(t, ids, sdkVideos)
}

// goEnvironment returns environment variables. With them, the go command looks for modules first in the existing module cache.
func (s *sdkTest) goEnvironment(t *testing.T) []string {
	t.Helper()
	var set struct{ GOMODCACHE, GOPROXY string }
	require.NoError(t, json.Unmarshal([]byte(runTool(t, s.root, nil, "go", "env", "-json", "GOMODCACHE", "GOPROXY")), &set))
	return []string{
		"GONOPROXY=" + goModule, "GONOSUMDB=" + goModule, "GOPROXY=file://" + filepath.ToSlash(set.GOMODCACHE) + "/cache/download," + set.GOPROXY,
		"GOMODCACHE=" + t.TempDir(), "GOFLAGS=-modcacherw -trimpath", "GOWORK=off", "CGO_ENABLED=0",
	}
}

// TestSDKs_installedPackagesWork installs each client library from a clone, as its users do. It checks the types of
// programs that use the library, and runs these programs.
//
// Requirements in docs/coverage.md: 14.2-06, 14.6-04
func TestSDKs_installedPackagesWork(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	s := &sdkTest{stack: &stack{env: []string{"REELTALLY_DATABASE_URL=" + storetest.CreateDatabase(t, storetest.Engines[0]), "REELTALLY_LISTEN=127.0.0.1:0", "REELTALLY_RATE_LIMITS=off"}},
		root: root, clone: cloneRepository(t, root)}
	s.startServer(t)
	t.Run("Go", s.testGo)
	t.Run("Go from a git repository", s.testGoFromGit)
	t.Run("TypeScript", s.testTypeScript)
	t.Run("Python", s.testPython)
}

func (s *sdkTest) testGo(t *testing.T) {
	t.Parallel()
	dir := s.newCallerFolder(t, "go")
	env := append(s.goEnvironment(t), "GOVCS=*:off") // the go command must not look for this repository's module in the network
	copyFiles(t, dir, "testdata/sdks/program.go")
	runTool(t, dir, env, "go", "mod", "init", "example.com/caller")
	s.install(t, "client", dir, env...)
	for _, example := range globFiles(t, filepath.Join(s.clone, "gen/client/examples/*/main.go")) {
		folder := filepath.Join(dir, filepath.Base(filepath.Dir(example)))
		require.NoError(t, os.Mkdir(folder, 0o700))
		copyFiles(t, folder, example)
	}
	runTool(t, dir, env, "go", "vet", "./...")
	runTool(t, dir, env, "go", "build", "-o", "caller", ".")
	s.runProgram(t, filepath.Join(dir, "caller"))
}

// testGoFromGit installs the Go client from a git repository, without a replace directive in go.mod. Callers can do this if they can reach the repository.
func (s *sdkTest) testGoFromGit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	env := append(s.goEnvironment(t), "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://"+s.clone+".insteadOf", "GIT_CONFIG_VALUE_0=https://"+goModule)
	copyFiles(t, dir, "testdata/sdks/program.go", filepath.Join(s.root, "go.sum")) // go.sum has the checksums, so the go command does not ask the checksum database
	runTool(t, dir, env, "go", "mod", "init", "example.com/caller")
	runTool(t, dir, env, "go", "get", goModule+"/gen/client")
	runTool(t, dir, env, "go", "mod", "tidy")
	runTool(t, dir, env, "go", "build", "-o", "caller", ".")
	used := runTool(t, dir, env, "go", "list", "-m", "-f", "{{.Version}} {{with .Replace}}{{.Path}}{{end}}", goModule)
	require.Regexp(t, `^v0\.0\.0-\d{14}-[0-9a-f]{12} \n$`, used, "the program must depend on the commit of the cloned repository, without a replace directive")
}

// tsconfig is a format string for a configuration of TypeScript with the strictest settings. Its argument is
// the path of a folder with the types of Node.
const tsconfig = `{"compilerOptions": {"strict": true, "exactOptionalPropertyTypes": true, "noUncheckedIndexedAccess": true, "noImplicitReturns": true, "noUnusedLocals": true,
  "noUnusedParameters": true, "noImplicitOverride": true, "noFallthroughCasesInSwitch": true, "skipLibCheck": false, "allowJs": true, "checkJs": true, "target": "es2022",
  "module": "nodenext", "lib": ["es2023", "dom", "dom.iterable"], "types": ["node"], "typeRoots": [%q], "outDir": "compiled"}, "include": ["*.ts", "*.mjs"]}`

func (s *sdkTest) testTypeScript(t *testing.T) {
	t.Parallel()
	tools, dir := t.TempDir(), s.newCallerFolder(t, "typescript")
	copyFiles(t, tools, "testdata/sdks/package.json", "testdata/sdks/package-lock.json", "testdata/sdks/.npmrc")
	runTool(t, tools, nil, "npm", "ci", "--silent")

	s.install(t, "typescript", dir, "npm_config_loglevel=silent", "npm_config_audit=false", "npm_config_fund=false")
	copyFiles(t, dir, globFiles(t, filepath.Join(s.clone, "gen/typescript/examples/*.mjs"))...)
	copyFiles(t, dir, "testdata/sdks/program.ts")
	hosted := filepath.Join(s.root, "server/testdata/hosted")
	text, err := os.ReadFile(filepath.Join(hosted, "program.ts"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hosted.ts"), text, 0o600))
	runTool(t, dir, nil, "npm", "pkg", "set", "type=module") // the programs are ES modules
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tsconfig.json"), fmt.Appendf(nil, tsconfig, filepath.Join(tools, "node_modules/@types")), 0o600))
	runTool(t, dir, nil, filepath.Join(tools, "node_modules/.bin/tsc"))

	s.runProgram(t, "node", filepath.Join(dir, "compiled/program.js"))
	require.Equal(t, s.requestedOperations(t, filepath.Join(hosted, "program.mjs")), s.requestedOperations(t, filepath.Join(dir, "compiled/hosted.js")),
		"two programs were written for the hosted interface, in TypeScript and in JavaScript: both must call the same operations")
}

// anyID matches an id or a percent-encoded link in a path.
var anyID = regexp.MustCompile(`/([0-9a-f-]{36}|https%3A[^/]*)`)

// requestedOperations runs a JavaScript program for the hosted interface, and returns the methods and paths of its requests,
// sorted and without duplicates. {} replaces each id and each link in the paths.
func (s *sdkTest) requestedOperations(t *testing.T, program string) []string {
	t.Helper()
	target, err := url.Parse(s.base)
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	var mu sync.Mutex
	var called []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		called = append(called, r.Method+" "+anyID.ReplaceAllString(r.URL.EscapedPath(), "/{}"))
		mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	require.Equal(t, "done\n", runTool(t, t.TempDir(), []string{"REELTALLY_URL=" + proxy.URL, "REELTALLY_TOKEN=" + s.newOrganisation(t)}, "node", program))
	slices.Sort(called)
	return slices.Compact(called)
}

func (s *sdkTest) testPython(t *testing.T) {
	t.Parallel()
	dir := s.newCallerFolder(t, "python")
	// newEnvironment makes a virtual environment, installs packages if any are given, and returns the path of its interpreter.
	newEnvironment := func(name string, packages ...string) string {
		runTool(t, dir, nil, "python3", "-m", "venv", name)
		python := filepath.Join(dir, name, "bin/python")
		if len(packages) > 0 {
			runTool(t, dir, nil, python, append([]string{"-m", "pip", "install", "--quiet", "--disable-pip-version-check"}, packages...)...)
		}
		return python
	}
	requirements, err := filepath.Abs("testdata/sdks/requirements.txt")
	require.NoError(t, err)
	checker := newEnvironment("checker", "--require-hashes", "--only-binary=:all:", "--requirement", requirements)
	library := filepath.Join(s.clone, "gen/python")
	caller := newEnvironment("caller")
	s.install(t, "python", dir, "PIP_QUIET=1", "PIP_DISABLE_PIP_VERSION_CHECK=1", "PATH="+filepath.Dir(caller)+":"+os.Getenv("PATH"))
	require.Empty(t, runTool(t, s.clone, nil, "git", "status", "--porcelain", "--ignored", "gen/python"), "the installation must leave no files in the clone")

	programs := filepath.Join(dir, "programs")
	require.NoError(t, os.Mkdir(programs, 0o700))
	copyFiles(t, programs, globFiles(t, filepath.Join(library, "examples/*.py"))...)
	copyFiles(t, programs, globFiles(t, filepath.Join(s.root, "server/testdata/sdk/*.py"))...)
	copyFiles(t, programs, "testdata/sdks/program.py")
	runTool(t, programs, nil, checker, "-m", "mypy", "--strict", "--python-executable", caller, ".")
	runTool(t, library, nil, checker, "-m", "mypy", "--strict", "--cache-dir", filepath.Join(dir, "cache"), "src/reeltally")
	s.runProgram(t, caller, filepath.Join(programs, "program.py"))
}
