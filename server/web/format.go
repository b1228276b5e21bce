package web

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store/link"
)

// unknown is the text that pages show instead of a number that is not known. Such a number is never shown as 0.
const unknown = "–"

// templateFunctions returns the functions that templates use.
func (p *Pages) templateFunctions() template.FuncMap {
	return template.FuncMap{
		"asset":       p.assetPath,
		"path":        func(parts ...any) string { return p.base + fmt.Sprint(parts...) },
		"count":       formatCount,
		"short":       formatShort,
		"signed":      formatSigned,
		"percent":     formatPercent,
		"multiple":    formatFactor,
		"ratio":       formatRatio,
		"when":        p.relativeTime,
		"dayEnd":      func(closesAt *time.Time) string { return endedDay(*closesAt) },
		"old":         p.areNumbersOld,
		"closed":      func(closesAt *time.Time) bool { return hasClosed(closesAt, p.Now()) },
		"utc":         formatUTC,
		"times":       formatTimes,
		"iso":         formatISO,
		"day":         formatDay,
		"date":        func(t *time.Time) string { return t.UTC().Format(time.DateOnly) },
		"state":       func(s any) state { return stateOfStatus[fmt.Sprint(s)] },
		"stateOf":     stateOf,
		"platform":    func(name any) string { return link.Platform(fmt.Sprint(name)).Title() },
		"title":       titleOf,
		"bare":        shortenLink,
		"picture":     p.thumbnailPath,
		"barWidth":    percentOfHighest,
		"words":       func(s any) string { return strings.ReplaceAll(fmt.Sprint(s), "_", " ") },
		"plural":      plural,
		"positive":    func(n number) bool { f, ok := valueOf(n); return ok && f > 0 },
		"tracking":    func(kind any) string { return trackingTypes[textOf(kind)] },
		"disabled":    func(reason any) string { return disabledBecause[textOf(reason)] },
		"priority":    func(lane string) string { return cmp.Or(laneDescriptions[lane], lane) },
		"rateGroup":   func(group any) string { return rateGroupTexts[fmt.Sprint(group)] },
		"accountName": accountName,
		"add":         func(a, b int) int { return a + b },
		"list":        func(items ...any) []any { return items },
		"gain":        gainWithDays,
		"accountGain": func() string {
			return "views that the videos of the account gained while they were tracked, also those that are stopped now, since its last numbers that are at least 7 days older than the newest ones"
		},
		"order": func(v any, column, label string, meaning ...string) sortHead {
			return sortHead{v, column, label, strings.Join(meaning, "")}
		},
		"value":   formatPlain,
		"seconds": formatDuration,
		"length":  formatLength,
		"cell":    func(c columnValuer, video client.Video) cell { return cell{c.kind(), c.value(&video), &video, ""} },
		"listCell": func(c videoColumn, video client.Video) cell {
			return cell{c.kind(), c.value(&video), &video, c.reasonUnknown(&video)}
		},
		"safeLink": safeLink,
		"textOf":   textOf,
		"code":     formatCode,
	}
}

// rateGroupTexts describes the operations of each rate group in a few words, for the page Settings. All operations of a group have the same
// rate limit.
var rateGroupTexts = map[string]string{
	"authenticate": "Requests that check a token",
	"read":         "Lists, single items, collections, statistics, reports, events and refreshes",
	"write":        "Tracking, stopping, histories, changes of tokens and webhooks",
}

// textOf returns the text to which s points if s is a *string, and "" if s is nil. It formats any other value with fmt.Sprint, so s must not be a
// pointer of another type.
func textOf(s any) string {
	switch s := s.(type) {
	case *string:
		if s != nil {
			return *s
		}
		return ""
	case nil:
		return ""
	}
	return fmt.Sprint(s)
}

// textOrEmpty returns the text that s points to, or "" if s is nil.
func textOrEmpty[T ~string](s *T) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

// number is an integer, a floating-point number, or a pointer to one of them. A nil pointer means that the number is unknown.
type number any

// trackingTypes describes each tracking type of an account in words.
var trackingTypes = map[string]string{"latest_30": "its latest 30 videos", "latest_200": "its latest 200 videos", "all": "all its videos", "new_only": "only new videos"}

