// Command dist builds the files of a release into a folder. The files are an archive of the programs for each platform, a container image, the list
// of the used modules (SBOM), checksums, and the provenance. The provenance is a statement that names the commit and the built files. `make dist`
// runs the command. To read the code, start at the method release.build.
//
// Two builds of the same commit with the same version of Go give the same bytes.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	r := release{}
	flag.StringVar(&r.source, "source", "../..", "folder of the repository")
	flag.StringVar(&r.out, "out", "../../dist", "folder for the files; it is emptied first")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "platforms to build for")
	flag.Parse()
	for name := range strings.SplitSeq(*targets, ",") {
		system, architecture, _ := strings.Cut(name, "/")
		r.targets = append(r.targets, target{system, architecture})
	}
	if err := r.build(); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// programs are the names of the programs in a release. Each is a package in the folder cmd.
var programs = []string{"reeltally", "server", "collector"}

// target is a platform for which programs are built, named as in GOOS and GOARCH.
type target struct{ system, architecture string }

// fileName returns the file name of a program on the platform, such as "server.exe" on Windows.
func (t target) fileName(program string) string {
	if t.system == "windows" {
		return program + ".exe"
	}
	return program
}

// release describes one release: the commit to build, the platforms, and the folder for the files.
type release struct {
	source  string // folder of the repository
	out     string // folder to which the files are written
	targets []target

	version  string    // output of git describe, such as "v1.2.0"; it ends in -dirty if there are changes that are not committed
	revision string    // hash of the commit
	time     time.Time // time of the commit, which is the time of all files in archives
}

// build writes all files of the release into r.out.
func (r *release) build() error {
	if err := r.readCommit(); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "reeltally-dist")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	modules := modules{}
	images := []image{}
	for n, t := range r.targets {
		fmt.Fprintf(os.Stderr, "building for %s/%s (%d of %d)\n", t.system, t.architecture, n+1, len(r.targets))
		folder := filepath.Join(work, t.system+"-"+t.architecture)
		if err := r.compilePrograms(t, folder); err != nil {
			return err
		}
		if err := modules.addPrograms(t, folder); err != nil {
			return err
		}
		if err := r.writeArchive(t, folder); err != nil {
			return err
		}
		if t.system == "linux" {
			images = append(images, image{t, folder})
		}
	}
	if err := r.writeModules(modules); err != nil {
		return err
	}
	if len(images) > 0 {
		if err := r.writeImages(images); err != nil {
			return err
		}
	}
	files, err := r.checksums()
	if err != nil {
		return err
	}
	if err := r.writeProvenance(files, modules.compiler); err != nil {
		return err
	}
	return r.writeChecksums()
}

// readCommit reads the version, the hash and the time of the current commit from git, and stores them in r.
func (r *release) readCommit() (err error) {
	var seconds string
	for _, read := range []struct {
		into *string
		args []string
	}{
		{&r.version, []string{"describe", "--tags", "--always", "--dirty"}},
		{&r.revision, []string{"rev-parse", "HEAD"}},
		{&seconds, []string{"log", "-1", "--format=%ct"}},
	} {
		out, err := exec.Command("git", append([]string{"-C", r.source}, read.args...)...).Output()
		if err != nil {
			return fmt.Errorf("git %s: %w", strings.Join(read.args, " "), err)
		}
		*read.into = strings.TrimSpace(string(out))
	}
	at, err := strconv.ParseInt(seconds, 10, 64)
	r.time = time.Unix(at, 0).UTC()
	return err
}

// compilePrograms builds all programs for a target into a folder. The programs are static and contain no path of this machine.
func (r *release) compilePrograms(t target, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	args := []string{"build", "-C", r.source, "-trimpath", "-buildvcs=true", "-ldflags=-s -w -X github.com/reeltally/reeltally/cmd/internal/boot.release=" + r.version, "-o", folder + string(filepath.Separator)}
	for _, program := range programs {
		args = append(args, "./cmd/"+program)
	}
	build := exec.Command("go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS="+t.system, "GOARCH="+t.architecture)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

// checksums returns a map from the names of the files in r.out to their SHA-256 in hexadecimal. It leaves out folders.
func (r *release) checksums() (map[string]string, error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return nil, err
	}
	sums := map[string]string{}
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		if sums[entry.Name()], err = fileChecksum(filepath.Join(r.out, entry.Name())); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

func fileChecksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// writeChecksums writes checksums.txt, which `sha256sum --check` reads.
func (r *release) writeChecksums() error {
	sums, err := r.checksums()
	if err != nil {
		return err
	}
	var lines []string
	for name, sum := range sums {
		lines = append(lines, sum+"  "+name+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(strings.Join(lines, "")), 0o644)
}
