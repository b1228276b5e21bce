package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gorm.io/gorm"
)

// The errors of all packages of the store. Compare with errors.Is. Any other error is a fault of the database or of the program.
var (
	// ErrNotFound reports that the organisation has no such thing. A *NotFoundError names what was not found.
	ErrNotFound = errors.New("not found")
	// ErrDuplicate reports that a row with that key exists already.
	ErrDuplicate = errors.New("already exists")
	// ErrUnavailable reports that the database cannot be reached or is too busy. The same call may succeed later.
	ErrUnavailable = errors.New("database unavailable")
)

// NotFoundError is an ErrNotFound with the kind and the names of what was not found, as the caller wrote them.
type NotFoundError struct {
	Kind  string // "video", "collection", "organisation", "token"
	Names []string
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no such %s: %s", e.Kind, strings.Join(e.Names, ", "))
}

// Is returns true for ErrNotFound.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// NotFound returns a *NotFoundError.
func NotFound(kind string, names ...string) error { return &NotFoundError{Kind: kind, Names: names} }

// Translate converts errors of GORM and the drivers to the errors of this package.
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
