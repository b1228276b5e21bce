package main

import (
	"archive/tar"
	"bytes"
	"io"
	"path/filepath"
	"strconv"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the id of the operating system user that runs the programs in a container.
const user = 65532

// image is the container image for one platform. The images of all platforms are variants of one multi-platform image.
type image struct {
	target
	folder string // folder with the programs that were built for this platform
}

// writeImages writes one container image, with a variant for each platform, as an OCI image layout into the folder "image" in r.out.
func (r *release) writeImages(images []image) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, i := range images {
		built, err := r.newImage(i)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: built,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: i.system, Architecture: i.architecture}}})
	}
	_, err := layout.Write(filepath.Join(r.out, "image"), index)
	return err
}

// newImage returns the container image for one platform. The image has no certificate files, because
// the programs contain the root certificates.
func (r *release) newImage(i image) (v1.Image, error) {
	content, err := r.layerContent(i)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	built := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	built, err = mutate.Append(built, mutate.Addendum{Layer: layer, MediaType: types.OCILayer, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "make dist"}})
	if err != nil {
		return nil, err
	}
	config, err := built.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = i.system, i.architecture, v1.Time{Time: r.time}
	id := strconv.Itoa(user)
	config.Config = v1.Config{
		User:         id + ":" + id,
		Entrypoint:   []string{"/reeltally"},
		WorkingDir:   "/",
		Env:          []string{"PATH=/", "REELTALLY_LISTEN=0.0.0.0:8080"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
		Volumes:      map[string]struct{}{"/data": {}},
		StopSignal:   "SIGTERM",
		Healthcheck:  &v1.HealthConfig{Test: []string{"CMD", "/reeltally", "healthcheck"}, Interval: 10 * time.Second, Timeout: 5 * time.Second, StartPeriod: 30 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title":    "ReelTally",
			"org.opencontainers.image.source":   "https://github.com/reeltally/reeltally",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.revision": r.revision,
			"org.opencontainers.image.created":  r.time.Format(time.RFC3339),
		},
	}
	return mutate.ConfigFile(built, config)
}

// layerContent returns a tar archive of the files and folders that the container image has on one platform.
func (r *release) layerContent(i image) ([]byte, error) {
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, folder := range []struct {
		name string
		mode int64
		user int
	}{{"data/", 0o750, user}, {"tmp/", 0o1777, 0}} {
		err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder.name, Mode: folder.mode, Uid: folder.user, Gid: folder.user, ModTime: r.time, Format: tar.FormatUSTAR})
		if err != nil {
			return nil, err
		}
	}
	for _, program := range programs {
		if err := r.addToTar(archive, archiveFile{program, filepath.Join(i.folder, i.fileName(program)), 0o755}, 0); err != nil {
			return nil, err
		}
	}
	err := archive.Close()
	return out.Bytes(), err
}
