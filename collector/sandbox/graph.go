package sandbox

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// graphVersions are the supported versions of Meta's Graph API.
var graphVersions = []string{"v22.0", "v23.0", "v24.0", "v25.0", "v26.0"}

// graphField is one field in the Graph API's parameter "fields", in the form "name.modifier(value).modifier(value){fields of the object}".
type graphField struct {
	name      string
	modifiers map[string]string
	fields    []graphField
}

// graphName matches the name of a field or modifier at the start of a text.
var graphName = regexp.MustCompile(`^[a-z][a-z0-9_]*`)

// parseGraphFields parses the parameter "fields". If its syntax is wrong, ok is false, and position is the index of the error in the text.
func parseGraphFields(text string) (fields []graphField, position int, ok bool) {
	rest := text
	fields, ok = parseGraphList(&rest)
	if ok && rest != "" {
		ok = false
	}
	return fields, len(text) - len(rest), ok
}

// parseGraphList parses fields that are separated by commas. It removes the parsed fields from the start of the unparsed text.
func parseGraphList(unparsed *string) (fields []graphField, ok bool) {
	for {
		f := graphField{modifiers: map[string]string{}}
		if f.name, ok = parseGraphName(unparsed); !ok {
			return nil, false
		}
		for strings.HasPrefix(*unparsed, ".") {
			*unparsed = (*unparsed)[1:]
			name, ok := parseGraphName(unparsed)
			if !ok || !strings.HasPrefix(*unparsed, "(") {
				return nil, false
			}
			value, after, closed := strings.Cut((*unparsed)[1:], ")")
			if !closed || strings.ContainsAny(value, "(){}") {
				return nil, false
			}
			f.modifiers[name], *unparsed = value, after
		}
		if strings.HasPrefix(*unparsed, "{") {
			*unparsed = (*unparsed)[1:]
			if f.fields, ok = parseGraphList(unparsed); !ok || !strings.HasPrefix(*unparsed, "}") {
				return nil, false
			}
			*unparsed = (*unparsed)[1:]
		}
		fields = append(fields, f)
		if !strings.HasPrefix(*unparsed, ",") {
			return fields, true
		}
		*unparsed = (*unparsed)[1:]
	}
}

// parseGraphName removes a name from the start of the unparsed text and returns the name. It returns false if the text does not start
// with a name.
func parseGraphName(rest *string) (string, bool) {
	word := graphName.FindString(*rest)
	*rest = (*rest)[len(word):]
	return word, word != ""
}

// absent marks a field that exists but has no value. The API leaves such a field out of the answer, and returns no error.
type absent struct{}

// graphNode is an object of the Graph API. An edge is a field whose value is a list or another object.
type graphNode struct {
	kind   string // the name of the object's type, for error messages
	fields object
	edges  map[string]func(graphField) (any, *reply) // for each edge, a function that returns its value
}

// selectFields returns the id and the requested fields of the node, or an error for an unknown field.
func (n graphNode) selectFields(fields []graphField) (object, *reply) {
	out := object{"id": n.fields["id"]}
	for _, f := range fields {
		if edge := n.edges[f.name]; edge != nil {
			value, bad := edge(f)
			if bad != nil {
				return nil, bad
			}
			if value != (absent{}) {
				out[f.name] = value
			}
			continue
		}
		value, known := n.fields[f.name]
		if !known || len(f.modifiers) > 0 || len(f.fields) > 0 {
			bad := graphError(http.StatusBadRequest, 100, 0, fmt.Sprintf("(#100) Tried accessing nonexisting field (%s) on node type (%s)", f.name, n.kind))
			return nil, &bad
		}
		if value != (absent{}) {
			out[f.name] = value
		}
	}
	return out, nil
}

// graphPage returns one page of a list. The page begins at the cursor. If isShown is not nil, the
// page contains only the ids for which isShown returns true.
func graphPage(ids []string, limit, cursor, listURL string, fields []graphField, isShown func(id string) bool, nodeOf func(id string) graphNode) (object, *reply) {
	size := 25
	if limit != "" {
		n, err := strconv.Atoi(limit)
		if err != nil || n < 0 {
			bad := graphError(http.StatusBadRequest, 100, 0, "(#100) Param limit must be a non-negative integer")
			return nil, &bad
		}
		size = min(n, 100)
	}
	start, ok := readGraphCursor(cursor)
	if !ok {
		bad := graphError(http.StatusBadRequest, 100, 0, "(#100) Invalid parameter: after is not a cursor of this list")
		return nil, &bad
	}
	part, nextStart := partOfList(ids, start, size)
	data := []any{}
	for _, id := range part {
		// The page can be short although more pages follow.
		if isShown != nil && !isShown(id) {
			continue
		}
		item, bad := nodeOf(id).selectFields(fields)
		if bad != nil {
			return nil, bad
		}
		data = append(data, item)
	}
	list := object{"data": data}
	if len(part) > 0 {
		cursors := object{"before": graphCursor(start)}
		paging := object{"cursors": cursors}
		// listURL has no cursor. It is "" for a list inside another object.
		if listURL != "" || nextStart != 0 { // the last page of a list inside another object has no cursor "after"
			cursors["after"] = graphCursor(start + len(part))
		}
		if listURL != "" && nextStart != 0 {
			paging["next"] = listURL + "&after=" + url.QueryEscape(graphCursor(nextStart))
		}
		list["paging"] = paging
	}
	return list, nil
}

const cursorPrefix = "sandbox-list:"

