package web

import (
	"math"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// computeAmounts returns the amounts of accounts that gained the given views. It requires that the terms are valid.
func computeAmounts(t require.TestingT, rate, highest, currency string, gains ...*int64) *amounts {
	accounts := make([]client.ReportAccount, len(gains))
	for n, gained := range gains {
		accounts[n].ViewsGained = gained
	}
	computed, refused := newAmounts(url.Values{"rate": {rate}, "cap": {highest}, "currency": {currency}}, accounts, startViews{})
	require.Nil(t, refused)
	require.NotNil(t, computed)
	return computed
}

func TestAmount_isExactAndRoundedHalfUp(t *testing.T) {
	t.Parallel()
	const largest = 1<<53 - 1 // the largest gain that the API allows
	for _, test := range []struct {
		rate, highest string
		gained        int64
		want          string
	}{
		{"2.50", "", 1000, "2.50"},
		{"2.5", "", 0, "0.00"},
		{"1", "", 1004, "1.00"},
		{"1", "", 1005, "1.01"}, // a floating-point number for 1.005 is below it and would be rounded down
		{"1", "", 1015, "1.02"},
		{"1", "", 1014, "1.01"},
		{"0.0001", "", 49_999, "0.00"},
		{"0.0001", "", 50_000, "0.01"},
		{"0.29", "", 100_000, "29.00"},
		{"1000000", "", 1, "1000.00"},
		{"1000000", "", largest, "9007199254740991000.00"},
		{"999999.9999", "", largest, "9007199253840271074.53"},
		{"1000000", "", math.MaxInt64, "9223372036854775807000.00"},
		{"1000000", "1000000000", largest, "1000000000.00"},
		{"1", "1.01", 1004, "1.00"},
		{"1", "1.01", 1005, "1.01"},
		{"1", "1.01", 9000, "1.01"},
		{"1", "0.5", 501, "0.50"},
		{"1", "5", -1, "0.00"},
		{"1", "", math.MinInt64, "0.00"},
	} {
		row := computeAmounts(t, test.rate, test.highest, "", &test.gained).Rows[0]
		require.Equal(t, test.want, row.Plain(), "%+v", test)
		require.Equal(t, test.gained < 0, row.BelowZero, "%+v", test)
		require.Equal(t, test.highest != "" && test.gained > 0 && row.Value.Cmp(computeAmounts(t, "1", test.highest, "").Cap) == 0, row.Capped, "%+v", test)
	}
}

// TestAmount_isTheRoundedProduct computes the expected amount of an account with integers, in units of 0.01.
func TestAmount_isTheRoundedProduct(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		units := rapid.Int64Range(1, 1_000_000*10_000).Draw(t, "rate in units of 0.0001")
		gained := rapid.Int64Range(0, math.MaxInt64).Draw(t, "gained")
		rate := big.NewRat(units, 10_000).FloatString(4)
		product := new(big.Int).Mul(big.NewInt(units), big.NewInt(gained)) // in units of 0.0001 / 1000
		product.Add(product, big.NewInt(50_000)).Div(product, big.NewInt(100_000))
		got := computeAmounts(t, rate, "", "", &gained).Rows[0].Plain()
		require.Equal(t, product.String(), strings.TrimLeft(strings.Replace(got, ".", "", 1), "0")+map[bool]string{true: "0"}[product.Sign() == 0])
	})
}

func TestAmounts_unknownGainsHaveNoAmount(t *testing.T) {
	t.Parallel()
	a := computeAmounts(t, "2", "", "", nil, new(int64(1002)), nil, new(int64(-5)), new(int64(1002)))
	require.Equal(t, []string{"", "2.00", "", "0.00", "2.00"}, []string{a.Rows[0].Plain(), a.Rows[1].Plain(), a.Rows[2].Plain(), a.Rows[3].Plain(), a.Rows[4].Plain()})
	require.Equal(t, unknown, a.Rows[0].Text())
	require.Equal(t, "4.00", a.Total().Plain(), "the total must be the sum of the rounded amounts")
	require.Equal(t, []string{"Total: 4.00 for 3 accounts", "2.00 for each 1,000 views gained"}, []string{a.TotalText(), a.TermsText()})
	require.Equal(t, []string{"2 accounts have no amount, because their gains are unknown.", "1 account has a gain below 0, so its amount is 0.00. When the lost views return, a report that continues this one does not pay them again."}, a.Notes())

	a = computeAmounts(t, "1234.5675", "9000", "eur", new(int64(7000)), new(int64(8000)), new(int64(9000)))
	require.Equal(t, "Total: 26,641.97 EUR for 3 accounts", a.TotalText())
	require.Equal(t, "1,234.5675 EUR for each 1,000 views gained, at most 9,000.00 EUR for each account", a.TermsText())
	require.Equal(t, []string{"2 accounts reached the cap."}, a.Notes())

	const largest = 1<<53 - 1
	a = computeAmounts(t, "1000000", "", "", slices.Repeat([]*int64{new(int64(largest))}, 5000)...) // a report has at most 5,000 accounts
	require.Equal(t, "45,035,996,273,704,955,000,000.00", a.Total().Text())

	a = computeAmounts(t, "2", "5", "", nil)
	require.Equal(t, "No amount is known", a.TotalText(), "a total of unknown amounts must not be 0")
	require.Equal(t, []string{"1 account has no amount, because its gain is unknown.", "0 accounts reached the cap."}, a.Notes())
}

