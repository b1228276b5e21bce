package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// The errors of the store. Compare with errors.Is; anything else is a fault of the database or of the program.
var (
	// ErrNotFound: no such thing in this organisation. A *NotFoundError says what was looked for.
	ErrNotFound = errors.New("not found")
	// ErrDuplicate: a thing of that key is there already.
	ErrDuplicate = errors.New("already exists")
	// ErrUnavailable: the database cannot be reached or is too busy; the same call may succeed later.
	ErrUnavailable = errors.New("database unavailable")
)

// NotFoundError names what was not found, as the caller named it.
type NotFoundError struct {
	Kind  string // "video", "collection", "organisation", "token"
	Names []string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no such %s: %s", e.Kind, strings.Join(e.Names, ", "))
}

// Is makes every NotFoundError an ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

func NotFound(kind string, names ...string) error { return &NotFoundError{Kind: kind, Names: names} }

// Translate turns what GORM and the drivers say into the store's own errors, at the border.
func Translate(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return fmt.Errorf("%w", ErrNotFound)
	case errors.Is(err, gorm.ErrDuplicatedKey):
		return fmt.Errorf("%w: %w", ErrDuplicate, err)
	case unreachable(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