// graphCursor returns the cursor for the list entry with the given index.
func graphCursor(offset int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(cursorPrefix + strconv.Itoa(offset)))
}

// readGraphCursor returns the index in a cursor from graphCursor, or 0 for an empty cursor. It returns false if the cursor is not valid.
func readGraphCursor(cursor string) (int, bool) {
	if cursor == "" {
		return 0, true
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	offset, ok := strings.CutPrefix(string(raw), cursorPrefix)
	n, bad := strconv.Atoi(offset)
	return n, err == nil && ok && bad == nil && n >= 0
}

// graphRequest is a request to the Graph API that has passed the checks of serveGraph.
type graphRequest struct {
	path   []string // the elements of the request's path after the version of the API
	fields []graphField
	values url.Values
}

// serveGraph answers a request to the Graph API. The parameter `path` begins with the API version.
// replyFor returns the reply to a request that has passed all checks.
func (s *Sandbox) serveGraph(w http.ResponseWriter, r *http.Request, source string, isValidToken func(token string) bool, path string, replyFor func(*call, graphRequest) reply) {
	c := &call{r: r, now: s.clock(), source: source, method: path}
	s.serveCall(w, c, errorRepliesForGraph(source), func(c *call) reply {
		version, rest, _ := strings.Cut(path, "/")
		values, err := url.ParseQuery(c.r.URL.RawQuery)
		switch given := values.Get("access_token"); {
		case c.r.Method != http.MethodGet || err != nil:
			return markRefused(graphError(http.StatusBadRequest, 100, 0, "Unsupported request - method type: "+strings.ToLower(c.r.Method)))
		case given == "":
			return markRefused(graphError(http.StatusBadRequest, 104, 0, "An access token is required to request this resource."))
		case !isValidToken(given):
			return markRefused(graphError(http.StatusBadRequest, 190, 0, "Invalid OAuth access token - Cannot parse access token"))
		}
		if bad := s.meta.checkProof(values); bad != nil {
			return *bad
		}
		switch {
		case !slices.Contains(graphVersions, version):
			return graphError(http.StatusBadRequest, 2500, 0, "Unknown path components: /"+path)
		}
		q := graphRequest{path: strings.Split(strings.Trim(rest, "/"), "/"), values: values}
		c.method = strings.Join(append([]string{"ID"}, q.path[1:]...), "/")
		if text := values.Get("fields"); text != "" {
			fields, at, ok := parseGraphFields(text)
			if !ok {
				return graphError(http.StatusBadRequest, 2500, 0, fmt.Sprintf("Syntax error \"Expected end of string instead of %q.\" at character %d: %s", text[at:min(at+1, len(text))], at, text))
			}
			q.fields = fields
		}
		return replyFor(c, q).withHeader("X-App-Usage", `{"call_count":1,"total_cputime":1,"total_time":1}`).withHeader("facebook-api-version", version)
	})
}

// replyWithFields returns a reply with the requested fields of a node, or an error reply for an unknown field.
func (n graphNode) replyWithFields(fields []graphField) reply {
	body, bad := n.selectFields(fields)
	if bad != nil {
		return *bad
	}
	return reply{status: http.StatusOK, body: body}
}

// graphError returns a reply with an error in Meta's format.
func graphError(status, code, subcode int, message string) reply {
	kind := "OAuthException"
	e := object{"message": message, "code": code, "fbtrace_id": "AxbSandboxTrace0000000"}
	if subcode != 0 {
		e["error_subcode"] = subcode
	}
	if code == 100 && subcode == 33 {
		kind = "GraphMethodException"
	}
	e["type"] = kind
	return reply{status: status, body: object{"error": e}}
}

// graphNotFoundError returns Meta's error for an id that does not exist or that the token may not read.
func graphNotFoundError(id string) reply {
	return graphError(http.StatusBadRequest, 100, 33, fmt.Sprintf("Unsupported get request. Object with ID '%s' does not exist, cannot be loaded due to missing permissions, or does not support this operation", id))
}

// graphLimits describes Meta's rate limits for business accounts: the error code of each limit, and its name in Meta's headers. The keys
// are the sources.
var graphLimits = map[string]struct {
	code int
	kind string
}{sourceInstagram: {80002, "instagram"}, sourceFacebook: {80001, "pages"}}

// errorRepliesForGraph returns the replies that simulate a failure of the Graph API, such as a spent quota. The source is sourceInstagram
// or sourceFacebook.
func errorRepliesForGraph(source string) errorReplies {
	return errorReplies{
		rateLimited: func() reply {
			return graphError(http.StatusBadRequest, 4, 0, "(#4) Application request limit reached").
				withHeader("X-App-Usage", `{"call_count":100,"total_cputime":25,"total_time":25}`)
		},
		quotaSpent: func() reply {
			limit := graphLimits[source]
			usage, _ := json.Marshal(object{"17841400000000001": []object{{ // Marshal cannot fail: the value has only types that JSON can encode
				"type": limit.kind, "call_count": 100, "total_cputime": 20, "total_time": 20, "estimated_time_to_regain_access": 5,
			}}})
			return graphError(http.StatusBadRequest, limit.code, 2446079, fmt.Sprintf("(#%d) There have been too many calls to this account. Wait a bit and try again.", limit.code)).
				withHeader("X-Business-Use-Case-Usage", string(usage))
		},
		serverError: func() reply {
			rep := graphError(http.StatusInternalServerError, 2, 0, "An unexpected error has occurred. Please retry your request later.")
			rep.body.(object)["error"].(object)["is_transient"] = true
			return rep
		},
		hostile: hostileJSON,
	}
}
