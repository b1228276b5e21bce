package server

import (
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/store"
)

// TimeLayout is the format of all times in responses: UTC with six fractional digits and a numeric offset. Every version of Python's
// datetime.fromisoformat can parse this format.
const TimeLayout = "2006-01-02T15:04:05.000000-07:00"

// toAPITime formats a time for a response in TimeLayout.
func toAPITime(i store.Instant) string { return i.Time().Format(TimeLayout) }

// toAPITimePtr formats a time for a response in TimeLayout. It returns nil if i is nil.
func toAPITimePtr(i *store.Instant) *string {
	if i == nil {
		return nil
	}
	s := toAPITime(*i)
	return &s
}

// toAPIDate converts a date from the database to the date type of the API.
func toAPIDate(d store.Date) openapi_types.Date { return openapi_types.Date{Time: d.Time()} }

// toAPIDatePtr converts a date from the database to the date type of the API. It returns nil if d is nil.
func toAPIDatePtr(d *store.Date) *openapi_types.Date {
	if d == nil {
		return nil
	}
	out := toAPIDate(*d)
	return &out
}

// fromAPIDatePtr converts a date in a request to the date type of the database. It returns nil if d is nil.
func fromAPIDatePtr(d *openapi_types.Date) *store.Date {
	if d == nil {
		return nil
	}
	out := store.DateOf(d.Time)
	return &out
}

// fromAPITimePtr parses a time in a request. It returns nil if s is nil.
func fromAPITimePtr(s *string) (*store.Instant, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // a request without this time, which is not an error
	}
	t, err := parseTime(*s)
	if err != nil {
		return nil, err
	}
	out := store.InstantOf(t)
	return &out, nil
}

// convertAll calls convert for each element of elements and returns the results in the same order.
func convertAll[A, B any](elements []A, convert func(A) B) []B {
	out := make([]B, len(elements))
	for i, a := range elements {
		out[i] = convert(a)
	}
	return out
}
