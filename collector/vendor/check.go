package vendor

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

const (
	maxBatch = 500
	// maxEntries is the largest number of list entries that one request may ask for. It is smaller than fetch.MaxItems, because an answer can
	// have more entries than requested.
	maxEntries = 1000
)

// split is the class of an answer which says that a call had too many targets. The collector then
// makes calls with fewer targets.
const split = "split"

var (
	sourceClasses = []source.Class{source.Temporary, source.RateLimited, source.QuotaSpent, source.AuthFailed, source.BadRequest}
	targetClasses = []source.Class{source.Gone, source.Private, source.Restricted, source.AgeLimited, source.Unsupported}
	placeholder   = regexp.MustCompile(`\{[^{}]*\}`)
)

// problems are the errors found in a vendor description (JSON that describes a vendor's API). Each error begins with the name of the wrong
// member.
type problems []error

// add adds an error with the formatted text. The error begins with the path of the wrong member in the vendor description.
func (p *problems) add(memberPath, format string, args ...any) {
	*p = append(*p, fmt.Errorf("%s %s", memberPath, fmt.Sprintf(format, args...)))
}

// check returns all errors of a vendor description, joined to one error, or nil if it has none.
func (c Config) check() error {
	var p problems
	if !shippedName.MatchString(c.Name) || len(c.Name) > 40 {
		p.add("name", "must be up to 40 lower-case letters, digits and hyphens, not %q", c.Name)
	}
	checkBase(&p, "base_url", c.BaseURL)
	switch c.Auth.In {
	case "bearer":
		if c.Auth.Name != "" {
			p.add("auth.name", "must be absent if auth.in is bearer")
		}
	case "header", "query":
		if c.Auth.Name == "" {
			p.add("auth.name", "is missing")
		}
	default:
		p.add("auth.in", "must be header, bearer or query, not %q", c.Auth.In)
	}
	if c.Concurrency < 0 || c.Concurrency > 100 {
		p.add("concurrency", "must be 0 to 100, not %d", c.Concurrency)
	}
	if c.QuotaResets != "" {
		checkPeriod(&p, "quota_resets", c.QuotaResets)
	}
	names := make(map[string]bool)
	for i, l := range c.Limits {
		memberPath := fmt.Sprintf("limits[%d]", i)
		if l.Name == "" || names[l.Name] {
			p.add(memberPath+".name", "must be a name that no other limit has, not %q", l.Name)
		}
		names[l.Name] = true
		if l.Calls < 1 {
			p.add(memberPath+".calls", "must be at least 1, not %d", l.Calls)
		}
		checkPeriod(&p, memberPath+".per", l.Per)
	}
	for i, path := range c.Message {
		checkPath(&p, fmt.Sprintf("message[%d]", i), path)
	}
	for i, r := range c.Rules {
		r.check(&p, fmt.Sprintf("rules[%d]", i))
	}
	if c.Run != nil {
		c.Run.check(&p, "run")
	}
	if len(c.Calls) == 0 {
		p.add("calls", "must have at least one call")
	}
	for i, call := range c.Calls {
		memberPath := fmt.Sprintf("calls[%d]", i)
		call.check(&p, memberPath)
		if c.Run != nil && call.Kind == queue.KindVideo && call.Missing != source.Temporary {
			p.add(memberPath+".missing", `must be "temporary" if "run" is set, because a run that has not succeeded can lack videos that exist`)
		}
	}
	return errors.Join(p...)
}

// checkBase adds an error if outbound.ParseBaseURL refuses baseURL.
func checkBase(p *problems, memberPath, baseURL string) {
	if _, err := outbound.ParseBaseURL(baseURL); err != nil {
		p.add(memberPath, "%v, not %q", err, baseURL)
	}
}

// checkPeriod adds an error if period is not minute, hour, day or month.
func checkPeriod(p *problems, memberPath string, period Period) {
	if !slices.Contains([]Period{"minute", "hour", "day", "month"}, period) {
		p.add(memberPath, `must be "minute", "hour", "day" or "month", not %q`, period)
	}
}

var notPlain = regexp.MustCompile(`^$|^\.|@|\||(^|\.)!|^[{\[]`)

