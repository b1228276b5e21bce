package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/store"
)

// NumberFormat says whether the point or the comma is the decimal sign of counts. The other one separates thousands.
type NumberFormat string

// These constants are the formats of numbers. With AutoNumbers, the import detects the format of each column from the column's values.
const (
	AutoNumbers  NumberFormat = "auto"
	DecimalPoint NumberFormat = "decimal-point" // 1,234.5
	DecimalComma NumberFormat = "decimal-comma" // 1.234,5
)

// DateFormat is the order of day and month in dates such as 03/04/2026. Dates such as 2026-04-03 do not depend on it.
type DateFormat string

// These constants are the formats of dates. With AutoDates, the import detects the format of each column from the column's values.
const (
	AutoDates  DateFormat = "auto"
	DayFirst   DateFormat = "day-first"   // 31/12/2026
	MonthFirst DateFormat = "month-first" // 12/31/2026
)

// ColumnFormat says how an import reads the numbers or dates of a column. Example is the first value from which the format could be detected.
type ColumnFormat struct {
	Column  string `json:"column"`
	Format  string `json:"format"`  // the detected format; "plain" if all formats give the same values
	Example string `json:"example"` // a value of the column
	ReadAs  string `json:"read_as"` // the example value after parsing
}

// plain is the value of ColumnFormat.Format for a column whose values mean the same in both formats.
const plain = "plain"

var (
	numberFields = []field{fieldViews, fieldLikes, fieldComments, fieldShares, fieldBookmarks}
	dateFields   = []field{fieldDate, fieldTime, fieldUploadedAt}
)

// formats has the detected format of each column, by field. The format is "" if all values of the column mean the same in both formats.
type formats struct {
	numbers [fieldCount]NumberFormat
	dates   [fieldCount]DateFormat
}

// evidence detects which of two possible formats the values of a column have. The formats are decimal point and decimal comma for a column of
// numbers, and day first and month first for a column of dates. Each member of evidence is the first value that matches its comment, or "".
type evidence struct {
	first, second string // values that are possible only in the first or only in the second format
	ambiguous     string // a value with different meanings in the two formats
	any           string // a value of the column, even if it is valid in both formats
}

// add records a value of the column. to points to the member of e that describes the value, or is nil if the value has the same meaning in both
// formats.
func (e *evidence) add(text string, to *string) {
	if e.any == "" {
		e.any = text
	}
	if to != nil && *to == "" {
		*to = text
	}
}

// decide returns the format of the column and a value from which it was detected. The format is "" if all values of the column mean the same in
// both formats. decide returns an error if the values do not show which of the two formats the column has, or if they have both formats.
func (e *evidence) decide(f field, option, first, second string) (format, example string, err error) {
	switch {
	case e.first != "" && e.second != "":
		return "", "", fmt.Errorf("column %s has %q, which is %s, and %q, which is %s: make the column uniform, or give the format of the whole file with %s=%s or %s=%s",
			f, truncate(e.first), first, truncate(e.second), second, option, first, option, second)
	case e.first != "":
		return first, e.first, nil
	case e.second != "":
		return second, e.second, nil
	case e.ambiguous != "":
		return "", "", fmt.Errorf("column %s has %q and no value that shows what this means: give the format of the whole file with %s=%s or %s=%s",
			f, truncate(e.ambiguous), option, first, option, second)
	}
	return "", e.any, nil
}

// addNumber records a value of a column of numbers. first is the format with a decimal point, and second is the format with a decimal comma.
func (e *evidence) addNumber(text string) {
	digits, _ := cutSuffix(text)
	points, commas := strings.Count(digits, "."), strings.Count(digits, ",")
	last := strings.LastIndexAny(digits, ".,")
	decimal, group := &e.first, &e.second // formats in which the last point or comma is the decimal sign, or separates thousands
	if last >= 0 && digits[last] == ',' {
		decimal, group = group, decimal
	}
	switch {
	case last < 0 || strings.Trim(digits, "0123456789.,"+groupSigns) != "":
		e.add(text, nil)
	case points > 0 && commas > 0:
		e.add(text, decimal)
	case points+commas > 1:
		e.add(text, group)
	case len(digits)-last-1 == 3 && last >= 1 && last <= 3 && digits[0] != '0':
		e.add(text, &e.ambiguous)
	default:
		e.add(text, decimal)
	}
}

