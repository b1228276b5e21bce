package transfer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Requirements in docs/coverage.md: 11.9-03
func TestParseCount_readsSeparatorsAndSuffixes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text    string
		format  NumberFormat
		want    int64
		rounded bool
	}{
		{"1,500", DecimalPoint, 1500, false}, {"1.500", DecimalComma, 1500, false}, {"1.500,0", DecimalComma, 1500, false}, {"1,234,567.00", DecimalPoint, 1234567, false},
		{"12.3K", DecimalPoint, 12300, true}, {"12,3 k", DecimalComma, 12300, true}, {"1.25M", DecimalPoint, 1_250_000, true}, {"2B", DecimalPoint, 2_000_000_000, true},
		{"1.500K", DecimalPoint, 1500, true}, {"1.500K", DecimalComma, 1_500_000, true}, {"1 234 567", "", 1234567, false}, {"1\u202f234", "", 1234, false}, {"1'234", "", 1234, false}, {"007", "", 7, false},
	} {
		n, rounded, err := parseCount(c.text, c.format)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, *n, c.text)
		require.Equal(t, c.rounded, rounded, c.text)
	}
	for _, text := range []string{"1,50", "1,5000", "1234,567", "1,234 567", "1.", "1.K", "K", " ", "1,", ",1", "1.5", "1.2345K", "1e3", "0x1", "１", "1,234,", "2000B", "--1", "1-"} {
		_, _, err := parseCount(text, DecimalPoint)
		require.Error(t, err, text)
	}
}

// Requirements in docs/coverage.md: 11.9-03
func TestEvidence_detectsNumberFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []string
		want   string
		err    string
	}{
		{[]string{"1", "1234567", "1 234"}, "", ""},
		{[]string{"1,500", "2.5K"}, "decimal-point", ""},
		{[]string{"1.500", "2,5K"}, "decimal-comma", ""},
		{[]string{"1,500", "1,234,567"}, "decimal-point", ""},
		{[]string{"1.500", "1.234.567"}, "decimal-comma", ""},
		{[]string{"1.500", "1.500,0"}, "decimal-comma", ""},
		{[]string{"1500.000"}, "decimal-point", ""},
		{[]string{"0.500K"}, "decimal-point", ""},
		{[]string{"12", "1.500", "2.500"}, "", `the value "1.500" in column views has two possible meanings, and the other values do not show which meaning is right`},
		{[]string{"1,500"}, "", "--number-format=decimal-point or --number-format=decimal-comma"},
		{[]string{"1.500M"}, "", "the other values do not show which meaning is right"},
		{[]string{"1.5K", "1,5K"}, "", "make the column uniform"},
		{[]string{"a.b", "12.a"}, "", ""},
	} {
		var e evidence
		for _, v := range c.values {
			e.addNumber(v)
		}
		format, _, err := e.decideFormat(fieldViews, "--number-format", string(DecimalPoint), string(DecimalComma))
		require.Equal(t, c.want, format, c.values)
		if c.err == "" {
			require.NoError(t, err, c.values)
		} else {
			require.ErrorContains(t, err, c.err, c.values)
		}
	}
}

// Requirements in docs/coverage.md: 11.9-04
func TestEvidence_detectsDateFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		values []string
		want   string
		err    string
	}{
		{[]string{"2026-04-03", "2026/4/3", "3 Apr 2026", "04/04/2026"}, "", ""},
		{[]string{"03/04/2026", "31/01/2026"}, "day-first", ""},
		{[]string{"03/04/2026", "01/31/2026 14:00"}, "month-first", ""},
		{[]string{"03/04/2026", "04/04/2026"}, "", "--date-format=day-first or --date-format=month-first"},
		{[]string{"31.01.2026", "01/31/2026"}, "", "make the column uniform"},
		{[]string{"31/31/2026"}, "", ""},
	} {
		var e evidence
		for _, v := range c.values {
			e.addDate(v)
		}
		format, _, err := e.decideFormat(fieldDate, "--date-format", string(DayFirst), string(MonthFirst))
		require.Equal(t, c.want, format, c.values)
		if c.err == "" {
			require.NoError(t, err, c.values)
		} else {
			require.ErrorContains(t, err, c.err, c.values)
		}
	}
}

// Requirements in docs/coverage.md: 11.9-04
func TestParseInstant_usesTheGivenDateFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text   string
		format DateFormat
		want   string
	}{
		{"03/04/2026", DayFirst, "2026-04-03T00:00:00Z"}, {"03/04/2026", MonthFirst, "2026-03-04T00:00:00Z"}, {"3.4.2026 14:05", DayFirst, "2026-04-03T14:05:00Z"},
		{"3-4-2026, 2:05 pm", MonthFirst, "2026-03-04T14:05:00Z"}, {"04/04/2026", "", "2026-04-04T00:00:00Z"}, {"3 Apr 2026", "", "2026-04-03T00:00:00Z"},
		{"April 3, 2026", "", "2026-04-03T00:00:00Z"}, {"2026/4/3", "", "2026-04-03T00:00:00Z"}, {"2026-04-03", MonthFirst, "2026-04-03T00:00:00Z"},
	} {
		at, err := parseInstant(c.text, c.format)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, at.Time().Format("2006-01-02T15:04:05Z07:00"), c.text)
	}
	for text, format := range map[string]DateFormat{"03/04/2026": "", "31/02/2026": DayFirst, "31/01/2026": MonthFirst, "01/02/26": DayFirst, "1/2.2026": DayFirst,
		"01/02/2026 noon": DayFirst, "01/02/1969": DayFirst} {
		_, err := parseInstant(text, format)
		require.Error(t, err, text)
	}
}

// Numbers and dates with two possible meanings must be recorded as ambiguous. If the format is "",
// parseInstant must return an error for such dates.
func FuzzFormats(f *testing.F) {
	for _, seed := range []string{"1,500", "1.500", "12.3K", "1.234,5", "03/04/2026", "31.01.2026 14:00", "K", "1'234", "0.500M"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var numbers, dates evidence
		numbers.addNumber(text)
		dates.addDate(text)
		point, _, errPoint := parseCount(text, DecimalPoint)
		comma, _, errComma := parseCount(text, DecimalComma)
		for _, n := range []*int64{point, comma} {
			if n != nil {
				require.GreaterOrEqual(t, *n, int64(0))
				require.LessOrEqual(t, *n, int64(maxCount))
			}
		}
		if errPoint == nil && errComma == nil && text != "" && *point != *comma {
			require.NotEmpty(t, numbers.ambiguous, "%q must be recorded as ambiguous, because it has two possible meanings", text)
		}
		day, errDay := parseInstant(text, DayFirst)
		month, errMonth := parseInstant(text, MonthFirst)
		if errDay == nil && errMonth == nil && day != month {
			require.NotEmpty(t, dates.ambiguous, "%q must be recorded as ambiguous, because it has two possible meanings", text)
			_, err := parseInstant(text, "")
			require.Error(t, err)
		}
	})
}