// checkPath adds an error if gjsonPath is not a simple gjson path. A modifier could make gjson
// parse JSON inside a string without a nesting limit. Alternative.Inside parses such JSON safely.
func checkPath(p *problems, memberPath, gjsonPath string) {
	if notPlain.MatchString(gjsonPath) {
		p.add(memberPath, "must be a simple gjson path such as data.items, without modifiers, pipes and multipaths, not %q", gjsonPath)
	}
}

// check adds an error for each path of the condition that is not valid, or if the condition has no path.
func (c Condition) check(p *problems, memberPath string) {
	if len(c.Path) == 0 {
		p.add(memberPath+".path", "is missing")
	}
	for _, path := range c.Path {
		checkPath(p, memberPath+".path", path)
	}
}

// check adds an error for each invalid member of the rule. memberPath is the rule's place in the vendor description, such as "rules[0]".
func (r Rule) check(p *problems, memberPath string) {
	if len(r.Status) == 0 && r.When == nil {
		p.add(memberPath, `must have "status" or "when"`)
	}
	for _, status := range r.Status {
		if status < 100 || status > 599 {
			p.add(memberPath+".status", "must be 100 to 599, not %d", status)
		}
	}
	if r.When != nil {
		r.When.check(p, memberPath+".when")
	}
	if r.And != nil {
		if r.When == nil {
			p.add(memberPath, `has the member "and", but the member "when" is missing`)
		}
		r.And.check(p, memberPath+".and")
	}
	class := source.Class(r.Class)
	if classes := slices.Concat([]source.Class{source.OK, split}, targetClasses, sourceClasses); !slices.Contains(classes, class) {
		p.add(memberPath+".class", "must be %s, not %q", words.JoinWithOr(classes), r.Class)
	}
}

// check adds an error for each invalid member of the call. memberPath is the call's place in the vendor description, such as "calls[0]".
func (c Call) check(p *problems, memberPath string) {
	if !slices.Contains(link.Platforms, c.Platform) {
		p.add(memberPath+".platform", "must be %s, not %q", words.JoinWithOr(link.Platforms), c.Platform)
	}
	if c.Batch.Size < 0 || c.Batch.Size > maxBatch {
		p.add(memberPath+".batch.size", "must be 1 to %d, not %d", maxBatch, c.Batch.Size)
	}
	checkItems(p, memberPath, c.Items, c.Unwrap)
	if c.Missing != "" && c.Missing != source.Gone && c.Missing != source.Temporary {
		p.add(memberPath+".missing", `must be "gone" or "temporary", not %q`, c.Missing)
	}
	for i, s := range c.States {
		at := fmt.Sprintf("%s.states[%d]", memberPath, i)
		s.Condition.check(p, at)
		if classes := append([]source.Class{source.Temporary, source.Missing}, targetClasses...); !slices.Contains(classes, s.Class) {
			p.add(at+".class", "must be %s, not %q", words.JoinWithOr(classes), s.Class)
		}
	}
	switch c.Kind {
	case queue.KindVideo:
		c.checkVideos(p, memberPath)
	case queue.KindAccount:
		c.checkAccount(p, memberPath)
	default:
		p.add(memberPath+".kind", "must be video or account, not %q", c.Kind)
	}
}

// checkVideos checks the members of a call that requests videos. It adds an error for a member that is only for accounts.
func (c Call) checkVideos(p *problems, memberPath string) {
	c.Request.check(p, memberPath, videoPlaceholders)
	c.checkBatch(p, memberPath)
	for name, paths := range map[string][]string{"match.id": c.Match.ID, "match.link": c.Match.Link, "match.sole": c.Match.Sole} {
		for i, path := range paths {
			checkPath(p, fmt.Sprintf("%s.%s[%d]", memberPath, name, i), path)
		}
	}
	if len(c.Match.ID)+len(c.Match.Link)+len(c.Match.Sole) == 0 {
		p.add(memberPath+".match", `must have "id", "link" or "sole"`)
	}
	if len(c.Match.Sole) > 0 && c.maxTargets() > 1 {
		p.add(memberPath+".match.sole", "is only possible if batch.size is 1, not %d", c.maxTargets())
	}
	for _, name := range c.HiddenWhenAbsent {
		if field, ok := c.Fields[name]; !ok || len(field) == 0 || facts[name] != countFact {
			p.add(memberPath+".hidden_when_absent", `contains %q, but the member "fields" has no count with this name`, name)
		}
	}
	if c.List != nil {
		p.add(memberPath+".list", "is for accounts only")
	}
	counts := 0
	for name, field := range c.Fields {
		field.check(p, memberPath+".fields."+name, name, facts)
		if facts[name] == countFact {
			counts++
		}
	}
	if counts == 0 {
		p.add(memberPath+".fields", "must have at least one count")
	}
}

