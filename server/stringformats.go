package server

import (
	"fmt"
	"regexp"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/reeltally/reeltally/internal/words"
)

// stringFormats has validators for the string formats of the OpenAPI contract. They replace those of the OpenAPI library, which does not check uuid and
// accepts 30 February as a date.
var stringFormats = []openapi3.SchemaValidationOption{openapi3.WithStringFormatValidators(map[string]openapi3.StringFormatValidator{
	"uuid":      openapi3.NewRegexpFormatValidator(canonicalUUID.String()),
	"date":      openapi3.NewCallbackValidator(checkDate),
	"date-time": openapi3.NewCallbackValidator(func(s string) error { _, err := parseTime(s); return err }),
})}

// canonicalUUID matches a UUID in the only form that the API accepts: 36 characters, without braces and without the prefix "urn:uuid:".
var canonicalUUID = regexp.MustCompile(`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)

// The first and the last year of valid dates and times. SQLite and PostgreSQL can store all dates in this range.
const (
	firstYear = 1970
	lastYear  = 2999
)

// checkDate returns an error if s is not a valid date of the form YYYY-MM-DD, or if its year is not between firstYear and lastYear.
func checkDate(s string) error {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return err
	}
	return checkYear(t)
}

// timePattern matches a time in the form of RFC 3339. It is stricter than time.Parse, which accepts an hour of one digit and a comma before
// the fraction.
var timePattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// parseTime parses a time in the form of RFC 3339. It fails if the year is not between firstYear and lastYear.
func parseTime(s string) (time.Time, error) {
	if !timePattern.MatchString(s) {
		return time.Time{}, fmt.Errorf("%s is not of the form %s", words.Quote(s), time.RFC3339)
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}, err
	}
	return t, checkYear(t.UTC())
}

// checkYear returns an error if the year of t is not in the range firstYear to lastYear.
func checkYear(t time.Time) error {
	if t.Year() < firstYear || t.Year() > lastYear {
		return fmt.Errorf("the year %d is not between %d and %d", t.Year(), firstYear, lastYear)
	}
	return nil
}