// addDate records a value of a column of dates. first is the format with the day first, and second is the format with the month first.
func (e *evidence) addDate(text string) {
	m := numericDate.FindStringSubmatch(text)
	if m == nil {
		e.add(text, nil)
		return
	}
	a, _ := strconv.Atoi(m[1])
	b, _ := strconv.Atoi(m[3])
	switch {
	case a > 12 && b <= 12:
		e.add(text, &e.first)
	case b > 12 && a <= 12:
		e.add(text, &e.second)
	case a == b || a > 12:
		e.add(text, nil)
	default:
		e.add(text, &e.ambiguous)
	}
}

// groupSigns are the signs that separate thousands in every format: space, apostrophes, and the narrow and non-breaking spaces.
const groupSigns = " '’\u00a0\u2009\u202f"

// suffixes are the suffixes of rounded counts, with the number of zeros that each means.
var suffixes = map[byte]int{'K': 3, 'M': 6, 'B': 9}

// cutSuffix removes the suffix K, M or B and the space before it. zeros is 0 if the text has no suffix.
func cutSuffix(text string) (digits string, zeros int) {
	if text == "" {
		return "", 0
	}
	end := len(text) - 1
	zeros = suffixes[strings.ToUpper(text[end:])[0]]
	if zeros == 0 {
		return text, 0
	}
	return strings.TrimRight(text[:end], groupSigns), zeros
}

// maxCount is the largest count that is accepted. No real count is nearly as large.
const maxCount = 1_000_000_000_000

// parseCount parses a count in format f. For an empty text it returns nil. rounded is true if the text has one of the suffixes K, M and B,
// because such a count is rounded.
func parseCount(text string, f NumberFormat) (n *int64, rounded bool, err error) {
	if text == "" {
		return nil, false, nil
	}
	sign, decimal, group := text[0] == '-', ".", ","
	if f == DecimalComma {
		decimal, group = group, decimal
	}
	digits, zeros := cutSuffix(strings.TrimPrefix(text, "-"))
	whole, fraction, hasFraction := strings.Cut(digits, decimal)
	whole, ok := joinGroups(whole, group)
	if !ok || hasFraction && !isDigits(fraction) {
		return nil, false, fmt.Errorf("%q; it must be a whole number, like 1234567 or 12.3K, or empty if it is unknown", truncate(text))
	}
	fraction = strings.TrimRight(fraction, "0")
	switch {
	case sign:
		return nil, false, fmt.Errorf("%q; it must not be negative", truncate(text))
	case len(fraction) > zeros:
		return nil, false, fmt.Errorf("%q, which is not a whole number in the format %s", truncate(text), formatOr(f, DecimalPoint))
	}
	value, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", zeros-len(fraction)), 10, 64)
	if err != nil || value > maxCount {
		return nil, false, fmt.Errorf("%q; it must be at most %d", truncate(text), int64(maxCount))
	}
	return &value, zeros > 0, nil
}

// formatOr returns f, or otherwise if f is "".
func formatOr(f, otherwise NumberFormat) NumberFormat {
	if f == "" {
		return otherwise
	}
	return f
}