// checkAccount checks a call that requests an account. It adds an error for each member that is
// only for videos, such as Match.
func (c Call) checkAccount(p *problems, memberPath string) {
	if c.maxTargets() > 1 {
		p.add(memberPath+".batch", "is for videos only: accounts are requested one at a time")
	}
	if len(c.Match.ID)+len(c.Match.Link)+len(c.Match.Sole) > 0 {
		p.add(memberPath+".match", "is for videos only: accounts are requested one at a time")
	}
	if c.Details {
		p.add(memberPath+".details", "is for videos only")
	}
	if len(c.HiddenWhenAbsent) > 0 {
		p.add(memberPath+".hidden_when_absent", "is for videos only")
	}
	if c.Rounds {
		p.add(memberPath+".rounds", "is for videos only")
	}
	for name, field := range c.Fields {
		field.check(p, memberPath+".fields."+name, name, accountFacts)
		if slices.ContainsFunc(field, func(a Alternative) bool { return a.RoundsFrom != 0 }) {
			p.add(memberPath+".fields."+name+".rounds_from", "is for videos only")
		}
	}
	if len(c.Fields["account_id"]) == 0 && len(c.Fields["username"]) == 0 {
		p.add(memberPath+".fields", `must have "account_id" or "username"`)
	}
	known := accountPlaceholders
	if c.List != nil && c.List.Path == "" {
		known = accountWithListPlaceholders
	}
	c.Request.check(p, memberPath, known)
	if c.List != nil {
		c.List.check(p, memberPath+".list")
	}
}

// check adds an error for each invalid member of the list. memberPath is the list's place in the vendor description, such as
// "calls[0].list".
func (l List) check(p *problems, memberPath string) {
	if l.Path != "" {
		l.Request.check(p, memberPath, listPlaceholders)
	} else if l.Method != "" || l.Query != nil || l.Body != nil || l.Next != nil || l.NextPage != nil || l.More != nil || l.MaxUnits != 0 {
		p.add(memberPath+".path", `must be set if "method", "query", "body", "next", "next_page", "more" or "max_units" is set`)
	}
	checkItems(p, memberPath, l.Items, l.Unwrap)
	if l.Page < 1 || l.Page > maxEntries {
		p.add(memberPath+".page", "must be 1 to %d, not %d", maxEntries, l.Page)
	}
	if l.MaxUnits < 0 || l.uses("{units}") != (l.MaxUnits > 0) {
		p.add(memberPath+".max_units", "must be at least 1 if {units} is used, and 0 otherwise, not %d", l.MaxUnits)
	}
	if l.Fresh < 0 || l.Fresh > maxEntries {
		p.add(memberPath+".fresh", "must be 0 to %d, not %d", maxEntries, l.Fresh)
	}
	for i, path := range l.Next {
		checkPath(p, fmt.Sprintf("%s.next[%d]", memberPath, i), path)
	}
	for i, path := range l.NextPage {
		checkPath(p, fmt.Sprintf("%s.next_page[%d]", memberPath, i), path)
	}
	if l.uses("{cursor}") != (len(l.Next) > 0) {
		p.add(memberPath+".next", "must have a path if {cursor} is used, and no path otherwise")
	}
	if l.uses("{page}") != (len(l.NextPage) > 0) || len(l.NextPage) > 0 && len(l.Next) == 0 {
		p.add(memberPath+".next_page", "must have a path if {page} is used, and no path otherwise; {page} also needs {cursor}")
	}
	if l.More != nil {
		l.More.check(p, memberPath+".more")
	}
	if l.Empty != nil {
		l.Empty.check(p, memberPath+".empty")
	}
	for name, field := range l.Fields {
		field.check(p, memberPath+".fields."+name, name, entryFacts)
	}
	if len(l.Fields["id"]) == 0 {
		p.add(memberPath+".fields", "must have id")
	}
}

