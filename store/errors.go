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

// LimitKind says what a limit counts.
type LimitKind string

// The kinds of limits.
const (
	LimitCollections LimitKind = "collections" // collections of an organisation
	LimitReports     LimitKind = "reports"     // reports of an organisation
	LimitTokens      LimitKind = "tokens"      // tokens of an organisation
	LimitWebhooks    LimitKind = "webhooks"    // webhooks of an organisation
	LimitTotals      LimitKind = "totals"      // rows that are added up, or days for which they are added up
)

// LimitError reports that a request would exceed a limit.
type LimitError struct {
	Kind LimitKind
	Text string // says to callers of the API which limit is exceeded; it begins with a small letter and has no full stop at its end
}

func (e *LimitError) Error() string { return e.Text }

// limitError returns a LimitError whose text has the given format.
func limitError(kind LimitKind, format string, args ...any) *LimitError {
	return &LimitError{Kind: kind, Text: fmt.Sprintf(format, args...)}
}