// isDigits returns true if text consists of one or more digits.
func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// joinGroups removes the separators of thousands, which are the character group and those in groupSigns. It returns false if the text is
// not a number, if separators differ, if a group of digits after a separator does not have three digits, or if a number with separators
// begins with 0.
func joinGroups(text, group string) (string, bool) {
	at := strings.IndexAny(text, group+groupSigns)
	if at < 0 {
		return text, isDigits(text)
	}
	var separator string
	for _, r := range text[at:] {
		separator = string(r)
		break
	}
	parts := strings.Split(text, separator)
	if strings.HasPrefix(text, "0") {
		return "", false
	}
	for n, p := range parts {
		if !isDigits(p) || n > 0 && len(p) != 3 || len(p) > 3 {
			return "", false
		}
	}
	return strings.Join(parts, ""), true
}

// timeFormats are the accepted formats of dates and times in which the order of day and month is clear. A time without a zone is in UTC.
var timeFormats = []string{time.DateOnly, time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 Z07:00",
	"2006-01-02 15:04:05.999999999 UTC", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04",
	"2006/1/2", "2006/1/2 15:04", "2006/1/2 15:04:05", "2 Jan 2006", "2 January 2006", "2-Jan-2006", "Jan 2, 2006", "January 2, 2006", "Jan 2 2006"}

// numericDate matches a date whose day and month can have either order, such as 03/04/2026. A time can follow.
var numericDate = regexp.MustCompile(`^(\d{1,2})([./-])(\d{1,2})([./-])(\d{4})(?:,? +(.+))?$`)

// clockFormats are the accepted formats of the time after a numericDate. The time is in UTC.
var clockFormats = []string{"15:04", "15:04:05", "3:04 PM", "3:04:05 PM", "3:04PM"}

// parseInstant parses a date or a time. f is the order of day and month. If f is "", parseInstant refuses dates whose meaning depends on the
// order, such as 03/04/2026.
func parseInstant(text string, f DateFormat) (store.Instant, error) {
	for _, format := range timeFormats {
		if t, err := time.Parse(format, text); err == nil && t.Year() > 1970 {
			return store.InstantOf(t), nil
		}
	}
	if t, ok := parseNumericDate(text, f); ok && t.Year() > 1970 {
		return store.InstantOf(t), nil
	}
	if f == "" {
		return 0, fmt.Errorf("%q; it must be like 2026-01-31 or 2026-01-31T12:00:00Z", truncate(text))
	}
	return 0, fmt.Errorf("%q, which is not a date in the format %s; it must be like %s, 2026-01-31 or 2026-01-31T12:00:00Z", truncate(text), f,
		map[DateFormat]string{DayFirst: "31/01/2026", MonthFirst: "01/31/2026"}[f])
}

// parseNumericDate parses a numericDate. It returns false if the text is not a date in format f.
func parseNumericDate(text string, f DateFormat) (time.Time, bool) {
	m := numericDate.FindStringSubmatch(text)
	if m == nil || m[2] != m[4] {
		return time.Time{}, false
	}
	a, b := m[1], m[3]
	switch {
	case f == "" && strings.TrimLeft(a, "0") != strings.TrimLeft(b, "0"):
		return time.Time{}, false
	case f == MonthFirst:
		a, b = b, a
	}
	day, err := time.Parse("2/1/2006", a+"/"+b+"/"+m[5])
	if err != nil || m[6] == "" {
		return day, err == nil
	}
	for _, format := range clockFormats {
		if at, err := time.Parse(format, strings.ToUpper(m[6])); err == nil {
			return day.Add(time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second), true
		}
	}
	return time.Time{}, false
}

// rewind makes it possible to read the input r.In twice. It returns a reader for the first reading, the function second, which returns a
// reader for the second reading, and the function done, which the caller must call at the end. If the input has no Seek, for example
// standard input, the first reading copies it to a temporary file, and done deletes this file.
func (r *importRun) rewind() (in io.Reader, second func() (io.Reader, error), done func() error, err error) {
	if s, ok := r.In.(io.ReadSeeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			return s, func() (io.Reader, error) { _, err := s.Seek(start, io.SeekStart); return s, err }, func() error { return nil }, nil
		}
	}
	f, err := os.CreateTemp(r.TempDir, "reeltally-import-*")
	if err != nil {
		return nil, nil, nil, err
	}
	return io.TeeReader(r.In, f), func() (io.Reader, error) { _, err := f.Seek(0, io.SeekStart); return f, err },
		func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }, nil
}

