package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func requireValue[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// extractTar writes all files of a tar archive directly into a folder, without the folders of the archive. It returns the headers of the archive's
// files and folders by their names.
func extractTar(t *testing.T, packed io.Reader, folder string) map[string]*tar.Header {
	t.Helper()
	found := map[string]*tar.Header{}
	for archive := tar.NewReader(packed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found[header.Name] = header
		if header.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(folder, filepath.Base(header.Name))
		if err := os.WriteFile(path, requireValue[[]byte](t)(io.ReadAll(archive)), header.FileInfo().Mode()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDist_releaseIsCompleteAndItsProgramsRun builds a release for Linux on this machine's architecture. It runs the programs in the archive and
// in the container image.
func TestDist_releaseIsCompleteAndItsProgramsRun(t *testing.T) {
	out := t.TempDir()
	r := release{source: "../..", out: out, targets: []target{{"linux", runtime.GOARCH}}}
	if err := r.build(); err != nil {
		t.Fatal(err)
	}

	check := exec.Command("sha256sum", "--check", "--strict", "checksums.txt")
	check.Dir = out
	checked := string(requireValue[[]byte](t)(check.CombinedOutput()))
	archive := "reeltally_" + r.version + "_linux_" + runtime.GOARCH
	for _, name := range []string{archive + ".tar.gz", "sbom.cdx.json", "provenance.json"} {
		if !strings.Contains(checked, name+": OK") {
			t.Errorf("checksums.txt lacks %s:\n%s", name, checked)
		}
	}

	unpacked := t.TempDir()
	packed := requireValue[*os.File](t)(os.Open(filepath.Join(out, archive+".tar.gz")))
	defer func() { _ = packed.Close() }()
	entries := extractTar(t, requireValue[*gzip.Reader](t)(gzip.NewReader(packed)), unpacked)
	for _, name := range []string{"reeltally", "server", "collector", "LICENSE", "README.md"} {
		if header := entries[archive+"/"+name]; header == nil || !header.ModTime.Equal(r.time) {
			t.Errorf("the archive must have the file %s with the time of the commit, %s, but has %+v", name, r.time, header)
		}
	}
	requireVersionAndNoBuildPath(t, filepath.Join(unpacked, "reeltally"), r.version)
	testReadmeCommands(t, filepath.Join(out, archive+".tar.gz"), r)

	var bom cdx.BOM
	decodeJSONFile(t, filepath.Join(out, "sbom.cdx.json"), &bom)
	info := requireValue[*buildinfo.BuildInfo](t)(buildinfo.ReadFile(filepath.Join(unpacked, "server")))
	listed := map[string]string{}
	for _, component := range *bom.Components {
		listed[component.Name] = component.Version
	}
	for _, module := range info.Deps {
		if listed[module.Path] != module.Version {
			t.Errorf("the SBOM lists the module %s with version %q instead of %q", module.Path, listed[module.Path], module.Version)
		}
	}
	var statement struct {
		Subject []struct {
			Name   string
			Digest struct{ SHA256 string }
		}
		Predicate struct {
			BuildDefinition struct {
				ResolvedDependencies []struct {
					Digest struct{ GitCommit string }
				}
			}
		}
	}
	decodeJSONFile(t, filepath.Join(out, "provenance.json"), &statement)
	if len(statement.Subject) != 2 || statement.Subject[0].Digest.SHA256 != requireValue[string](t)(fileChecksum(filepath.Join(out, statement.Subject[0].Name))) {
		t.Errorf("the provenance must name two files with their SHA-256, but has the subjects %+v", statement.Subject)
	}
	if got := statement.Predicate.BuildDefinition.ResolvedDependencies[0].Digest.GitCommit; got != r.revision {
		t.Errorf("the provenance names the commit %q instead of %q", got, r.revision)
	}

	requireImage(t, out, r)
	again := release{source: r.source, out: t.TempDir(), version: r.version, revision: r.revision, time: r.time}
	if err := again.writeImages([]image{{r.targets[0], unpacked}}); err != nil {
		t.Fatal(err)
	}
	first, second := requireValue[[]byte](t)(os.ReadFile(filepath.Join(out, "image", "index.json"))), requireValue[[]byte](t)(os.ReadFile(filepath.Join(again.out, "image", "index.json")))
	if string(first) != string(second) {
		t.Errorf("two builds from the same programs must give equal images, but the index files are:\n%s\n%s", first, second)
	}
}

func decodeJSONFile(t *testing.T, path string, into any) {
	t.Helper()
	if err := json.Unmarshal(requireValue[[]byte](t)(os.ReadFile(path)), into); err != nil {
		t.Fatal(err)
	}
}

// requireVersionAndNoBuildPath fails the test if the program does not print its version, or if its file contains the path of the repository on
// the machine that built it.
func requireVersionAndNoBuildPath(t *testing.T, program, version string) {
	t.Helper()
	printed := string(requireValue[[]byte](t)(exec.Command(program, "version").Output()))
	if printed != "reeltally "+version+"\n" {
		t.Errorf("the command `%s version` prints %q instead of the version %q", program, printed, version)
	}
	root := requireValue[string](t)(filepath.Abs("../.."))
	if strings.Contains(string(requireValue[[]byte](t)(os.ReadFile(program))), root+"/cmd") {
		t.Errorf("%s contains the path of the repository on the machine that built it", program)
	}
}

// readmeCommands matches the commands of README.md that unpack an archive and start ReelTally.
var readmeCommands = regexp.MustCompile("(?s)```sh\n(tar [^`]*_linux_amd64\\.tar\\.gz .*?\n\\./reeltally up .*?)```")

// testReadmeCommands runs the commands of README.md that unpack an archive, in a new folder. These commands must start a server, which must
// stop at SIGINT.
func testReadmeCommands(t *testing.T, archive string, r release) {
	t.Helper()
	readme := requireValue[[]byte](t)(os.ReadFile(filepath.Join(r.source, "README.md")))
	found := readmeCommands.FindSubmatch(readme)
	if found == nil {
		t.Fatal("README.md must have commands that unpack an archive and run `./reeltally up`")
	}
	commands := string(found[1])
	folder := t.TempDir()
	// The commands unpack this copy of the archive.
	packed := requireValue[[]byte](t)(os.ReadFile(archive))
	if err := os.WriteFile(filepath.Join(folder, filepath.Base(archive)), packed, 0o600); err != nil {
		t.Fatal(err)
	}
	commands = strings.NewReplacer("amd64", runtime.GOARCH, "./reeltally up", "exec ./reeltally up").Replace(commands) // exec replaces the shell by the program, so that the program gets the signal
	up := exec.Command("bash", "-e", "-c", commands)
	up.Dir = folder
	up.Env = []string{"HOME=" + up.Dir, "PATH=" + os.Getenv("PATH"), "REELTALLY_LISTEN=127.0.0.1:0"}
	printed := requireValue[io.ReadCloser](t)(up.StdoutPipe())
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = up.Process.Kill() }()
	var base, token string
	lines := bufio.NewScanner(printed)
	for lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C stops.") {
		if _, address, found := strings.Cut(lines.Text(), "ReelTally runs at "); found {
			base = strings.TrimSpace(address)
		}
		if text := strings.TrimSpace(lines.Text()); strings.HasPrefix(text, "rt_") {
			token = text
		}
	}
	// The API must answer a request that carries the printed token.
	request := requireValue[*http.Request](t)(http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/videos?limit=1", nil))
	request.Header.Set("Authorization", "Bearer "+token)
	response := requireValue[*http.Response](t)(http.DefaultClient.Do(request))
	body := string(requireValue[[]byte](t)(io.ReadAll(response.Body)))
	_ = response.Body.Close()
	if response.StatusCode != http.StatusOK || !strings.Contains(body, `"latest_views"`) || response.Header.Get("ReelTally-Sandbox") != "true" {
		t.Errorf("`reeltally up` of version %s answers GET /videos with the status %d and the body %s", r.version, response.StatusCode, body)
	}
	if err := up.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, printed)
	if err := up.Wait(); err != nil {
		t.Errorf("`reeltally up` must end with status 0 after SIGINT, but: %v", err)
	}
}

// requireImage checks the container image in the folder out/image. The folder must be a valid OCI
// image layout.
func requireImage(t *testing.T, out string, r release) {
	t.Helper()
	index := requireValue[v1.ImageIndex](t)(layout.ImageIndexFromPath(filepath.Join(out, "image")))
	if err := validate.Index(index); err != nil {
		t.Fatal(err)
	}
	manifest := requireValue[*v1.IndexManifest](t)(index.IndexManifest())
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Platform.Architecture != runtime.GOARCH {
		t.Fatalf("the image must have only the platform of this machine, but has %+v", manifest.Manifests)
	}
	built := requireValue[v1.Image](t)(index.Image(manifest.Manifests[0].Digest))
	config := requireValue[*v1.ConfigFile](t)(built.ConfigFile()).Config
	if config.User != "65532:65532" || config.Entrypoint[0] != "/reeltally" || config.Labels["org.opencontainers.image.revision"] != r.revision {
		t.Errorf("the image must have the user 65532:65532, the entry point /reeltally and the commit %s, but has the configuration %+v", r.revision, config)
	}
	layers := requireValue[[]v1.Layer](t)(built.Layers())
	folder := t.TempDir()
	content := requireValue[io.ReadCloser](t)(layers[0].Uncompressed())
	defer func() { _ = content.Close() }()
	entries := extractTar(t, content, folder)
	if data := entries["data/"]; data == nil || data.Uid != user {
		t.Errorf("the image must have the folder `data/`, and user %d must own it; its tar header is %+v", user, data)
	}
	requireVersionAndNoBuildPath(t, filepath.Join(folder, "reeltally"), r.version)
	if config.Healthcheck == nil || !slices.Equal(config.Healthcheck.Test, []string{"CMD", "/reeltally", "healthcheck"}) {
		t.Fatalf("the health check of the image must be `/reeltally healthcheck`, but is %+v", config.Healthcheck)
	}
	// The health check must succeed at status 200 and fail at status 503.
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer server.Close()
	for _, status = range []int{http.StatusOK, http.StatusServiceUnavailable} {
		health := exec.Command(filepath.Join(folder, config.Healthcheck.Test[1]), config.Healthcheck.Test[2], server.URL+"/readyz")
		if out, err := health.CombinedOutput(); (err == nil) != (status == http.StatusOK) {
			t.Errorf("the result of the health check is wrong: server status %d, error %v, output: %s", status, err, out)
		}
	}
}
