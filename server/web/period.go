package web

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

// periodDays are the lengths of the periods that a page offers, in days.
var periodDays = []int32{7, 30, 90, 365}

// period is the range of days whose numbers a page shows. All days are UTC days.
type period struct {
	Start, End store.Date
	Days       int32      // number of days in the period
	Custom     bool       // true if the visitor chose the days on which the period begins and ends
	Oldest     store.Date // oldest day that a history may have in the organisation's tier
	Choices    []int32    // lengths of periods that the organisation's tier allows, in days
	today      store.Date
	refused    bool       // true if the period in the query was refused; the page then shows the default period
	first      string     // first day in the query, as text, if the query was refused; "" otherwise
	last       string     // last day in the query, as text, if the query was refused; "" otherwise
	query      url.Values // query of the page; a link to another period keeps all parameters except those of the period
}

// period returns the period in the query of the page. If the query has no period or an invalid one,
// the period is the last 30 days.
func (v *visit) period() (period, error) {
	p, err := v.requestedPeriod(v.r.URL.Query())
	if err == nil {
		return p, nil
	}
	if err := v.refuseFilter(err); err != nil {
		return p, err
	}
	query := v.r.URL.Query()
	p.Days = 30
	p.Start, p.End, p.Custom = p.today-store.Date(p.Days)+1, p.today, false
	p.refused, p.first, p.last, p.query = true, query.Get("start"), query.Get("end"), withParameters(query, "start", "", "end", "", "days", "")
	return p, nil
}

// requestedPeriod returns the period that the query selects: the last 30 days if the query has no period. It returns a *Problem if the query
// is invalid.
func (v *visit) requestedPeriod(query url.Values) (period, error) {
	today := store.DateOf(v.Now())
	p := period{today: today, End: today, Days: 30, Oldest: today - store.Date(v.Backend.HistoryDays(v.id.Organisation.Tier)), query: query} //nolint:gosec // no overflow, because a history has at most two years
	for _, n := range periodDays {
		if today-store.Date(n)+1 >= p.Oldest {
			p.Choices = append(p.Choices, n)
		}
	}
	refuse := func(format string, args ...any) (period, error) {
		return p, &Problem{Status: http.StatusBadRequest, Title: "Invalid period", Detail: fmt.Sprintf(format, args...)}
	}
	if start, end := query.Get("start"), query.Get("end"); start != "" || end != "" {
		first, err := time.Parse(time.DateOnly, start)
		if err != nil {
			return refuse("The first day is %q; it must be a day such as %s.", start, today)
		}
		last, err := time.Parse(time.DateOnly, end)
		if err != nil {
			return refuse("The last day is %q; it must be a day such as %s.", end, today)
		}
		p.Custom, p.Start, p.End = true, store.DateOf(first), store.DateOf(last)
		p.Days = int32(p.End-p.Start) + 1
		switch {
		case p.Start > p.End:
			return refuse("The first day, %s, is after the last day, %s.", start, end)
		case p.End > today:
			return refuse("The last day, %s, is after today, %s.", end, today)
		case p.Start < p.Oldest:
			return refuse("The first day is %s; the oldest day that can be shown is %s.", start, p.Oldest)
		}
		return p, nil
	}
	if text := query.Get("days"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || !slices.Contains(p.Choices, int32(n)) {
			return refuse("The length of the period is %q days; it must be %s days.", text, words.JoinWithOr(p.Choices))
		}
		p.Days = int32(n)
	}
	p.Start = p.End - store.Date(p.Days) + 1
	return p, nil
}

// previous returns the first and the last day of the previous period: the days before the period, as many as the period has. It returns false if the
// organisation's tier does not show all of these days.
func (p period) previous() (first, last store.Date, shown bool) {
	first, last = p.Start-store.Date(p.Days), p.Start-1
	return first, last, first >= p.Oldest
}

// historyQuery returns the query parameters for the history in the period. The request also covers the
// week before, to compute the gain of the first day.
func (v *visit) historyQuery(p period) url.Values {
	return url.Values{"start_date": {max(p.Oldest, p.Start-7).String()}, "end_date": {p.End.String()}, "include": {"quality"}}
}

// Link returns the query of the same page with a period of n days.
func (p period) Link(n int32) string {
	return "?" + withParameters(p.query, "days", strconv.Itoa(int(n)), "start", "", "end", "").Encode()
}

// lastMonth returns the first and the last day of the calendar month before the current one.
func (p period) lastMonth() (first, last store.Date) {
	now := p.today.Time()
	return store.DateOf(time.Date(now.Year(), now.Month()-1, 1, 0, 0, 0, 0, time.UTC)), store.DateOf(time.Date(now.Year(), now.Month(), 0, 0, 0, 0, 0, time.UTC))
}

// LastMonthLink returns the query of the same page with the last calendar month as its period. It returns "" if the organisation's tier does not
// show the whole month.
func (p period) LastMonthLink() string {
	first, last := p.lastMonth()
	if first < p.Oldest {
		return ""
	}
	return "?" + withParameters(p.query, "days", "", "start", first.String(), "end", last.String()).Encode()
}

// IsLastMonth returns true if the period is the last calendar month.
func (p period) IsLastMonth() bool {
	first, last := p.lastMonth()
	return p.Start == first && p.End == last
}

// HiddenFields returns the hidden inputs of the form for another period. They keep all parameters of the page except those of the period.
func (p period) HiddenFields() []hiddenField {
	return hiddenFields(withParameters(p.query, "days", "", "start", "", "end", ""))
}

// Refused returns true if the period in the query of the page is invalid. The page then shows the default period.
func (p period) Refused() bool { return p.refused }

// First returns the value of the form field for the first day of the period.
func (p period) First() string { return cmp.Or(p.first, p.Start.String()) }

// Last returns the value of the form field for the last day of the period.
func (p period) Last() string { return cmp.Or(p.last, p.End.String()) }

// Today returns the current day.
func (p period) Today() store.Date { return p.today }

// limits returns the days that a page names beside a change or gain in the period: `since`, the first day that the change counts, if it is after the first
// day of the period, and `until`, the last day that the change counts, if it is before the last day of the period. If the period ends today, a change until yesterday counts as complete. since and until are "" for a
// change that covers the whole period. first and last are the days of the counts whose difference is the change.
func (p period) limits(first, last store.Date) (since, until string) {
	if first >= p.Start {
		since = (first + 1).String()
	}
	lastDay := p.End
	if p.EndsToday() {
		lastDay-- // a count of yesterday is enough, because the fetch of today may still follow
	}
	if last < lastDay {
		until = last.String()
	}
	return since, until
}

// EndsToday returns true if the last day of the period is the current day, so that the newest numbers belong to the period. It returns false for every
// report, also if its last day is the current day, because a report gets no numbers after it was saved: its page
// does not set the field today.
func (p period) EndsToday() bool { return p.End == p.today }

// Text returns the period as text, such as "2026-02-16 to 2026-02-22".
func (p period) Text() string { return p.Start.String() + " to " + p.End.String() }

// withParameters returns a copy of query with changed parameters. namesAndValues alternates between
// names and new values. An empty value removes the parameter.
func withParameters(query url.Values, namesAndValues ...string) url.Values {
	out := url.Values{}
	maps.Copy(out, query)
	// The notice about an earlier action must not be shown again.
	out.Del("notice")
	for n := 0; n+1 < len(namesAndValues); n += 2 {
		if namesAndValues[n+1] == "" {
			out.Del(namesAndValues[n])
		} else {
			out.Set(namesAndValues[n], namesAndValues[n+1])
		}
	}
	return out
}
