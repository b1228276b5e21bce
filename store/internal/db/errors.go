package db

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"
)

// These errors are common to all packages of the store. Compare them with errors.Is.
var (
	// ErrNotFound reports that the organisation does not have the requested object. A *NotFoundError names the object.
	ErrNotFound = errors.New("not found")
	// ErrDuplicate reports that a row with the same key already exists.
	ErrDuplicate = errors.New("already exists")
	// ErrUnavailable reports that the database cannot be reached or is too busy. The same call may succeed later.
	ErrUnavailable = errors.New("database unavailable")
	// ErrOrganisationDeleted reports that the organisation does not exist, or that its deletion has begun. Its data cannot be written.
	ErrOrganisationDeleted = errors.New("the organisation is being deleted, or does not exist any more")
)

// NotFoundError is an ErrNotFound that says which objects were not found.
type NotFoundError struct {
	Kind  string   // kind of the missing object, such as "video" or "collection"
	Names []string // ids or links, as the caller wrote them
}

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("no such %s: %s", e.Kind, strings.Join(e.Names, ", "))
}

// Is makes errors.Is(e, ErrNotFound) return true.
func (e *NotFoundError) Is(target error) bool { return target == ErrNotFound }

// NotFound returns a *NotFoundError. It gets the kind of the missing objects, such as "video", and their ids or links.
func NotFound(kind string, names ...string) error { return &NotFoundError{Kind: kind, Names: names} }

// FindOne returns the row that the query q selects. If q selects no row, FindOne returns a *NotFoundError with the kind and the id of the missing object.
func FindOne[T any](q *gorm.DB, kind string, id uuid.UUID) (T, error) {
	found := make([]T, 0, 1) // GORM would allocate 20 rows
	err := q.Limit(1).Find(&found).Error
	if err == nil && len(found) == 0 {
		err = NotFound(kind, id.String())
	}
	if err != nil {
		return *new(T), Translate(err)
	}
	return found[0], nil
}

// Translate converts errors of GORM and the database drivers to the errors of this package. It returns other errors unchanged.
func Translate(err error) error {
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrUnavailable):
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return fmt.Errorf("%w", ErrNotFound)
	case errors.Is(err, gorm.ErrDuplicatedKey):
		return fmt.Errorf("%w: %w", ErrDuplicate, err)
	case isUnavailable(err):
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return err
}
