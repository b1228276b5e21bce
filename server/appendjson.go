package server

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
)

// This file writes JSON without encoding/json, for responses that can be long. Tests compare each response with the output of encoding/json.

// writeJSON sends a response with the given status and the JSON in body.
func writeJSON(w http.ResponseWriter, status int, body []byte) error {
	w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	w.WriteHeader(status)
	_, err := w.Write(append(body, '\n'))
	return err
}

// orEmpty returns *s, or "" if s is nil.
func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// appendOrNull appends null if value is nil. Otherwise it calls appendValue to append *value.
func appendOrNull[T any](out []byte, value *T, appendValue func([]byte, T) []byte) []byte {
	if value == nil {
		return append(out, "null"...)
	}
	return appendValue(out, *value)
}

// appendArray appends items as a JSON array. It calls appendItem for each item.
func appendArray[T any](out []byte, items []T, appendItem func([]byte, T) []byte) []byte {
	out = append(out, '[')
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendItem(out, item)
	}
	return append(out, ']')
}

// appendID appends a UUID as a JSON string, in lower case and with hyphens.
func appendID(out []byte, id uuid.UUID) []byte {
	text := [38]byte{0: '"', 9: '-', 14: '-', 19: '-', 24: '-', 37: '"'}
	hex.Encode(text[1:9], id[:4])
	hex.Encode(text[10:14], id[4:6])
	hex.Encode(text[15:19], id[6:8])
	hex.Encode(text[20:24], id[8:10])
	hex.Encode(text[25:37], id[10:])
	return append(out, text[:]...)
}

// appendCount appends a count as JSON. If n is nil, it appends null.
func appendCount(out []byte, n *int64) []byte {
	return appendOrNull(out, n, func(out []byte, n int64) []byte { return strconv.AppendInt(out, n, 10) })
}

// appendRatio appends a number as JSON, with the same digits as encoding/json. If f is nil, it appends null.
func appendRatio(out []byte, f *float64) []byte {
	return appendOrNull(out, f, func(out []byte, f float64) []byte {
		// Like encoding/json, write very small and very large numbers with an exponent.
		if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
			encoded, err := json.Marshal(f)
			if err != nil {
				panic(err) // cannot happen: only infinite numbers and NaN cannot be encoded, and the database stores neither
			}
			return append(out, encoded...)
		}
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	})
}

// appendTime appends a time as a JSON string, in UTC and with microseconds, as TimeLayout specifies. It writes the digits itself, because
// Time.AppendFormat takes four times as long.
func appendTime(out []byte, i store.Instant) []byte {
	t := i.Time()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		out = append(out, '"')
		out = t.AppendFormat(out, TimeLayout)
		return append(out, '"')
	}
	hour, minute, second := t.Clock()
	micros := t.Nanosecond() / 1000
	out = appendYear(append(out, '"'), year)
	out = appendTwoDigits(append(out, '-'), int(month))
	out = appendTwoDigits(append(out, '-'), day)
	out = appendTwoDigits(append(out, 'T'), hour)
	out = appendTwoDigits(append(out, ':'), minute)
	out = appendTwoDigits(append(out, ':'), second)
	out = appendTwoDigits(append(out, '.'), micros/10_000)
	out = appendTwoDigits(appendTwoDigits(out, micros/100%100), micros%100)
	return append(out, `+00:00"`...)
}

// appendYear appends a year from 0 to 9999 with four digits.
func appendYear(out []byte, year int) []byte {
	return appendTwoDigits(appendTwoDigits(out, year/100), year%100)
}

// appendTwoDigits appends a number from 0 to 99 with two digits.
func appendTwoDigits(out []byte, n int) []byte { return append(out, pairs[2*n], pairs[2*n+1]) }

// pairs contains the two digits of each number from 0 to 99: the number n is at pairs[2*n] and pairs[2*n+1].
var pairs = func() (pairs [200]byte) {
	for n := range 100 {
		pairs[2*n], pairs[2*n+1] = '0'+byte(n/10), '0'+byte(n%10)
	}
	return pairs
}()

// appendMaskedTime appends a time as JSON, or null if the time is nil or view masks metrics.
func appendMaskedTime(out []byte, i *store.Instant, view View) []byte {
	if view.masked {
		i = nil
	}
	return appendOrNull(out, i, appendTime)
}

// appendDate appends a day as JSON. The year has four digits, because store.MaxDate is in the year 9999.
func appendDate(out []byte, d store.Date) []byte {
	year, month, day := d.Time().Date()
	out = appendYear(append(out, '"'), year)
	out = appendTwoDigits(append(out, '-'), int(month))
	out = appendTwoDigits(append(out, '-'), day)
	return append(out, '"')
}

// plain[b] is true for a byte b that encoding/json writes into a JSON string without an escape.
var plain = func() (plain [utf8.RuneSelf]bool) {
	for b := range plain {
		plain[b] = b >= ' ' && b != '"' && b != '\\' && b != '<' && b != '>' && b != '&'
	}
	return plain
}()

// appendText appends a text as a JSON string, with the same escapes as encoding/json.
func appendText(out []byte, s string) []byte {
	out = append(out, '"')
	begin := 0 // begin of the part of s that is not written yet and needs no escape
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf {
			if !plain[b] {
				out = appendEscape(append(out, s[begin:i]...), b)
				begin = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1: // not valid UTF-8
			out = append(append(out, s[begin:i]...), `\ufffd`...)
			begin = i + size
		case r == '\u2028', r == '\u2029': // JavaScript once did not allow these characters in strings
			out = append(append(out, s[begin:i]...), `\u202`...)
			out = append(out, hexDigits[r&0xf])
			begin = i + size
		}
		i += size
	}
	return append(append(out, s[begin:]...), '"')
}

const hexDigits = "0123456789abcdef"

// appendEscape appends the escape of an ASCII character in a JSON string.
func appendEscape(out []byte, b byte) []byte {
	switch b {
	case '"', '\\':
		return append(out, '\\', b)
	case '\b':
		return append(out, `\b`...)
	case '\f':
		return append(out, `\f`...)
	case '\n':
		return append(out, `\n`...)
	case '\r':
		return append(out, `\r`...)
	case '\t':
		return append(out, `\t`...)
	default:
		return append(out, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xf])
	}
}
