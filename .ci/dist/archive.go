package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// archiveFile is a file that is added to an archive.
type archiveFile struct {
	name string // name in the archive
	path string // file on disk
	mode int64
}

// writeArchive packs the programs in a folder, LICENSE, README.md and SECURITY.md into one archive. The archive is a zip file for Windows, and a
// tar.gz file for other systems.
func (r *release) writeArchive(t target, folder string) (err error) {
	name := fmt.Sprintf("reeltally_%s_%s_%s", r.version, t.system, t.architecture)
	var files []archiveFile
	for _, program := range programs {
		files = append(files, archiveFile{name + "/" + t.fileName(program), filepath.Join(folder, t.fileName(program)), 0o755})
	}
	for _, document := range []string{"LICENSE", "README.md", "SECURITY.md"} {
		files = append(files, archiveFile{name + "/" + document, filepath.Join(r.source, document), 0o644})
	}
	pack, suffix := r.writeTar, ".tar.gz"
	if t.system == "windows" {
		pack, suffix = r.writeZip, ".zip"
	}
	out, err := os.Create(filepath.Join(r.out, name+suffix))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return pack(out, files)
}

func (r *release) writeTar(out io.Writer, files []archiveFile) error {
	compressed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, file := range files {
		if err := r.addToTar(archive, file, 0); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// addToTar adds a file to a tar archive. ownerID is the id of the file's owner and group in the archive.
func (r *release) addToTar(archive *tar.Writer, file archiveFile, ownerID int) error {
	info, err := os.Stat(file.path)
	if err != nil {
		return err
	}
	header := tar.Header{Typeflag: tar.TypeReg, Name: file.name, Size: info.Size(), Mode: file.mode, Uid: ownerID, Gid: ownerID, ModTime: r.time, Format: tar.FormatUSTAR}
	if err := archive.WriteHeader(&header); err != nil {
		return err
	}
	return copyFile(archive, file.path)
}

func (r *release) writeZip(out io.Writer, files []archiveFile) error {
	archive := zip.NewWriter(out)
	for _, file := range files {
		header := zip.FileHeader{Name: file.name, Method: zip.Deflate, Modified: r.time}
		header.SetMode(os.FileMode(file.mode)) //nolint:gosec // the modes are constants, so the conversion cannot overflow
		entry, err := archive.CreateHeader(&header)
		if err != nil {
			return err
		}
		if err := copyFile(entry, file.path); err != nil {
			return err
		}
	}
	return archive.Close()
}

func copyFile(out io.Writer, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	_, err = io.Copy(out, in)
	return err
}
