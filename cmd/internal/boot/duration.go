package boot

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/alecthomas/kong"

	"github.com/reeltally/reeltally/internal/words"
)

// daysAndWeeks matches a part of a duration that is a number of days or weeks, such as "1.5d" or "2w".
var daysAndWeeks = regexp.MustCompile(`([0-9]+(?:\.[0-9]+)?)([dw])`)

// digits matches a number without its fraction.
var digits = regexp.MustCompile(`[0-9]+`)

const day = 24 * time.Hour

// ParseDuration parses a duration as time.ParseDuration does, such as 90m or 1h30m. It also accepts days and weeks, such as 30d, 2w and 1d12h.
func ParseDuration(s string) (time.Duration, error) {
	hours := daysAndWeeks.ReplaceAllStringFunc(s, func(part string) string {
		n, _ := strconv.ParseFloat(part[:len(part)-1], 64) // no error is possible: daysAndWeeks matches only numbers
		if n *= 24; part[len(part)-1] == 'w' {
			n *= 7
		}
		return strconv.FormatFloat(n, 'f', -1, 64) + "h"
	})
	d, err := time.ParseDuration(hours)
	if err != nil {
		// To distinguish a duration that is too long from an invalid text, parse again with small
		// numbers. Only an invalid text still causes an error.
		if _, err := time.ParseDuration(digits.ReplaceAllString(hours, "1")); err == nil {
			return 0, fmt.Errorf("%q is too long: the maximum is %s", s, words.Duration(time.Duration(math.MaxInt64).Truncate(day)))
		}
		return 0, fmt.Errorf("%q is not a duration; write for example 90s, 30m, 12h, 30d or 2w", s)
	}
	return d, nil
}

// durationOption returns the option that makes kong, the parser of the command line, parse durations with ParseDuration.
func durationOption() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Duration](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("duration", &text); err != nil {
			return err
		}
		d, err := ParseDuration(text)
		target.SetInt(int64(d))
		return err
	}))
}
