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
	"github.com/reeltally/reeltally/collector/source"
)

func (c Call) size() int { return max(c.Batch.Size, 1) }

// takes is whether the call can ask for a target: everything that its templates name is known. A target without an id
// stands for all of its kind.
func (c Call) takes(t source.Target) bool {
	if c.Platform != t.Platform || c.Kind != t.Kind {
		return false
	}
	if t.ExternalID == "" {
		return true
	}
	if c.Details && !t.NeedDetails {
		return false
	}
	known := valuesOf(t)
	if c.Kind == source.KindAccount {
		return known.fill(c.Request)
	}
	if fetch.ParseID(t.ExternalID) == "" || c.Batch.Join != "" && strings.Contains(t.ExternalID, c.Batch.Join) {
		return false
	}
	return !slices.ContainsFunc(c.templates(), func(template string) bool {
		return strings.Contains(template, "{link}") && t.Link == "" || template == "{handle}" && t.Handle == ""
	})
}

// values are what the placeholders of one target stand for.
type values struct {
	id, link, handle, cursor string
	units, count             int
}

// valuesOf are those of a target. The name of an account whose handle nobody noted is its id in the queue.
func valuesOf(t source.Target) values {
	v := values{id: t.ExternalID, link: t.Link, handle: t.Handle}
	if t.Kind == source.KindAccount {
		v.id = fetch.ParseID(t.AccountID)
		if name, ok := strings.CutPrefix(t.ExternalID, "@"); ok && v.handle == "" {
			v.handle = name
		}
	}
	return v
}

// fill is whether everything that a request names of an account is known.
func (v values) fill(r Request) bool {
	return !slices.ContainsFunc(r.templates(), func(template string) bool {
		return strings.Contains(template, "{id}") && v.id == "" || strings.Contains(template, "{link}") && v.link == "" ||
			strings.Contains(template, "{handle}") && v.handle == ""
	})
}

// expand fills in a template. A handle that is not known is left out of a longer text: TikTok's links do without.
func (v values) expand(template string) string {
	return strings.NewReplacer("{id}", v.id, "{link}", v.link, "{handle}", v.handle, "{cursor}", v.cursor,
		"{units}", strconv.Itoa(v.units), "{count}", strconv.Itoa(v.count)).Replace(template)
}

// templates are all texts of a request that may hold placeholders.
func (r Request) templates() []string {
	out := []string{r.Path}
	for _, q := range r.Query {
		out = append(out, q.Value)
	}
	if r.Body != nil {
		var body any
		_ = json.Unmarshal(r.Body, &body) // was checked
		out = append(out, texts(body)...)
	}
	return out
}

// filling is a request's values, of one target or of several that are joined.
type filling struct {
	of   []values
	join string
}

func (f filling) expand(template string) string {
	if !placeholder.MatchString(template) {
		return template
	}
	expanded := make([]string, len(f.of))
	for i, v := range f.of {
		expanded[i] = v.expand(template)
	}
	return strings.Join(expanded, f.join)
}

// build fills in the request.
func (r Request) build(base string, auth Auth, key string, timeout time.Duration, f filling) fetch.Request {
	out := fetch.Request{Method: r.Method, Header: http.Header{}, Timeout: timeout, Secrets: []string{key}}
	var query []string
	for _, q := range r.Query {
		if strings.Contains(q.Value, "{cursor}") && f.of[0].cursor == "" {
			continue
		}
		query = append(query, url.QueryEscape(q.Name)+"="+url.QueryEscape(f.expand(q.Value)))
	}
	switch auth.In {
	case "query":
		query = append(query, url.QueryEscape(auth.Name)+"="+url.QueryEscape(key))
	case "bearer":
		out.Header.Set("Authorization", "Bearer "+key)
	default:
		out.Header.Set(auth.Name, key)
	}
	path := r.Path
	if placeholder.MatchString(path) {
		v := f.of[0]
		v.id, v.link, v.handle, v.cursor = url.PathEscape(v.id), url.PathEscape(v.link), url.PathEscape(v.handle), url.PathEscape(v.cursor)
		path = v.expand(path)
	}
	out.URL = strings.TrimSuffix(base, "/") + path
	if len(query) > 0 {
		out.URL += "?" + strings.Join(query, "&")
	}
	if r.Body != nil {
		out.Body = r.body(f)
	}
	return out
}

func (r Request) body(f filling) []byte {
	decoder := json.NewDecoder(bytes.NewReader(r.Body))
	decoder.UseNumber()
	var template any
	_ = decoder.Decode(&template) // was checked
	out, _ := json.Marshal(f.fill(template))
	return out
}

func (f filling) fill(template any) any {
	switch v := template.(type) {
	case string:
		if v == "{count}" || v == "{units}" {
			return json.Number(f.of[0].expand(v))
		}
		return f.expand(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[name] = f.fill(member)
		}
		return out
	case []any:
		out := make([]any, 0, len(v))
		for _, element := range v {
			if text, ok := element.(string); ok && placeholder.MatchString(text) {
				for _, values := range f.of {
					out = append(out, values.expand(text))
				}
				continue
			}
			out = append(out, f.fill(element))
		}
		return out
	default:
		return v
	}
}
