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

// instant is the form of RFC 3339, of which time.Parse is lax: it takes an hour of one digit, and a comma for the point.
var instant = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// parseTime reads RFC 3339.
func parseTime(s string) (time.Time, error) {
	if !instant.MatchString(s) {
		return time.Time{}, fmt.Errorf("%s is not of the form %s", quote(s), time.RFC3339)
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
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