func TestAmounts_refuseInvalidTerms(t *testing.T) {
	t.Parallel()
	const rate = "it must be a number from 0.0001 to 1,000,000 such as 2.50, with at most 4 decimals after a point."
	const highest = "it must be a number from 0.01 to 1,000,000,000 such as 500.00, with at most 2 decimals after a point."
	const currency = "it must be three letters from A to Z, such as EUR."
	for query, want := range map[string]string{
		"rate=0":                          `The rate is "0"; ` + rate,
		"rate=0.00005":                    `The rate is "0.00005"; ` + rate,
		"rate=1.00001":                    `The rate is "1.00001"; ` + rate,
		"rate=00000000001":                `The rate is "00000000001"; ` + rate,
		"rate=1&cap=1.001":                `The cap is "1.001"; ` + highest,
		"rate=1000000.0001":               `The rate is "1000000.0001"; ` + rate,
		"rate=-1":                         `The rate is "-1"; ` + rate,
		"rate=%2B1":                       `The rate is "+1"; ` + rate,
		"rate=2,50":                       `The rate is "2,50"; ` + rate,
		"rate=1e3":                        `The rate is "1e3"; ` + rate,
		"rate=1/3":                        `The rate is "1/3"; ` + rate,
		"rate=0x1p2":                      `The rate is "0x1p2"; ` + rate,
		"rate=1_0":                        `The rate is "1_0"; ` + rate,
		"rate=.5":                         `The rate is ".5"; ` + rate,
		"rate=5.":                         `The rate is "5."; ` + rate,
		"rate=Inf":                        `The rate is "Inf"; ` + rate,
		"rate=%D9%A1":                     `The rate is "١"; ` + rate,
		"rate=1%0A2":                      `The rate is "1\n2"; ` + rate,
		"rate=1&cap=0":                    `The cap is "0"; ` + highest,
		"rate=1&cap=0.001":                `The cap is "0.001"; ` + highest,
		"rate=1&cap=1000000000.01":        `The cap is "1000000000.01"; ` + highest,
		"rate=1&currency=EURO":            `The currency is "EURO"; ` + currency,
		"rate=1&currency=E1R":             `The currency is "E1R"; ` + currency,
		"rate=1&currency=%C5%BFEK":        `The currency is "ſEK"; ` + currency,
		"rate=x&cap=y&currency=%E2%82%AC": `The rate is "x"; ` + rate + ` The cap is "y"; ` + highest + ` The currency is "€"; ` + currency,
	} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		computed, refused := newAmounts(values, make([]client.ReportAccount, 1), startViews{})
		require.Nil(t, computed, query)
		require.NotNil(t, refused, query)
		require.Equal(t, want, refused.Detail, query)
	}
	for _, query := range []string{"", "rate=", "rate=%20", "rate=&cap=5&currency=EUR"} {
		values, err := url.ParseQuery(query)
		require.NoError(t, err)
		computed, refused := newAmounts(values, make([]client.ReportAccount, 1), startViews{})
		require.Nil(t, computed, query)
		require.Nil(t, refused, query)
	}
	require.Equal(t, "2.50", computeAmounts(t, " 2.5 ", " 3 ", " eur ").RateText())
	for _, rate := range []string{"0.0001", "1000000", "1000000.0000"} {
		computeAmounts(t, rate, "", "")
	}
	for _, highest := range []string{"0.01", "1000000000.00"} {
		computeAmounts(t, "1", highest, "")
	}
}

