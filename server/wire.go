package server

import (
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/store"
)

// timeLayout is the format of all times in responses: UTC with six fractional digits and a numeric offset. Every version of Python's
// datetime.fromisoformat can parse it.
const timeLayout = "2006-01-02T15:04:05.000000-07:00"

// toAPITime formats a time for a response.
func toAPITime(i store.Instant) string { return i.Time().Format(timeLayout) }

// toAPITimePtr formats a time for a response. nil stays nil.
func toAPITimePtr(i *store.Instant) *string {
	if i == nil {
		return nil
	}
	s := toAPITime(*i)
	return &s
}

func toAPIDate(d store.Date) openapi_types.Date { return openapi_types.Date{Time: d.Time()} }

func toAPIDatePtr(d *store.Date) *openapi_types.Date {
	if d == nil {
		return nil
	}
	out := toAPIDate(*d)
	return &out
}

func fromAPIDatePtr(d *openapi_types.Date) *store.Date {
	if d == nil {
		return nil
	}
	out := store.DateOf(d.Time)
	return &out
}

// fromAPITimePtr parses a time in a request. nil stays nil.
func fromAPITimePtr(s *string) (*store.Instant, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // nil stays nil
	}
	t, err := parseTime(*s)
	if err != nil {
		return nil, err
	}
	out := store.InstantOf(t)
	return &out, nil
}
