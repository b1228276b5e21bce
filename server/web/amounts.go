package web

import (
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/reeltally/reeltally/gen/client"
)

// amounts are the amounts to pay to the accounts of a report. They are computed for each response and never stored. All numbers are exact.
type amounts struct {
	Rate     *big.Rat // amount for 1,000 views gained
	Cap      *big.Rat // highest amount for each account; nil if there is none
	Currency string   // three letters; "" if no currency was given
	Rows     []amount // the amount of each account, in the order of the accounts
}

// amount is what to pay to one account, or to all accounts together.
type amount struct {
	Value        *big.Rat // a number with two decimals, at least 0; nil if unknown
	Capped       bool     // true if the amount reached the cap
	BelowZero    bool     // true if the account has a gain below 0, so that Value is 0
	UnknownGains int64    // number of videos of the account whose gain is unknown and therefore missing in Value
}

// The rate and the cap must be in these ranges.
var (
	minRate, maxRate = big.NewRat(1, 10_000), big.NewRat(1_000_000, 1)
	minCap, maxCap   = big.NewRat(1, 100), big.NewRat(1_000_000_000, 1)
)

// newAmounts computes the amounts of the accounts with the terms in the query of a page. It returns nil if the query has no rate, and a *Problem if
// a term is invalid.
func newAmounts(query url.Values, accounts []client.ReportAccount) (*amounts, *Problem) {
	rate, highest, currency := strings.TrimSpace(query.Get("rate")), strings.TrimSpace(query.Get("cap")), strings.TrimSpace(query.Get("currency"))
	if rate == "" {
		return nil, nil
	}
	a := &amounts{Currency: strings.ToUpper(currency), Rows: make([]amount, len(accounts))}
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
		a.Rows[n] = a.amountFor(account.ViewsGained)
		a.Rows[n].UnknownGains = account.UnknownGains
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

// amountFor returns the amount for the views that an account gained: the product of the views and the rate, divided by 1000 and rounded half up to
// two decimals, and at most the cap. The amount is unknown if the gain is unknown, and 0 if the gain is below 0.
func (a *amounts) amountFor(viewsGained *int64) amount {
	switch {
	case viewsGained == nil:
		return amount{}
	case *viewsGained < 0:
		return amount{Value: new(big.Rat), BelowZero: true}
	}
	exact := new(big.Rat).Mul(a.Rate, big.NewRat(*viewsGained, 1000))
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

// Marks returns the words beside the amount, such as "cap reached, unknown for 2". It returns "" if the amount is the product of all gains and the rate.
func (a amount) Marks() string {
	var marks []string
	if a.Capped {
		marks = append(marks, "cap reached")
	}
	if a.BelowZero {
		marks = append(marks, "gain below 0")
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
	text := a.withCurrency(separateThousands(a.RateText())) + " for each 1,000 views gained"
	if a.Cap != nil {
		text += ", at most " + a.withCurrency(amount{Value: a.Cap}.Text()) + " for each account"
	}
	return text
}

// withCurrency returns a number with the currency after it, if one was given.
func (a *amounts) withCurrency(text string) string {
	return strings.TrimSpace(text + " " + a.Currency)
}

// Notes returns sentences that say which accounts have no amount or an amount that is not simply the product of their gain and the rate.
func (a *amounts) Notes() []string {
	var notes []string
	if n := a.count(func(row amount) bool { return row.Value == nil }); n > 0 {
		notes = append(notes, plural(n, "account has no amount, because its gain is unknown.", "accounts have no amount, because their gains are unknown."))
	}
	if n := a.count(func(row amount) bool { return row.Value != nil && row.UnknownGains > 0 }); n > 0 {
		notes = append(notes, plural(n, "amount leaves out videos whose gain is unknown.", "amounts leave out videos whose gain is unknown."))
	}
	if n := a.count(func(row amount) bool { return row.BelowZero }); n > 0 {
		notes = append(notes, plural(n, "account has a gain below 0, so its amount is 0.00.", "accounts have a gain below 0, so their amounts are 0.00."))
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
	return []string{"amount", "currency", "rate_per_1000_views", "cap", "amount_note"}
}

// csvFields returns the values of the columns of csvColumns for the account with index n. The currency and the cap are empty if they were not given.
func (a *amounts) csvFields(n int) []string {
	if a == nil {
		return nil
	}
	return []string{a.Rows[n].Plain(), a.Currency, a.RateText(), amount{Value: a.Cap}.Plain(), a.Rows[n].Marks()}
}
