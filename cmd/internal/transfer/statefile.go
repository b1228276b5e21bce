package transfer

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// stateFile is a JSON file with the progress of an export. With it, an interrupted export can continue.
type stateFile struct {
	Path string
	// OnError is called if the state file cannot be written or deleted. The export goes on, but its
	// further progress is not saved.
	OnError func(error)

	disabled bool // true after save has failed once; further calls of save do nothing
}

// load decodes the JSON in the file into the value to which v points.
func (s *stateFile) load(v any) error {
	text, err := os.ReadFile(s.Path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// save replaces the content of the file with v as JSON, in one step. If this fails, save calls OnError, and later calls of save do
// nothing.
func (s *stateFile) save(v any) {
	if s.disabled {
		return
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = writeAtomically(s.Path, text)
	}
	if err != nil {
		s.disabled = true
		s.OnError(err)
	}
}

func (s *stateFile) remove() {
	if err := os.Remove(s.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.OnError(err)
	}
}

// writeAtomically writes a temporary file with mode 0600 and renames it to path. If the program
// crashes before the renaming, the old file is unchanged.
func writeAtomically(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
