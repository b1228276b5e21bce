package server

import (
	"fmt"
	"regexp"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
)

// formats are checked as the contract means them: the filter knows none of uuid, and lets 30 February pass.
var formats = []openapi3.SchemaValidationOption{openapi3.WithStringFormatValidators(map[string]openapi3.StringFormatValidator{
	"uuid":      openapi3.NewRegexpFormatValidator(canonicalUUID.String()),
	"date":      openapi3.NewCallbackValidator(checkDate),
	"date-time": openapi3.NewCallbackValidator(func(s string) error { _, err := parseTime(s); return err }),
})}

// canonicalUUID is the one spelling of an id in paths and bodies: no braces, no urn:uuid:.
var canonicalUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// The years that dates may be in: a platform's first upload is long after the first, and every engine takes the last.
const (
	firstYear = 1970
	lastYear  = 2999
)

func checkDate(s string) error {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return err
	}
	return checkYear(t)
}

// parseTime reads RFC 3339, strictly: time.Parse would take an hour of one digit, and a comma for the point.
func parseTime(s string) (time.Time, error) {
	var t time.Time
	if err := t.UnmarshalText([]byte(s)); err != nil {
		return time.Time{}, err
	}
	return t, checkYear(t.UTC())
}

func checkYear(t time.Time) error {
	if t.Year() < firstYear || t.Year() > lastYear {
		return fmt.Errorf("the year %d is not in %d to %d", t.Year(), firstYear, lastYear)
	}
	return nil
}
