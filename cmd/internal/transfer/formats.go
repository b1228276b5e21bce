package transfer

import (
	"cmp"
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

// NumberFormat says which character is the decimal sign of a number: the point or the comma. The other character separates thousands.
type NumberFormat string

// These constants are the formats of numbers. With AutoNumbers, Import detects the format of each column from its values.
const (
	AutoNumbers  NumberFormat = "auto"
	DecimalPoint NumberFormat = "decimal-point" // 1,234.5
	DecimalComma NumberFormat = "decimal-comma" // 1.234,5
)

// DateFormat is the order of day and month in dates such as 03/04/2026. The meaning of dates such as 2026-04-03 does not depend on it.
type DateFormat string

// These constants are the formats of dates. With AutoDates, Import detects the format of each column from its values.
const (
	AutoDates  DateFormat = "auto"
	DayFirst   DateFormat = "day-first"   // 31/12/2026
	MonthFirst DateFormat = "month-first" // 12/31/2026
)

// ColumnFormat says how an import reads the numbers or dates of one column, with an example.
type ColumnFormat struct {
	Column  string `json:"column"`
	Format  string `json:"format"`  // name of the format, such as "decimal-comma"; "plain" if each value of the column has the same meaning in all formats
	Example string `json:"example"` // if the format was detected from the values, the first value that shows the format; otherwise, the first value of the column
	ReadAs  string `json:"read_as"` // how the import reads the value in Example
}

// plain is the ColumnFormat.Format of a column whose values mean the same in all formats.
const plain = "plain"

// These are the fields of a row that have numbers or dates. An import must know the format of each.
var (
	numberFields = []field{fieldViews, fieldLikes, fieldComments, fieldShares, fieldBookmarks}
	dateFields   = []field{fieldDate, fieldTime, fieldUploadedAt}
)

// formats has the format of each column of numbers or dates, by field. Each kind has two formats. "" means that
// all values of the column mean the same in both formats.
type formats struct {
	numbers [fieldCount]NumberFormat
	dates   [fieldCount]DateFormat
}

// evidence collects values of one column to detect its format. A column of numbers has the format "decimal-point" or "decimal-comma". A column of dates
// has the format "day-first" or "month-first".
type evidence struct {
	first     string // the first value that is possible only in the format "decimal-point" or "day-first", such as 1.5 or 31/12/2026; "" if there is none
	second    string // the first value that is possible only in the format "decimal-comma" or "month-first", such as 1,5 or 12/31/2026; "" if there is none
	ambiguous string // the first value that has different meanings in the two formats; "" if there is none
	any       string // the first value of the column, in any format
}

// addValue records one value of the column. `slot` is the field of e that describes the value: &e.first, &e.second or &e.ambiguous. The pointer is
// nil if the value is invalid, or means the same in both formats.
func (e *evidence) addValue(text string, slot *string) {
	if e.any == "" {
		e.any = text
	}
	if slot != nil && *slot == "" {
		*slot = text
	}
}

// decideFormat returns the column's format and an example value. The format is "" if it does not
// matter. If the format is unclear, the error names the flag to set.
func (e *evidence) decideFormat(f field, flagName, firstFormat, secondFormat string) (format, example string, err error) {
	switch {
	case e.first != "" && e.second != "":
		return "", "", fmt.Errorf("column %s has %q, which is %s, and %q, which is %s: make the column uniform, or give the format of the whole file with %s=%s or %s=%s",
			f, truncateText(e.first), firstFormat, truncateText(e.second), secondFormat, flagName, firstFormat, flagName, secondFormat)
	case e.first != "":
		return firstFormat, e.first, nil
	case e.second != "":
		return secondFormat, e.second, nil
	case e.ambiguous != "":
		return "", "", fmt.Errorf("the value %q in column %s has two possible meanings, and the other values do not show which meaning is right: set %s=%s or %s=%s",
			truncateText(e.ambiguous), f, flagName, firstFormat, flagName, secondFormat)
	}
	return "", e.any, nil
}

// addNumber records one value of a column of numbers.
func (e *evidence) addNumber(text string) {
	digits, _ := cutSuffix(text)
	points, commas := strings.Count(digits, "."), strings.Count(digits, ",")
	last := strings.LastIndexAny(digits, ".,")
	// The sign is the last point or comma. The text is stored in *decimal if the sign is a decimal sign, and in
	// *group if it separates thousands.
	decimal, group := &e.first, &e.second
	if last >= 0 && digits[last] == ',' {
		decimal, group = group, decimal
	}
	switch {
	case last < 0 || strings.Trim(digits, "0123456789.,"+groupSigns) != "":
		e.addValue(text, nil) // the value is invalid, or it is the same number in both formats, such as 15
	case points > 0 && commas > 0: // a value such as 1,234.5
		e.addValue(text, decimal)
	case points+commas > 1: // a value such as 1.234.567
		e.addValue(text, group)
	case len(digits)-last-1 == 3 && last >= 1 && last <= 3 && digits[0] != '0': // an ambiguous value such as 1.500
		e.addValue(text, &e.ambiguous)
	default: // a value such as 1.5
		e.addValue(text, decimal)
	}
}

// addDate records one value of a column of dates.
func (e *evidence) addDate(text string) {
	m := numericDate.FindStringSubmatch(text)
	if m == nil { // the value is invalid, or it is the same date in both formats, such as 2026-04-03
		e.addValue(text, nil)
		return
	}
	a, _ := strconv.Atoi(m[1])
	b, _ := strconv.Atoi(m[3])
	switch {
	case a > 12 && b <= 12: // a date such as 31/12/2026
		e.addValue(text, &e.first)
	case b > 12 && a <= 12: // a date such as 12/31/2026
		e.addValue(text, &e.second)
	case a == b || a > 12: // a date such as 04/04/2026, or an invalid date such as 31/31/2026
		e.addValue(text, nil)
	default: // an ambiguous date such as 03/04/2026
		e.addValue(text, &e.ambiguous)
	}
}

// groupSigns are the signs that separate thousands in every format: space, apostrophes, and the narrow and non-breaking spaces.
const groupSigns = " '’\u00a0\u2009\u202f"

// suffixes are the suffixes of rounded counts, such as the K of "12.3K", with the number of zeros that each one stands for.
var suffixes = map[byte]int{'K': 3, 'M': 6, 'B': 9}

// cutSuffix splits a count into its digits and the number of zeros that its suffix K, M or B stands for. Without a suffix, the number of zeros is 0.
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

// maxCount is the largest accepted count. It is far above all real counts, so a larger number must be a mistake.
const maxCount = 1_000_000_000_000

// parseCount parses a count. For an empty text, it returns nil, which means that the count is
// unknown.
func parseCount(text string, format NumberFormat) (n *int64, rounded bool, err error) {
	if text == "" {
		return nil, false, nil
	}
	sign, decimal, group := text[0] == '-', ".", ","
	if format == DecimalComma {
		decimal, group = group, decimal
	}
	digits, zeros := cutSuffix(strings.TrimPrefix(text, "-"))
	whole, fraction, hasFraction := strings.Cut(digits, decimal)
	whole, ok := removeSeparators(whole, group)
	if !ok || hasFraction && !hasOnlyDigits(fraction) {
		return nil, false, fmt.Errorf("%q; it must be a whole number, like 1234567 or 12.3K, or empty if it is unknown", truncateText(text))
	}
	fraction = strings.TrimRight(fraction, "0")
	switch {
	case sign:
		return nil, false, fmt.Errorf("%q; it must not be negative", truncateText(text))
	case len(fraction) > zeros:
		return nil, false, fmt.Errorf("%q, which is not a whole number in the format %s", truncateText(text), cmp.Or(format, DecimalPoint))
	}
	value, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", zeros-len(fraction)), 10, 64)
	if err != nil || value > maxCount {
		return nil, false, fmt.Errorf("%q; it must be at most %d", truncateText(text), int64(maxCount))
	}
	return &value, zeros > 0, nil // a count with the suffix K, M or B is rounded
}

func hasOnlyDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// removeSeparators removes the separators of thousands from a whole number. It returns false for
// any other text, such as "1,50" or "0,500".
func removeSeparators(text, groupSign string) (string, bool) {
	at := strings.IndexAny(text, groupSign+groupSigns)
	if at < 0 {
		return text, hasOnlyDigits(text)
	}
	var separator string // all separators of a number must be the same
	for _, r := range text[at:] {
		separator = string(r)
		break
	}
	parts := strings.Split(text, separator)
	if strings.HasPrefix(text, "0") {
		return "", false
	}
	for n, p := range parts {
		if !hasOnlyDigits(p) || n > 0 && len(p) != 3 || len(p) > 3 {
			return "", false
		}
	}
	return strings.Join(parts, ""), true
}

// timeFormats are the accepted formats of dates and times in which the order of day and month is clear. A time without a time zone is in
// UTC.
var timeFormats = []string{time.DateOnly, time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 Z07:00",
	"2006-01-02 15:04:05.999999999 UTC", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04",
	"2006/1/2", "2006/1/2 15:04", "2006/1/2 15:04:05", "2 Jan 2006", "2 January 2006", "2-Jan-2006", "Jan 2, 2006", "January 2, 2006", "Jan 2 2006"}

// numericDate matches a date such as 03/04/2026, in which the day or the month can come first. A time can follow.
var numericDate = regexp.MustCompile(`^(\d{1,2})([./-])(\d{1,2})([./-])(\d{4})(?:,? +(.+))?$`)

// clockFormats are the accepted formats of the time of day that can follow a date such as 03/04/2026. This time is in UTC.
var clockFormats = []string{"15:04", "15:04:05", "3:04 PM", "3:04:05 PM", "3:04PM"}

// minYear is the first year of accepted dates.
const minYear = 1971

// parseInstant parses a date, with or without a time. If the format is "", it returns an error for
// an ambiguous date such as 03/04/2026.
func parseInstant(text string, f DateFormat) (store.Instant, error) {
	tooEarly := false
	for _, format := range timeFormats {
		if t, err := time.Parse(format, text); err == nil && t.Year() >= minYear {
			return store.InstantOf(t), nil
		} else if err == nil {
			tooEarly = true
		}
	}
	if t, ok := parseNumericDate(text, f); ok && t.Year() >= minYear {
		return store.InstantOf(t), nil
	} else if ok || tooEarly {
		return 0, fmt.Errorf("%q; the year must be %d or later, because programs write 1970-01-01 for an unknown date: leave the cell empty if the date is unknown", truncateText(text), minYear)
	}
	if f == "" {
		return 0, fmt.Errorf("%q; it must be like 2026-01-31 or 2026-01-31T12:00:00Z", truncateText(text))
	}
	return 0, fmt.Errorf("%q, which is not a date in the format %s; it must be like %s, 2026-01-31 or 2026-01-31T12:00:00Z", truncateText(text), f,
		map[DateFormat]string{DayFirst: "31/01/2026", MonthFirst: "01/31/2026"}[f])
}

// parseNumericDate parses a date such as 03/04/2026, with or without a time. It returns false if
// the text is not such a date, or if f is "" and day and month could be exchanged.
func parseNumericDate(text string, f DateFormat) (time.Time, bool) {
	m := numericDate.FindStringSubmatch(text)
	if m == nil || m[2] != m[4] {
		return time.Time{}, false
	}
	a, b := m[1], m[3]
	switch {
	case f == "" && strings.TrimLeft(a, "0") != strings.TrimLeft(b, "0"): // without a format, it is not known whether the day comes first
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

// readTwice prepares to read r.In twice. The caller first reads firstReader to its end. Then it calls openAgain, and reads the
// returned reader, which has the same content. The caller must call cleanUp at the end.
func (r *importRun) readTwice() (firstReader io.Reader, openAgain func() (io.Reader, error), cleanUp func() error, err error) {
	if s, ok := r.In.(io.ReadSeeker); ok {
		if start, err := s.Seek(0, io.SeekCurrent); err == nil {
			return s, func() (io.Reader, error) { _, err := s.Seek(start, io.SeekStart); return s, err }, func() error { return nil }, nil
		}
	}
	// r.In can be read only once, so the first reader copies its data to a temporary file.
	f, err := os.CreateTemp(r.TempDir, "reeltally-import-*")
	if err != nil {
		return nil, nil, nil, err
	}
	return io.TeeReader(r.In, f), func() (io.Reader, error) { _, err := f.Seek(0, io.SeekStart); return f, err },
		func() error { return errors.Join(f.Close(), os.Remove(f.Name())) }, nil
}

// guessFormats detects the format of each column, or returns an error. After that, r.In reads the
// file from the start. Call cleanUp after the import.
func (r *importRun) guessFormats(ctx context.Context) (cleanUp func() error, err error) {
	in, openAgain, cleanUp, err := r.readTwice()
	if err != nil {
		return nil, err
	}
	seen, err := r.collectEvidence(ctx, in)
	if err == nil {
		err = r.decideFormats(seen)
	}
	if err == nil {
		r.In, err = openAgain()
	}
	if err != nil {
		return nil, errors.Join(err, cleanUp())
	}
	return cleanUp, nil
}

// collectEvidence reads all rows and returns, for each field, the values that show the format. It
// skips invalid rows, which the import reports later.
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

// decideFormats decides how numbers and dates are read, and stores the format of each such column in r.formats. It also passes the formats to
// the callback r.Formats, except those of columns without a readable value. If a format is not clear, the error lists all such columns.
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
		if readAs, err := read(); err == nil { // ignore the error: the import reports it later, with the row of the value
			all = append(all, ColumnFormat{Column: f.String(), Format: format, Example: example, ReadAs: readAs})
		}
	}
	for _, f := range numberFields {
		format, example := string(r.Numbers), seen[f].any
		if r.Numbers == AutoNumbers {
			var err error
			if format, example, err = seen[f].decideFormat(f, "--number-format", string(DecimalPoint), string(DecimalComma)); err != nil {
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
			if format, example, err = seen[f].decideFormat(f, "--date-format", string(DayFirst), string(MonthFirst)); err != nil {
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
