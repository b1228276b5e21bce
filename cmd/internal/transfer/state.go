package transfer

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
)

// State is a small file beside another that says how far it was when it was broken off.
type State struct {
	Path string
	// Failed is told when it cannot be written: the work goes on, but would begin anew.
	Failed func(error)

	given bool // up
}

// read returns what is remembered.
func (s *State) read(v any) error {
	text, err := os.ReadFile(s.Path)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// save remembers, whole or not at all.
func (s *State) save(v any) {
	if s.given {
		return
	}
	text, err := json.Marshal(v)
	if err == nil {
		err = replace(s.Path, text)
	}
	if err != nil {
		s.given = true
		s.Failed(err)
	}
}

// end forgets.
func (s *State) end() {
	if err := os.Remove(s.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
		s.Failed(err)
	}
}

func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
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
