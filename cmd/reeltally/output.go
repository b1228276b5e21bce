package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/reeltally/reeltally/cmd/internal/boot"
)

// standardStream is the file name that means standard input or standard output.
const standardStream = "-"

// output is the place to which a command writes its file: either a path or a stream is set.
type output struct {
	// path leads to a regular file, or to a file that does not exist yet. If the file exists, path contains no symbolic links.
	path string
	// stream is standard output or another file that must not be replaced, such as a device or a named pipe. The command writes to it directly.
	stream io.WriteCloser
}

// isStandardOutput returns true if the command writes to standard output.
func (o output) isStandardOutput() bool {
	_, ok := o.stream.(nopCloser)
	return ok
}

// close closes the stream, if there is one.
func (o output) close() error {
	if o.stream == nil {
		return nil
	}
	return o.stream.Close()
}

// openOutput returns the output for the named file. The names "" and "-" mean standard output.
// openOutput refuses folders and the files of SQLite databases.
func openOutput(p boot.Process, name string) (output, error) {
	if name == "" || name == standardStream {
		return output{stream: nopCloser{p.Stdout}}, nil
	}
	refusal := fmt.Errorf("%s belongs to a SQLite database, which would be destroyed: choose another name", name)
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist) && isSQLiteFile(name): // for example the -wal file of a database that no program uses now
		return output{}, refusal
	case errors.Is(err, os.ErrNotExist):
		path, err := followLinks(name)
		return output{path: path}, err
	case err != nil:
		return output{}, err
	case info.IsDir():
		return output{}, fmt.Errorf("%s is a folder: name a file in it", name)
	case isSameFile(p.Stdout, info):
		return output{stream: nopCloser{p.Stdout}}, nil
	}
	if info.Mode().IsRegular() {
		if isSQLiteFile(name) {
			return output{}, refusal
		}
		path, err := filepath.EvalSymlinks(name)
		return output{path: path}, err
	}
	stream, err := os.OpenFile(name, os.O_WRONLY, 0) //nolint:gosec // the user names the file
	if err != nil {
		return output{}, err
	}
	return output{stream: stream}, nil
}

// maxLinksFollowed is the maximum number of symbolic links that followLinks follows, as in Linux.
const maxLinksFollowed = 40

// followLinks follows symbolic links and returns the path of the last target. The target need not
// exist. Without a link, followLinks returns the given path.
func followLinks(name string) (string, error) {
	for path, n := name, 0; n < maxLinksFollowed; n++ {
		target, err := os.Readlink(path)
		if err != nil { // path does not exist or is not a symbolic link
			return path, nil //nolint:nilerr // path is the result
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = target
	}
	return "", fmt.Errorf("%s is a symbolic link that leads to itself", name)
}

// isSameFile returns true if the stream and info belong to the same file. It returns false if the stream is not a file.
func isSameFile(stream any, info os.FileInfo) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	opened, err := file.Stat()
	return err == nil && os.SameFile(opened, info)
}

// isSQLiteFile returns true if the file at path is a SQLite database, or the -wal or -shm file of a SQLite database.
func isSQLiteFile(path string) bool {
	for _, suffix := range []string{"-wal", "-shm"} {
		if database, found := strings.CutSuffix(path, suffix); found && isSQLiteFile(database) {
			return true
		}
	}
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // ignore the error: the file was only read
	const header = "SQLite format 3\x00"
	start := make([]byte, len(header))
	_, err = io.ReadFull(file, start)
	return err == nil && bytes.Equal(start, []byte(header))
}

// nopCloser is a writer whose method Close does nothing.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