// checkItems adds an error if there are no item paths, or if an item path or an unwrap path is not valid.
func checkItems(p *problems, memberPath string, itemPaths, unwrapPaths []string) {
	if len(itemPaths) == 0 {
		p.add(memberPath+".items", "must have at least one path")
	}
	for i, path := range itemPaths {
		if path != "." {
			checkPath(p, fmt.Sprintf("%s.items[%d]", memberPath, i), path)
		}
	}
	for i, path := range unwrapPaths {
		checkPath(p, fmt.Sprintf("%s.unwrap[%d]", memberPath, i), path)
	}
}

// checkBatch checks a call for several targets. The path must have no placeholder, because a path
// can have the value of only one target.
func (c Call) checkBatch(p *problems, memberPath string) {
	if c.maxTargets() == 1 {
		return
	}
	if placeholder.MatchString(c.Path) {
		p.add(memberPath+".path", "must not have a placeholder if batch.size is larger than 1")
	}
	for _, q := range c.Query {
		if c.Batch.Join == "" && placeholder.MatchString(q.Value) {
			p.add(memberPath+".batch.join", "is missing")
		}
	}
}

// placeholders lists the placeholders, such as {id}, that a request template may contain. A request must contain at least one of those that the
// method identifying returns.
type placeholders []string

// identifying returns the placeholders that identify the target, or the run, of a request.
func (known placeholders) identifying() placeholders {
	return slices.DeleteFunc(slices.Clone(known), func(f string) bool { return !slices.Contains([]string{"{id}", "{link}", "{handle}", "{run}"}, f) })
}

var (
	videoPlaceholders           = placeholders{"{id}", "{link}", "{handle}"}
	accountPlaceholders         = videoPlaceholders
	accountWithListPlaceholders = placeholders{"{id}", "{link}", "{handle}", "{count}"}
	listPlaceholders            = placeholders{"{id}", "{link}", "{handle}", "{cursor}", "{page}", "{units}", "{count}"}
	runPlaceholders             = placeholders{"{run}"}
)

// check adds an error for each invalid member of the request, and for each placeholder that the request must not contain.
func (r Request) check(p *problems, memberPath string, allowed placeholders) {
	if r.Method != "" && r.Method != http.MethodGet && r.Method != http.MethodPost {
		p.add(memberPath+".method", "must be GET or POST, not %q", r.Method)
	}
	if r.Body != nil && r.Method != http.MethodPost {
		p.add(memberPath+".body", "needs the method POST")
	}
	if !strings.HasPrefix(r.Path, "/") || strings.ContainsAny(r.Path, "?#") {
		p.add(memberPath+".path", "must begin with / and have no query, not %q", r.Path)
	}
	used := allowed.check(p, memberPath+".path", r.Path)
	for i, q := range r.Query {
		at := fmt.Sprintf("%s.query[%d]", memberPath, i)
		if q.Name == "" {
			p.add(at+".name", "is missing")
		}
		used = allowed.check(p, at+".value", q.Value) || used
	}
	if r.Body != nil {
		var body any
		if err := json.Unmarshal(r.Body, &body); err != nil {
			p.add(memberPath+".body", "must be JSON")
		}
		for _, text := range collectStrings(body) {
			used = allowed.check(p, memberPath+".body", text) || used
		}
	}
	if !used {
		p.add(memberPath, "must have %s in its path, query or body", words.JoinWithOr(allowed.identifying()))
	}
}

// check adds an error for each unknown placeholder in a text. It returns true if the text has a placeholder that identifies the subject of the request.
func (known placeholders) check(p *problems, memberPath, text string) (identifies bool) {
	for _, f := range placeholder.FindAllString(text, -1) {
		if !slices.Contains(known, f) {
			p.add(memberPath, "has the unknown placeholder %s; use %s", f, words.JoinWithOr(known))
		}
		identifies = identifies || slices.Contains(known.identifying(), f)
	}
	return identifies
}

// collectStrings returns all strings in a decoded JSON value, without the names of members.
func collectStrings(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, e := range v {
			out = append(out, collectStrings(e)...)
		}
	case map[string]any:
		for _, e := range v {
			out = append(out, collectStrings(e)...)
		}
	}
	return out
}
