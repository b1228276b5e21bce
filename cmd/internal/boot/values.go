package boot

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// keyValueOption returns a kong option for lists of keys and values, such as basic=7d,premium=6h.
// If a flag is repeated, its lists are merged.
func keyValueOption[T any](parseValue func(string) (T, error)) kong.Option {
	return kong.TypeMapper(reflect.TypeFor[map[string]T](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("map", &text); err != nil {
			return err
		}
		parsed := map[string]T{}
		for pair := range strings.SplitSeq(text, ",") {
			key, value, found := strings.Cut(strings.TrimSpace(pair), "=")
			if !found {
				return fmt.Errorf("%q must have the form %s", pair, ctx.Value.Tag.PlaceHolder)
			}
			if _, twice := parsed[key]; twice {
				return fmt.Errorf("%q occurs twice", key)
			}
			v, err := parseValue(value)
			if err != nil {
				return fmt.Errorf("%s: %w", key, err)
			}
			parsed[key] = v
		}
		if target.IsNil() {
			target.Set(reflect.MakeMap(target.Type()))
		}
		for key, v := range parsed {
			target.SetMapIndex(reflect.ValueOf(key), reflect.ValueOf(v))
		}
		return nil
	}))
}

// parseWholeNumber parses a whole number.
func parseWholeNumber(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%q is too large", s)
	case err != nil:
		return 0, fmt.Errorf("%q is not a whole number, such as 20", s)
	}
	return n, nil
}

// timeOption returns the option that makes kong parse RFC 3339 times. Errors show an example of
// a valid time, because kong's own errors show a Go layout.
func timeOption() kong.Option {
	return kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto("time", &text); err != nil {
			return err
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return fmt.Errorf("%q is not a time with a time zone, such as 2026-02-01T00:00:00Z", text)
		}
		target.Set(reflect.ValueOf(t))
		return nil
	}))
}
