package store

import (
	"errors"
	"fmt"
)

// The errors of Store.Authenticate.
var (
	ErrTokenUnknown = errors.New("token unknown")
	ErrTokenExpired = errors.New("token expired")
	ErrTokenRevoked = errors.New("token revoked")
)

// TooManyCollectionsError reports that a request would exceed the organisation's limit of collections.
type TooManyCollectionsError struct {
	Limit int // highest number of collections that an organisation can have
	Have  int // number of collections that the organisation has
	New   int // number of collections that the request would create
}

func (e *TooManyCollectionsError) Error() string {
	return fmt.Sprintf("an organisation can have at most %d collections; it has %d, and the request would create %d more", e.Limit, e.Have, e.New)
}