func TestAmounts_payTheViewsAtTheStartOfVideosUploadedInThePeriod(t *testing.T) {
	t.Parallel()
	day := func(text string) *openapi_types.Date {
		parsed, err := time.Parse(time.DateOnly, text)
		require.NoError(t, err)
		return &openapi_types.Date{Time: parsed}
	}
	id, name := uuid.New(), "some"
	video := func(account *uuid.UUID, username *string, uploaded, start *openapi_types.Date, views *int64) client.ReportVideo {
		return client.ReportVideo{AdLink: "https://www.tiktok.com/@some/video/7000000000000000001", AccountID: account, Username: username, UploadedAt: uploaded, StartDay: start, ViewsAtStart: views}
	}
	r := client.Report{
		Accounts: []client.ReportAccount{
			{AccountID: &id, Platform: client.PlatformTiktok, ViewsGained: new(int64(-2500)), UnknownGains: 2},
			{Platform: client.PlatformTiktok, Username: &name, UnknownGains: 1},
			{Platform: client.PlatformTiktok, ViewsGained: new(int64(100))},
			{Platform: client.PlatformInstagram, ViewsGained: new(int64(7))},
		},
		Videos: []client.ReportVideo{
			video(&id, &name, day("2026-11-01"), day("2026-11-01"), new(int64(1000))),
			video(&id, nil, day("2026-11-30"), day("2026-11-30"), new(int64(2000))),
			video(nil, &name, day("2026-11-15"), day("2026-11-16"), new(int64(500))),
			video(nil, nil, nil, day("2026-11-15"), new(int64(40))),                          // upload day unknown
			video(nil, nil, nil, day("2026-10-31"), new(int64(40))),                          // upload day unknown, but before the period
			video(nil, nil, day("2026-10-31"), day("2026-11-02"), new(int64(40))),            // uploaded before the period
			video(nil, nil, day("2026-12-01"), day("2026-11-02"), new(int64(40))),            // uploaded after the period
			video(nil, nil, day("2026-11-02"), day("2026-10-31"), new(int64(40))),            // begins with the end of an earlier report
			video(nil, nil, day("2026-11-02"), nil, nil),                                     // views unknown
			video(nil, nil, day("2026-11-02"), day("2026-11-02"), new(int64(0))),             // no views at the start
			video(new(uuid.New()), nil, day("2026-11-02"), day("2026-11-02"), new(int64(9))), // account missing in the report
		},
	}
	p := period{Start: store.DateOf(day("2026-11-01").Time), End: store.DateOf(day("2026-11-30").Time)}
	atStart := newStartViews(&r, p, nil)
	require.Equal(t, startViews{Videos: 3, Views: 3500, Undated: 1, ByAccount: []*int64{new(int64(3000)), new(int64(500)), nil, nil}, WithoutGain: []int64{2, 1, 0, 0}}, atStart)
	require.Equal(t, "3 videos that were uploaded in the period had 3,500 views at the start. These are not gained views.", atStart.Text())
	require.Empty(t, atStart.EarlierText())
	continuing := newStartViews(&r, p, &store.Report{StartDate: p.Start - 31, EndDate: p.Start - 1})
	require.Equal(t, "1 video was uploaded in the period of the continued report, but first counted in this one, with 40 views at the start. The amounts of neither report pay these views.", continuing.EarlierText())
	require.Empty(t, startViews{Undated: 1}.Text())

	a, refused := newAmounts(url.Values{"rate": {"1"}, "cap": {"0.5"}, "start_views": {"true"}}, r.Accounts, atStart)
	require.Nil(t, refused)
	var got [][]string
	for n := range a.Rows {
		got = append(got, append(a.csvFields(n), a.Rows[n].Marks()))
	}
	require.Equal(t, [][]string{
		{"0.50", "", "1.00", "0.50", "cap reached", "500", "cap reached"},
		{"0.50", "", "1.00", "0.50", "cap reached", "500", "cap reached"},
		{"0.10", "", "1.00", "0.50", "", "100", ""},
		{"0.01", "", "1.00", "0.50", "", "7", ""},
	}, got)
	require.Equal(t, "1.00 for each 1,000 paid views, at most 0.50 for each account", a.TermsText())
	require.Equal(t, []string{"Paid views are the gained views, and the views that videos uploaded in the period had at the start.",
		"1 video has no known upload day, so its views at the start are not paid.", "2 accounts reached the cap."}, a.Notes())

	r.Accounts[0].ViewsGained = new(int64(-3001))
	a, _ = newAmounts(url.Values{"rate": {"1"}, "start_views": {"true"}}, r.Accounts, atStart)
	require.Equal(t, []string{"0.00", "", "1.00", "", "gain below 0", "-1"}, a.csvFields(0))

	a, _ = newAmounts(url.Values{"rate": {"1"}}, r.Accounts, atStart)
	require.Equal(t, []string{"", "", "1.00", "", "unknown for 1", ""}, a.csvFields(1), "without the term, only gained views are paid")
}

// FuzzParseDecimal requires that parseDecimal accepts exactly the decimal numbers in the range, and that it keeps their value.
func FuzzParseDecimal(f *testing.F) {
	for _, seed := range []string{"", "0", "2.50", "0.0001", "0.00001", "1.00001", "00000000001", "1000000", "1000000.0001", "-1", "1e3", "1/2", "1,5", ".5", "5.", "00002", "1\n", "٣"} {
		f.Add(seed)
	}
	digits := regexp.MustCompile(`\A[0-9]+\z`)
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseDecimal(text, 4, minRate, maxRate)
		whole, decimals, hasPoint := strings.Cut(text, ".")
		inForm := digits.MatchString(whole) && len(whole) <= 10 && len(decimals) <= 4 && (!hasPoint || digits.MatchString(decimals))
		if !inForm {
			require.False(t, ok)
			return
		}
		units, isNumber := new(big.Int).SetString(whole+decimals+strings.Repeat("0", 4-len(decimals)), 10)
		require.True(t, isNumber)
		require.Equal(t, units.Sign() > 0 && units.Cmp(big.NewInt(1_000_000*10_000)) <= 0, ok)
		if ok {
			require.Zero(t, got.Cmp(new(big.Rat).SetFrac(units, big.NewInt(10_000))))
		}
	})
}
