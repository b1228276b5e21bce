package transfer

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// stateFile is a JSON file with the progress of an export, so that an interrupted export can be resumed.
type stateFile struct {
	Path string
	// OnError is called if the state cannot be saved or removed. The export continues, but it cannot be resumed if it is interrupted.
	OnError func(error)

	disabled bool // set after the first failed save
}

// load decodes the saved state from the file into v.
func (s *stateFile) load(v any) error {
	text, err := os.ReadFile(s.Path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// save atomically replaces the content of the file with v as JSON. If a call fails, all later calls do nothing.
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

// remove deletes the state file.
func (s *stateFile) remove() {
	if err := os.Remove(s.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.OnError(err)
	}
}

// writeAtomically writes text to a temporary file with mode 0600 and renames this file to path.
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