// valueOf returns the value of n. The second result is false if n is unknown.
func valueOf(n number) (float64, bool) {
	switch n := n.(type) {
	case *int64:
		if n != nil {
			return float64(*n), true
		}
	case *float64:
		if n != nil {
			return *n, true
		}
	case int64:
		return float64(n), true
	case int:
		return float64(n), true
	case int32:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

// formatPlain formats a number as the JSON of the API does: without thousands separators and abbreviations, so that programs can read it.
// It returns "" for an unknown number.
func formatPlain(n number) string {
	f, ok := valueOf(n)
	if !ok {
		return ""
	}
	return strconv.FormatFloat(f, 'f', -1, 64)
}

// formatCount returns a whole number with a comma after every three digits.
func formatCount(n number) string {
	f, ok := valueOf(n)
	if !ok {
		return unknown
	}
	digits := separateThousands(strconv.FormatInt(int64(math.Abs(f)), 10))
	if f < 0 {
		return "−" + digits
	}
	return digits
}

// separateThousands puts a comma after every three digits of a number without a sign. The number may have decimals.
func separateThousands(digits string) string {
	whole, decimals, hasDecimals := strings.Cut(digits, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if hasDecimals {
		return whole + "." + decimals
	}
	return whole
}

// formatShort returns a number below 10,000 with all digits. It rounds any other number half up to three digits and adds a unit such as k or M, for
// example 1.23M.
func formatShort(n number) string {
	f, ok := valueOf(n)
	if !ok {
		return unknown
	}
	size := int64(math.Abs(f))
	if size < 10_000 {
		return formatCount(n)
	}
	sign := ""
	if f < 0 {
		sign = "−"
	}
	const largest = 1_000_000_000_000
	for _, unit := range []struct {
		size int64
		name string
	}{{1000, "k"}, {1_000_000, "M"}, {1_000_000_000, "B"}, {largest, "T"}} {
		for decimals, step := 2, unit.size/100; decimals >= 0; decimals, step = decimals-1, step*10 {
			if rounded := (size + step/2) / step; rounded < 1000 { // a number such as 999,999 needs fewer decimals or the next unit
				return sign + strconv.FormatFloat(float64(rounded)/math.Pow10(decimals), 'f', decimals, 64) + unit.name
			}
		}
	}
	return sign + separateThousands(strconv.FormatInt((size+largest/2)/largest, 10)) + "T"
}

// formatSigned returns a change as text: a number with a plus or minus sign.
func formatSigned(n number) string {
	f, ok := valueOf(n)
	if !ok {
		return unknown
	}
	if f > 0 {
		return "+" + formatCount(n)
	}
	return formatCount(n)
}

// formatPercent returns a change in percent, with a plus or minus sign and one decimal. A change
// of less than 0.1 % in either direction has two decimals, and one that would round to 0.00 % is written as <0.01 %. No change is 0.0 %.
func formatPercent(n number) string {
	f, ok := valueOf(n)
	if !ok {
		return unknown
	}
	sign := ""
	if f > 0 {
		sign = "+"
	}
	if f < 0 {
		sign = "−"
	}
	decimals := 1
	switch size := math.Abs(f); {
	case size == 0:
	case size < 0.005:
		return sign + "<0.01 %"
	case size < 0.1:
		decimals = 2
	}
	return sign + separateThousands(strconv.FormatFloat(math.Abs(f), 'f', decimals, 64)) + " %"
}

// formatRatio returns a percentage as text with two decimals, such as "4.56 %". Unlike formatPercent, it adds no plus sign.
func formatRatio(n number) string {
	f, ok := valueOf(n)
	if !ok {
		return unknown
	}
	return separateThousands(strconv.FormatFloat(f, 'f', 2, 64)) + " %"
}

// formatFactor returns a factor as text, such as 12.4× or 0.07×.
func formatFactor(n number) string {
	f, ok := valueOf(n)
	if !ok {
		return unknown
	}
	decimals := 1
	if f < 1 {
		decimals = 2
	}
	return separateThousands(strconv.FormatFloat(f, 'f', decimals, 64)) + "×"
}

// percentOfHighest returns n as a percentage of highest, from 0 to 100. It is the width of the bar behind a number.
func percentOfHighest(n, highest number) string {
	f, ok := valueOf(n)
	m, maxKnown := valueOf(highest)
	if !ok || !maxKnown || m <= 0 || f <= 0 {
		return "0"
	}
	return strconv.FormatFloat(math.Min(100, 100*f/m), 'f', 1, 64)
}

// plural returns the number n with the noun in the right form, for example "1 video" or "2,000 videos".
func plural(n number, one, many string) string {
	if f, ok := valueOf(n); ok && f == 1 {
		return "1 " + one
	}
	return formatCount(n) + " " + many
}

// formatUTC returns a time as text in UTC. It returns "" for nil.
func formatUTC(t any) string {
	switch t := t.(type) {
	case *time.Time:
		if t != nil {
			return t.UTC().Format(utcTimeLayout)
		}
	case time.Time:
		return t.UTC().Format(utcTimeLayout)
	}
	return ""
}

// formatISO returns a time in UTC in RFC 3339 format, for the HTML attribute datetime, or "" for nil.
func formatISO(t any) string {
	switch t := t.(type) {
	case *time.Time:
		if t != nil {
			return t.UTC().Format(time.RFC3339)
		}
	case time.Time:
		return t.UTC().Format(time.RFC3339)
	}
	return ""
}

// relativeTime returns a text such as "3 hours ago" or "in 2 days". If the time is more than 60 days
// away, it returns the date. If t is nil, it returns "never".
func (p *Pages) relativeTime(t any) string {
	var at time.Time
	switch t := t.(type) {
	case *time.Time:
		if t == nil {
			return "never"
		}
		at = *t
	case time.Time:
		at = t
	}
	passed := p.Now().Sub(at)
	format := "%s ago"
	if passed < 0 {
		passed, format = -passed, "in %s"
	}
	switch {
	case passed < time.Minute:
		return "now"
	case passed < 2*time.Hour:
		return fmt.Sprintf(format, fmt.Sprintf("%d min", int(passed.Minutes())))
	case passed < 48*time.Hour:
		return fmt.Sprintf(format, fmt.Sprintf("%d hours", int(passed.Hours())))
	case passed < 60*24*time.Hour:
		return fmt.Sprintf(format, fmt.Sprintf("%d days", int(passed.Hours()/24)))
	}
	return at.UTC().Format(time.DateOnly)
}

// areNumbersOld returns true if the newest numbers of a video are more than 48 hours old. updatedAt is
// nil if the video has no numbers.
func (p *Pages) areNumbersOld(updatedAt *time.Time) bool {
	return updatedAt != nil && p.Now().Sub(*updatedAt) > 48*time.Hour
}

// formatDay returns a date in the form 2006-01-02. d is a date, a pointer to a date, or nil. For nil, formatDay returns the text for
// unknown values.
func formatDay(d any) string {
	switch d := d.(type) {
	case *openapi_types.Date:
		if d != nil {
			return d.Format(time.DateOnly)
		}
	case openapi_types.Date:
		return d.Format(time.DateOnly)
	}
	return unknown
}

// state says how a page shows a fetch status. Word is the text, Icon is the name of the symbol, and Class is the CSS class for the colour.
type state struct {
	Word, Icon, Class string
}

// stateOfStatus maps each fetch status to the state with which pages show it.
var stateOfStatus = map[string]state{
	"ok":          {"Up to date", "check", "good"},
	"pending":     {"Waiting for numbers", "clock", "neutral"},
	waitingFirst:  {"Waiting for first numbers", "clock", "neutral"},
	waitingNew:    {"Waiting for new numbers", "clock", "neutral"},
	"delayed":     {"Late", "clock", "warn"},
	"failing":     {"Failing", "alert", "bad"},
	"private":     {"Private", "lock", "warn"},
	"gone":        {"Gone from the platform", "cross", "bad"},
	"restricted":  {"Restricted", "lock", "warn"},
	"unsupported": {"No source", "cross", "warn"},
	"stopped":     {"Not tracked", "pause", "neutral"},
	"":            {"Only linked", "pause", "neutral"},
}

// Two further keys of the map stateOfStatus. They are used instead of the fetch status "pending".
const (
	waitingFirst = "waiting for first numbers" // for a video or account without numbers
	waitingNew   = "waiting for new numbers"   // for a video or account with old numbers, from an import or from earlier tracking
)

// stateOf returns the key of a video or account in the map stateOfStatus. It can return waitingFirst
// or waitingNew instead of the fetch status "pending".
func stateOf(item any) string {
	var status client.FetchStatus
	var masked, known bool
	switch item := item.(type) {
	case client.Video:
		return stateOf(&item)
	case client.Account:
		return stateOf(&item)
	case *client.Video:
		status, masked, known = item.FetchStatus, item.MetricsMasked != nil, item.LatestUpdatedAt != nil || item.LatestViews != nil
	case *client.Account:
		if item.FetchStatus != nil {
			status = client.FetchStatus(*item.FetchStatus)
		}
		masked, known = item.MetricsMasked != nil, item.CheckedAt != nil || item.LatestFollowersCount != nil
	}
	switch {
	case status != client.FetchStatusPending || masked: // if the tier masks numbers, the page cannot tell whether the item has numbers
		return string(status)
	case known:
		return waitingNew
	}
	return waitingFirst
}

// titleOf returns the caption of a video. If the caption is empty, it returns the link of the video without https:// and www.
func titleOf(v client.Video) string {
	if title := strings.TrimSpace(v.Title); title != "" {
		return title
	}
	return shortenLink(v.AdLink)
}

// shortenLink returns a link without https:// and without www.
func shortenLink(link string) string {
	return strings.TrimPrefix(strings.TrimPrefix(link, "https://"), "www.")
}

// formatCode returns a text as HTML in which the parts between backticks are code.
func formatCode(text string) template.HTML {
	var out strings.Builder
	for n, part := range strings.Split(text, "`") {
		if part = template.HTMLEscapeString(part); n%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		out.WriteString(part)
	}
	return template.HTML(out.String()) //nolint:gosec // safe, because every part is escaped
}

// safeLink checks a link that other people wrote. It returns the link if it is an http or https URL, and "" otherwise.
func safeLink(link string) string {
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return link
}

// formatDuration returns a duration of n seconds as a short text, such as "3 h". It returns "–" if n is nil.
func formatDuration(n *float64) string {
	switch {
	case n == nil:
		return unknown
	case *n < 90:
		return fmt.Sprintf("%.0f s", *n)
	case *n < 90*60:
		return fmt.Sprintf("%.0f min", *n/60)
	case *n < 48*3600:
		return fmt.Sprintf("%.0f h", *n/3600)
	}
	return fmt.Sprintf("%.0f days", *n/86400)
}

// formatLength returns the length of a video as text, such as "7.7 s" or "1:05 min". seconds is a decimal number. If it is not a number,
// formatLength returns it unchanged.
func formatLength(seconds string) string {
	n, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		return seconds
	}
	if n < 59.95 {
		return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) + " s"
	}
	whole := int64(math.Round(n))
	if whole < 3600 {
		return fmt.Sprintf("%d:%02d min", whole/60, whole%60)
	}
	return fmt.Sprintf("%d:%02d:%02d h", whole/3600, whole/60%60, whole%60)
}

// columnValuer is a column of a table of videos. On a share page, it is a shareMetric, and on all other pages a videoColumn.
type columnValuer interface {
	kind() string
	value(video *client.Video) any
}

// cell is one cell of a table of videos: the value of a column for a video.
type cell struct {
	Kind   string
	Value  any
	Video  *client.Video
	Reason string // why the value is unknown; "" if it is known, or if the reason is not known
}

// sortHead is the heading of a table column. A click on the heading sorts the table by the column.
type sortHead struct {
	View                   any
	Column, Label, Meaning string
}

// parseSeconds parses the value of a Retry-After header, a number of seconds.
func parseSeconds(s string) (time.Duration, error) {
	n, err := strconv.Atoi(s)
	return time.Duration(n) * time.Second, err
}