// guessFormats reads the whole file and detects the formats of its columns. Afterwards, r.In is at the start of the file again. guessFormats
// returns an error if the values of a column do not show the column's format. The caller must call done after the import.
func (r *importRun) guessFormats(ctx context.Context) (done func() error, err error) {
	in, second, done, err := r.rewind()
	if err != nil {
		return nil, err
	}
	seen, err := r.collectEvidence(ctx, in)
	if err == nil {
		err = r.decideFormats(seen)
	}
	if err == nil {
		r.In, err = second()
	}
	if err != nil {
		return nil, errors.Join(err, done())
	}
	return done, nil
}

// collectEvidence reads all rows of a file and returns the evidence for the format of each column, by field. It skips invalid rows, because the
// import reports them later, when it reads the file again.
func (r *importRun) collectEvidence(ctx context.Context, in io.Reader) (*[fieldCount]evidence, error) {
	file, err := newRowReader(&progressReader{r: in, stage: Guessing, progress: r.Progress}, r.Columns)
	if err != nil {
		return nil, err
	}
	var seen [fieldCount]evidence
	for {
		_, v, err := file.next()
		if _, ok := errors.AsType[fileError](err); ok || ctx.Err() != nil {
			return nil, errors.Join(err, ctx.Err())
		}
		switch {
		case errors.Is(err, io.EOF):
			return &seen, nil
		case err != nil:
			continue
		}
		for _, f := range numberFields {
			if text := strings.TrimSpace(v[f]); text != "" {
				seen[f].addNumber(text)
			}
		}
		for _, f := range dateFields {
			if text := strings.TrimSpace(v[f]); text != "" {
				seen[f].addDate(text)
			}
		}
	}
}

// decideFormats determines the number or date format of each column from the values in seen. It stores the formats in r.formats and passes
// them to the callback r.Formats. It returns an error for each column whose format is ambiguous.
func (r *importRun) decideFormats(seen *[fieldCount]evidence) error {
	var all []ColumnFormat
	var faults []error
	add := func(f field, format, example string, read func() (string, error)) {
		if example == "" {
			return
		}
		if format == "" {
			format = plain
		}
		if readAs, err := read(); err == nil { // an invalid value is reported with its row
			all = append(all, ColumnFormat{Column: f.String(), Format: format, Example: example, ReadAs: readAs})
		}
	}
	for _, f := range numberFields {
		format, example := string(r.Numbers), seen[f].any
		if r.Numbers == AutoNumbers {
			var err error
			if format, example, err = seen[f].decide(f, "--number-format", string(DecimalPoint), string(DecimalComma)); err != nil {
				faults = append(faults, err)
				continue
			}
		}
		r.formats.numbers[f] = NumberFormat(format)
		add(f, format, example, func() (string, error) {
			n, rounded, err := parseCount(example, NumberFormat(format))
			if err != nil {
				return "", err
			}
			return strconv.FormatInt(*n, 10) + map[bool]string{true: " (rounded)"}[rounded], nil
		})
	}
	for _, f := range dateFields {
		format, example := string(r.Dates), seen[f].any
		if r.Dates == AutoDates {
			var err error
			if format, example, err = seen[f].decide(f, "--date-format", string(DayFirst), string(MonthFirst)); err != nil {
				faults = append(faults, err)
				continue
			}
		}
		r.formats.dates[f] = DateFormat(format)
		add(f, format, example, func() (string, error) {
			at, err := parseInstant(example, DateFormat(format))
			if err != nil {
				return "", err
			}
			return at.Time().Format(time.RFC3339Nano), nil
		})
	}
	if r.Formats != nil {
		r.Formats(all)
	}
	return errors.Join(faults...)
}
