package web

import (
	"cmp"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// amounts are the amounts to pay to the accounts of a report. They are computed for each response, without floating-point numbers, and never stored.
type amounts struct {
	Rate     *big.Rat // amount for 1,000 views gained
	Cap      *big.Rat // highest amount for each account; nil if there is none
	Currency string   // three letters; "" if no currency was given
	Rows     []amount // the amount of each account, in the order of the accounts
	// WithStartViews is true if the amounts also pay the views that videos uploaded in the period had at the start.
	WithStartViews bool
	undated        int64 // number of videos whose views at the start could not be paid, because their upload day is unknown; 0 if WithStartViews is false
}

// amount is what to pay to one account, or to all accounts together.
type amount struct {
	Value        *big.Rat // a number with two decimals, at least 0; nil if unknown
	PaidViews    *int64   // the views for which the amount is paid; nil if unknown
	Regained     int64    // number of views that are not paid, because the account lost as many in reports that this report continues
	Capped       bool     // true if the amount reached the cap
	BelowZero    bool     // true if PaidViews is below 0, so that Value is 0
	UnknownGains int64    // number of videos of the account that add nothing to Value, because their gain is unknown
}

// The rate and the cap must be in these ranges.
var (
	minRate, maxRate = big.NewRat(1, 10_000), big.NewRat(1_000_000, 1)
	minCap, maxCap   = big.NewRat(1, 100), big.NewRat(1_000_000_000, 1)
)

// startViews are the views at the start of videos that were uploaded in the period of a report. These views are not gained views.
type startViews struct {
	Videos    int64    // number of videos that were uploaded in the period and had views at the start
	Views     int64    // sum of the views of these videos at the start
	Undated   int64    // number of videos that had views at a start in the period, but whose upload day is unknown
	ByAccount []*int64 // the views of each account, in the order of the accounts; nil for an account without such a video
	// WithoutGain has for each account the number of these videos whose gain is unknown.
	WithoutGain []int64
	// Earlier is the number of videos that were uploaded in the period of the continued report, but are first counted in this report. EarlierViews is the
	// sum of their views at the start. Neither report pays these views.
	Earlier, EarlierViews int64
	// Restarted is the number of videos of the continued report whose start is in the period of this report. RestartedViews is the sum of the views that
	// they got between the end of the continued report and this start. Neither report counts these views.
	Restarted, RestartedViews int64
}

// newStartViews computes the views at the start from the videos of a report with the period p. A video whose start is before the period adds nothing: its
// views at the start were known before its upload day, so one of these days is wrong, or they were part of an earlier report. continued is the report that
// this report continues, or nil.
func newStartViews(r *client.Report, p period, continued *store.Report) startViews {
	type account struct {
		id       uuid.UUID // the zero value if the account has no id
		platform client.Platform
		username string
	}
	keyOf := func(id *uuid.UUID, platform client.Platform, username *string) account {
		if id != nil {
			return account{id: *id}
		}
		return account{platform: platform, username: textOf(username)}
	}
	s := startViews{ByAccount: make([]*int64, len(r.Accounts)), WithoutGain: make([]int64, len(r.Accounts))}
	positions := map[account]int{}
	for n, a := range r.Accounts {
		positions[keyOf(a.AccountID, a.Platform, a.Username)] = n
	}
	for _, v := range r.Videos {
		n, found := positions[keyOf(v.AccountID, client.Platform(newReportRow(v).Platform()), v.Username)]
		if v.ContinuedViewsAtEnd != nil && v.StartDay != nil && store.DateOf(v.StartDay.Time) >= p.Start {
			if between := *v.ViewsAtStart - *v.ContinuedViewsAtEnd; between > 0 {
				s.Restarted++
				s.RestartedViews += between
			}
			continue
		}
		switch {
		case !found || v.ViewsAtStart == nil || *v.ViewsAtStart == 0 || v.StartDay == nil || store.DateOf(v.StartDay.Time) < p.Start:
		case v.UploadedAt == nil:
			s.Undated++
		case store.IsNewInPeriod(store.DateOf(v.UploadedAt.Time), store.DateOf(v.StartDay.Time), p.Start, p.End):
			s.Videos++
			s.Views += *v.ViewsAtStart
			s.ByAccount[n] = addKnown(s.ByAccount[n], v.ViewsAtStart)
			if v.ViewsGained == nil {
				s.WithoutGain[n]++
			}
		case continued != nil && store.DateOf(v.UploadedAt.Time) >= continued.StartDate && store.DateOf(v.UploadedAt.Time) <= continued.EndDate:
			s.Earlier++
			s.EarlierViews += *v.ViewsAtStart
		}
	}
	return s
}

// addKnown returns the sum of two counts. An unknown count, nil, adds nothing. The sum of two unknown counts is unknown.
func addKnown(a, b *int64) *int64 {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return new(*a + *b)
}

// Text returns a sentence that says how many views at the start are not gained views. It returns "" if there are none.
func (s startViews) Text() string {
	if s.Views == 0 {
		return ""
	}
	return plural(s.Videos, "video that was", "videos that were") + " uploaded in the period had " + plural(s.Views, "view", "views") +
		" at the start. These are not gained views."
}

// EarlierText returns a sentence about the views at the start that neither this report nor the continued report pays. It returns "" if there are none.
func (s startViews) EarlierText() string {
	if s.EarlierViews == 0 {
		return ""
	}
	return plural(s.Earlier, "video was", "videos were") + " uploaded in the period of the continued report, but first counted in this one, with " +
		plural(s.EarlierViews, "view", "views") + " at the start. The amounts of neither report pay these views."
}

// RestartedText returns a sentence about the views that neither this report nor the continued report counts, because videos begin anew in this report. It
// returns "" if there are none.
func (s startViews) RestartedText() string {
	if s.Restarted == 0 {
		return ""
	}
	return plural(s.Restarted, "video of the continued report begins", "videos of the continued report begin") + " anew in this report, because of a later addition to the collection. " +
		plural(s.RestartedViews, "view", "views") + " between the two reports are in neither of them."
}

// paysStartViews returns true if the query of a page asks to pay also the views at the start of videos that were uploaded in the period.
func paysStartViews(query url.Values) bool {
	return query.Get("start_views") == "true" && strings.TrimSpace(query.Get("rate")) != ""
}

// newAmounts computes the amounts of the accounts with the terms in the query of a page: the rate, the cap, the currency, and whether to pay the views in
// atStart, too. It returns nil if the query has no rate. It returns a *Problem if the rate, the cap or the currency is invalid.
func newAmounts(query url.Values, accounts []client.ReportAccount, atStart startViews) (*amounts, *Problem) {
	rate, highest, currency := strings.TrimSpace(query.Get("rate")), strings.TrimSpace(query.Get("cap")), strings.TrimSpace(query.Get("currency"))
	if rate == "" {
		return nil, nil
	}
	a := &amounts{Currency: strings.ToUpper(currency), Rows: make([]amount, len(accounts)), WithStartViews: paysStartViews(query)}
	var faults []string
	var ok bool
	if a.Rate, ok = parseDecimal(rate, 4, minRate, maxRate); !ok {
		faults = append(faults, fmt.Sprintf("The rate is %q; it must be a number from 0.0001 to 1,000,000 such as 2.50, with at most 4 decimals after a point.", rate))
	}
	if highest != "" {
		if a.Cap, ok = parseDecimal(highest, 2, minCap, maxCap); !ok {
			faults = append(faults, fmt.Sprintf("The cap is %q; it must be a number from 0.01 to 1,000,000,000 such as 500.00, with at most 2 decimals after a point.", highest))
		}
	}
	if currency != "" && !currencyCode.MatchString(currency) {
		faults = append(faults, fmt.Sprintf("The currency is %q; it must be three letters from A to Z, such as EUR.", currency))
	}
	if len(faults) > 0 {
		return nil, &Problem{Status: http.StatusBadRequest, Title: "Invalid amounts to pay", Detail: strings.Join(faults, " ")}
	}
	for n, account := range accounts {
		paid, toRegain := account.ViewsGained, account.ViewsToRegain
		if a.WithStartViews {
			paid, toRegain = addKnown(paid, atStart.ByAccount[n]), account.ViewsToRegainWithStart
		}
		var regained int64
		if paid != nil && toRegain != nil { // older reports do not have the views to regain
			regained = max(0, min(*paid, *toRegain))
			paid = new(*paid - regained)
		}
		a.Rows[n] = a.amountFor(paid)
		a.Rows[n].PaidViews, a.Rows[n].Regained, a.Rows[n].UnknownGains = paid, regained, account.UnknownGains
		if a.WithStartViews {
			a.Rows[n].UnknownGains -= atStart.WithoutGain[n] // the views at the start of these videos are paid
		}
	}
	if a.WithStartViews {
		a.undated = atStart.Undated
	}
	return a, nil
}

var (
	currencyCode = regexp.MustCompile(`^[A-Za-z]{3}$`)
	plainDecimal = regexp.MustCompile(`^[0-9]{1,10}(?:\.([0-9]+))?$`)
)

// parseDecimal parses a number without a sign, such as 2.50. It returns false if the text has another form or more than maxDecimals decimals, or if
// the number is not in the range from lowest to highest.
func parseDecimal(text string, maxDecimals int, lowest, highest *big.Rat) (*big.Rat, bool) {
	parts := plainDecimal.FindStringSubmatch(text)
	if parts == nil || len(parts[1]) > maxDecimals {
		return nil, false
	}
	parsed, ok := new(big.Rat).SetString(text)
	return parsed, ok && parsed.Cmp(lowest) >= 0 && parsed.Cmp(highest) <= 0
}

// amountFor returns the amount for the paid views of an account: the product of the views and the rate, divided by 1000 and rounded half up to
// two decimals, and at most the cap. The amount is unknown if the views are unknown, and 0 if they are below 0.
func (a *amounts) amountFor(paidViews *int64) amount {
	switch {
	case paidViews == nil:
		return amount{}
	case *paidViews < 0:
		return amount{Value: new(big.Rat), BelowZero: true}
	}
	exact := new(big.Rat).Mul(a.Rate, big.NewRat(*paidViews, 1000))
	// FloatString computes with integers and rounds half away from zero.
	rounded, _ := new(big.Rat).SetString(exact.FloatString(2))
	if a.Cap != nil && rounded.Cmp(a.Cap) >= 0 {
		return amount{Value: a.Cap, Capped: true}
	}
	return amount{Value: rounded}
}

// Plain returns the digits of the amount with two decimals, for programs. It returns "" if the amount is unknown.
func (a amount) Plain() string {
	if a.Value == nil {
		return ""
	}
	return a.Value.FloatString(2)
}

// Text returns the amount with a comma after every three digits.
func (a amount) Text() string {
	if a.Value == nil {
		return unknown
	}
	return separateThousands(a.Plain())
}

// Marks returns the words beside the amount, such as "cap reached, unknown for 2". It returns "" if the amount is the product of all paid views and the rate.
func (a amount) Marks() string {
	var marks []string
	if a.Capped {
		marks = append(marks, "cap reached")
	}
	if a.BelowZero {
		marks = append(marks, "gain below 0")
	}
	if a.Regained > 0 {
		marks = append(marks, formatCount(a.Regained)+" regained")
	}
	if a.UnknownGains > 0 {
		marks = append(marks, "unknown for "+formatCount(a.UnknownGains))
	}
	return strings.Join(marks, ", ")
}

// Total returns the sum of the rounded amounts. It is unknown if no amount is known.
func (a *amounts) Total() amount {
	var total amount
	for _, row := range a.Rows {
		if row.Value == nil {
			continue
		}
		if total.Value == nil {
			total.Value = new(big.Rat)
		}
		total.Value.Add(total.Value, row.Value)
	}
	return total
}

// RateText returns the rate with at least two decimals.
func (a *amounts) RateText() string {
	return strings.TrimSuffix(strings.TrimSuffix(a.Rate.FloatString(4), "0"), "0")
}

// TotalText returns the total in words.
func (a *amounts) TotalText() string {
	total := a.Total()
	if total.Value == nil {
		return "No amount is known"
	}
	return "Total: " + a.withCurrency(total.Text()) + " for " + plural(a.count(func(row amount) bool { return row.Value != nil }), "account", "accounts")
}

// TermsText returns the rate and the cap in words.
func (a *amounts) TermsText() string {
	text := a.withCurrency(separateThousands(a.RateText())) + " for each 1,000 "
	if a.ShowsPaidViews() {
		text += "paid views"
	} else {
		text += "views gained"
	}
	if a.Cap != nil {
		text += ", at most " + a.withCurrency(amount{Value: a.Cap}.Text()) + " for each account"
	}
	return text
}

// ShowsPaidViews returns true if an account can have other paid views than gained views, so that the table shows both.
func (a *amounts) ShowsPaidViews() bool {
	return a.WithStartViews || a.count(func(row amount) bool { return row.Regained > 0 }) > 0
}

// withCurrency returns a number with the currency after it, if one was given.
func (a *amounts) withCurrency(text string) string {
	return strings.TrimSpace(text + " " + a.Currency)
}

// Notes returns sentences that say which accounts have no amount or an amount that is not simply the product of their gain and the rate.
func (a *amounts) Notes() []string {
	var notes []string
	if a.WithStartViews {
		notes = append(notes, "Paid views are the gained views, and the views that videos uploaded in the period had at the start.")
	}
	if a.undated > 0 {
		notes = append(notes, plural(a.undated, "video has no known upload day, so its views at the start are not paid.", "videos have no known upload day, so their views at the start are not paid."))
	}
	if n := a.count(func(row amount) bool { return row.Value == nil }); n > 0 {
		notes = append(notes, plural(n, "account has no amount, because its gain is unknown.", "accounts have no amount, because their gains are unknown."))
	}
	if n := a.count(func(row amount) bool { return row.Value != nil && row.UnknownGains > 0 }); n > 0 {
		notes = append(notes, plural(n, "amount leaves out videos whose gain is unknown.", "amounts leave out videos whose gain is unknown."))
	}
	if n := a.count(func(row amount) bool { return row.BelowZero }); n > 0 {
		notes = append(notes, plural(n, "account has a gain below 0, so its amount is 0.00.", "accounts have a gain below 0, so their amounts are 0.00.")+
			" When the lost views return, a report that continues this one does not pay them again.")
	}
	if n := a.count(func(row amount) bool { return row.Regained > 0 }); n > 0 {
		var views int64
		for _, row := range a.Rows {
			views += row.Regained
		}
		notes = append(notes, plural(n, "account", "accounts")+" regained "+plural(views, "view", "views")+" lost in reports that this report continues. These views are not paid again.")
	}
	if a.Cap != nil {
		notes = append(notes, plural(a.count(func(row amount) bool { return row.Capped }), "account", "accounts")+" reached the cap.")
	}
	return notes
}

// count returns the number of accounts whose amount has a property.
func (a *amounts) count(has func(amount) bool) (n int) {
	for _, row := range a.Rows {
		if has(row) {
			n++
		}
	}
	return n
}

// csvColumns returns the names of the columns that the CSV file of the accounts has for the amounts. It returns none if a is nil.
func (a *amounts) csvColumns() []string {
	if a == nil {
		return nil
	}
	return []string{"amount", "currency", "rate_per_1000_views", "cap", "amount_note", "paid_views"}
}

// csvFields returns the values of the columns of csvColumns for the account with index n. The currency and the cap are empty if they were not given.
func (a *amounts) csvFields(n int) []string {
	if a == nil {
		return nil
	}
	return []string{a.Rows[n].Plain(), a.Currency, a.RateText(), amount{Value: a.Cap}.Plain(), a.Rows[n].Marks(), csvNumber(a.Rows[n].PaidViews)}
}
