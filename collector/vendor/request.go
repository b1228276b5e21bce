package vendor

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// failuresUntilDetails is the number of failed attempts after which a target is requested with details. Calls for several targets can leave out a target
// without a reason. The call for one target says why.
const failuresUntilDetails = 2

// maxTargets returns the largest number of targets in one call. It is at least 1.
func (c Call) maxTargets() int { return max(c.Batch.Size, 1) }

// canRequest returns true if the call can request the target. For a target without an id, canRequest
// checks only the platform and the kind.
func (c Call) canRequest(t queue.Target) bool {
	if c.Platform != t.Platform || c.Kind != t.Kind {
		return false
	}
	if t.ExternalID == "" {
		return true
	}
	if c.Details && !t.NeedDetails && t.Attempts < failuresUntilDetails {
		return false
	}
	known := placeholderValues(t)
	if c.Kind == queue.KindAccount {
		return known.hasAllValuesFor(c.Request)
	}
	if fetch.ParseID(t.ExternalID) == "" || c.Batch.Join != "" && strings.Contains(t.ExternalID, c.Batch.Join) {
		return false
	}
	return !slices.ContainsFunc(c.templateTexts(), func(template string) bool {
		return strings.Contains(template, "{link}") && t.Link == "" || template == "{handle}" && t.Handle == ""
	})
}

// values has the text for each placeholder, such as {id}, in the request for one target or about one run.
type values struct {
	id, link, handle, cursor, page, run string
	units, count                        int
}

// placeholderValues returns the placeholder values for a target. If an account's handle is missing and its ExternalID is "@" followed by a handle,
// this handle is used.
func placeholderValues(t queue.Target) values {
	v := values{id: t.ExternalID, link: t.Link, handle: t.Handle}
	if t.Kind == queue.KindAccount {
		v.id = fetch.ParseID(t.AccountID)
		if name, ok := strings.CutPrefix(t.ExternalID, "@"); ok && v.handle == "" {
			v.handle = name
		}
	}
	if _, ok := link.YouTubeUser(t.Platform, v.handle); ok {
		v.handle = "" // a user name is not a handle
	}
	return v
}

// hasAllValuesFor returns true if there is a value for each placeholder {id}, {link} and {handle} in the request.
func (v values) hasAllValuesFor(r Request) bool {
	return !slices.ContainsFunc(r.templateTexts(), func(template string) bool {
		return strings.Contains(template, "{id}") && v.id == "" || strings.Contains(template, "{link}") && v.link == "" ||
			strings.Contains(template, "{handle}") && v.handle == ""
	})
}

// replacePlaceholders replaces the placeholders in a template by their values. A missing handle becomes "", because TikTok's links work without a
// handle.
func (v values) replacePlaceholders(template string) string {
	return strings.NewReplacer("{id}", v.id, "{link}", v.link, "{handle}", v.handle, "{cursor}", v.cursor, "{page}", v.page, "{run}", v.run,
		"{units}", strconv.Itoa(v.units), "{count}", strconv.Itoa(v.count)).Replace(template)
}

// templateTexts returns all texts of a request that may contain placeholders: the path, the query values and the strings in the body.
func (r Request) templateTexts() []string {
	out := []string{r.Path}
	for _, q := range r.Query {
		out = append(out, q.Value)
	}
	if r.Body != nil {
		var body any
		_ = json.Unmarshal(r.Body, &body) // this cannot fail, because Request.check has validated the body
		out = append(out, collectStrings(body)...)
	}
	return out
}

// uses returns true if the request contains a placeholder, such as {id}.
func (r Request) uses(name string) bool {
	return slices.ContainsFunc(r.templateTexts(), func(template string) bool { return strings.Contains(template, name) })
}

// batchValues has the values that replace placeholders, such as {id}, in one request, for all of its targets.
type batchValues struct {
	targets []values
	join    string // separator between the values of several targets
}

// replacePlaceholders expands the template once for each target and joins the results. It returns a template without placeholders unchanged.
func (b batchValues) replacePlaceholders(template string) string {
	if !placeholder.MatchString(template) {
		return template
	}
	expanded := make([]string, len(b.targets))
	for i, v := range b.targets {
		expanded[i] = v.replacePlaceholders(template)
	}
	return strings.Join(expanded, b.join)
}

// buildRequest returns the HTTP request that a template describes, with the placeholder values of the targets and the credential of the vendor.
func (s *Source) buildRequest(r Request, b batchValues) fetch.Request {
	out := fetch.Request{Method: r.Method, Header: http.Header{}, Timeout: time.Duration(s.config.Timeout), Secrets: []string{s.key}}
	var query []string
	for _, q := range r.Query {
		// The request for the first page has no cursor, so it does not have these parameters.
		if first := b.targets[0]; strings.Contains(q.Value, "{cursor}") && first.cursor == "" || strings.Contains(q.Value, "{page}") && first.page == "" {
			continue
		}
		query = append(query, url.QueryEscape(q.Name)+"="+url.QueryEscape(b.replacePlaceholders(q.Value)))
	}
	switch auth := s.config.Auth; auth.In {
	case "query":
		query = append(query, url.QueryEscape(auth.Name)+"="+url.QueryEscape(s.key))
	case "bearer":
		out.Header.Set("Authorization", "Bearer "+s.key)
	default:
		out.Header.Set(auth.Name, s.key)
	}
	path := r.Path
	if placeholder.MatchString(path) {
		v := b.targets[0]
		v.id, v.link, v.handle = url.PathEscape(v.id), url.PathEscape(v.link), url.PathEscape(v.handle)
		v.cursor, v.page, v.run = url.PathEscape(v.cursor), url.PathEscape(v.page), url.PathEscape(v.run)
		path = v.replacePlaceholders(path)
	}
	out.URL = strings.TrimSuffix(s.Address(), "/") + path
	if len(query) > 0 {
		out.URL += "?" + strings.Join(query, "&")
	}
	if r.Body != nil {
		out.Body = r.buildBody(b)
	}
	return out
}

// buildBody returns the JSON body of the request, with the placeholder values of the targets.
func (r Request) buildBody(b batchValues) []byte {
	decoder := json.NewDecoder(bytes.NewReader(r.Body))
	decoder.UseNumber()
	var template any
	_ = decoder.Decode(&template) // this cannot fail, because Request.check has validated the body
	out, _ := json.Marshal(b.fillTemplate(template))
	return out
}

// fillTemplate returns a copy of a decoded JSON template in which all placeholders are replaced by the values of the targets.
func (b batchValues) fillTemplate(template any) any {
	switch v := template.(type) {
	case string:
		// A string that consists of one of these placeholders becomes a JSON number.
		if v == "{count}" || v == "{units}" {
			return json.Number(b.targets[0].replacePlaceholders(v))
		}
		return b.replacePlaceholders(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = b.fillTemplate(member)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, element := range v {
			if text, ok := element.(string); ok && placeholder.MatchString(text) {
				for _, values := range b.targets {
					out = append(out, values.replacePlaceholders(text))
				}
				continue
			}
			out = append(out, b.fillTemplate(element))
		}
		return out
	default:
		return v
	}
}
