package link

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxBytes is the length of the longest link that is parsed. Browsers and proxies cut longer links anyway.
const maxBytes = 2048

// maxParts bounds the number of parts of a path. All parts are kept in memory while a link is parsed.
const maxParts = 32

// maxTrim is how many trailing characters of the surrounding text are removed at most.
const maxTrim = 8

// closers are characters that often follow a link in a text. Some of them, such as "_", can also end an id. So they are removed only if
// the link is refused with them.
const closers = `.,;:!?)]}>"'*_~|` + "`" + "…。，、；：！？）】」』》”’»"

// openers are characters that often precede a link in a text.
const openers = `<("'[{*` + "`" + "（【「『《“‘«"

// Parse returns the meaning of a link. The error is always an [*Error] whose detail is written for the caller.
//
// A link may have no scheme, any host of the platform, any query and fragment, percent-encoding (decoded once) or "&amp;", and punctuation
// from the text around it. None of these change the result, and all links to the same video have the same Platform and ID. If a link wraps
// another one, as redirectors, consent pages, login pages and oEmbed do, Parse returns the inner link. A wrapper inside a wrapper is
// refused.
//
// A host with a final dot is refused. No platform uses such hosts, and other code compares hosts byte by byte.
func Parse(raw string) (Link, error) {
	l, err := parse(raw)
	if err != nil {
		return Link{}, err
	}
	return l, nil
}

func parse(raw string) (Link, *Error) {
	if len(raw) > maxBytes {
		return Link{}, refuse(InvalidURL, "The link has %d bytes; at most %d are accepted.", len(raw), maxBytes)
	}
	s := strings.TrimFunc(raw, isBlank)
	s = strings.TrimLeft(s, openers)
	if hasPrefixFold(s, "http%3a") || hasPrefixFold(s, "https%3a") {
		if decoded, err := url.PathUnescape(s); err == nil {
			s = decoded
		}
	}
	l, first := parseOne(s, 0)
	for err, i := first, 0; err != nil; i++ {
		// Trimming can only help if the host belongs to a platform.
		_, size := utf8.DecodeLastRuneInString(s)
		if first.Reason != UnsupportedLink || i == maxTrim || size == 0 || !strings.Contains(closers, s[len(s)-size:]) {
			return Link{}, first
		}
		s = s[:len(s)-size]
		l, err = parseOne(s, 0)
	}
	return l, nil
}

// parseOne parses a link without surrounding text. depth is 1 for the link inside a wrapper.
func parseOne(s string, depth int) (Link, *Error) {
	a, err := split(s)
	if err != nil {
		return Link{}, err
	}
	a.depth = depth
	switch a.platform {
	case TikTok:
		return a.tiktok()
	case Instagram:
		return a.instagram()
	case YouTube:
		return a.youtube()
	default:
		return a.facebook()
	}
}

// address is a link of one of the platforms, split into its parts.
type address struct {
	platform Platform
	host     string // lower case, without port
	base     string // the platform's registered name that host ends in
	sub      string // the labels before base: "" or "www" or "www.m"
	parts    []string
	query    string // still encoded
	fragment string // still encoded
	depth    int
}

// split splits a link into its parts. It refuses a link that is not a web address of a platform.
func split(s string) (*address, *Error) {
	if s == "" {
		return nil, refuse(InvalidURL, "The link is empty; paste the address of a video or an account.")
	}
	if !utf8.ValidString(s) {
		return nil, refuse(InvalidURL, "The link is not valid UTF-8.")
	}
	if strings.ContainsFunc(s, isForbidden) {
		return nil, refuse(InvalidURL, "The link contains a blank or a control character; send one link and nothing else.")
	}
	rest, err := cutScheme(s)
	if err != nil {
		return nil, err
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	a := &address{}
	if err := a.setHost(authority); err != nil {
		return nil, err
	}
	rest, a.fragment, _ = strings.Cut(rest, "#")
	return a, a.setPath(rest)
}

// appSchemes are the schemes that open a platform's application. Such a link is not a web address.
var appSchemes = [...]string{
	"instagram", "fb", "tiktok", "snssdk1233", "snssdk1180", "musically", "youtube", "vnd.youtube", "intent",
}

// cutScheme returns the part after "https://", "http://" or "//", or the whole link if it has no scheme.
func cutScheme(s string) (string, *Error) {
	i := strings.IndexAny(s, ":/?#")
	if i < 0 || s[i] != ':' {
		return strings.TrimLeft(s, "/"), nil
	}
	scheme, rest := s[:i], s[i+1:]
	if strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http") {
		// Proxies that remove double slashes leave "https:/host". Browsers accept that too.
		if strings.HasPrefix(rest, "/") {
			return strings.TrimLeft(rest, "/"), nil
		}
	} else if rest != "" && isDigit(rest[0]) {
		return s, nil // host:port without a scheme
	}
	for _, app := range appSchemes {
		if strings.EqualFold(scheme, app) {
			return "", refuse(UnsupportedLink, "%s: links open an application; send the https:// link of the video or account.", app)
		}
	}
	return "", refuse(InvalidURL, "The scheme %s is not accepted; a link starts with https:// or http://.", quote(scheme))
}

func (a *address) setHost(authority string) *Error {
	host, userinfo := authority, false
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		host, userinfo = authority[i+1:], true
	}
	port, hasPort := "", false
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		host, port, hasPort = host[:i], host[i+1:], true
	}
	a.host = strings.ToLower(host)
	var ok bool
	if a.platform, a.base, ok = lookUpHost(a.host); !ok {
		if strings.ContainsAny(host, `\%`) || !strings.ContainsAny(host, ".[") {
			return refuse(InvalidURL, "%s is not a host name; a link looks like https://www.tiktok.com/@handle/video/ID.", quote(host))
		}
		return refuse(UnsupportedPlatform, "The host %s belongs to none of the supported platforms: %s.", quote(host), platformNames)
	}
	a.sub = strings.TrimSuffix(strings.TrimSuffix(a.host, a.base), ".")
	if userinfo {
		return refuse(InvalidURL, "The link has a user name before the host %s; send it without.", a.host)
	}
	if hasPort && port != "443" && port != "80" {
		return refuse(InvalidURL, "The port %s is not accepted; only 443 and 80 are.", quote(port))
	}
	return nil
}

// setPath decodes the path once and splits it into its non-empty parts. rest is path and query.
func (a *address) setPath(rest string) *Error {
	path, query, _ := strings.Cut(rest, "?")
	if strings.IndexByte(path, '%') >= 0 {
		if decoded, err := url.PathUnescape(path); err == nil {
			path = decoded
		}
		// If the whole link was encoded, its "?" is in the path.
		if before, after, ok := strings.Cut(path, "?"); ok {
			path, query = before, after+"&"+query
		}
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return refuse(InvalidURL, "The path of the link contains an encoded control character.")
	}
	// Some programs forget the "?": "watch&v=ID", "/v/ID&hl=en".
	if before, after, ok := strings.Cut(path, "&"); ok {
		path, query = before, after+"&"+query
	}
	a.query = query
	a.parts = make([]string, 0, 6)
	for part := range strings.SplitSeq(path, "/") {
		switch part = strings.TrimSpace(part); part {
		case "", ".": // browsers ignore both; "." also ends a sentence after a final slash
		case "..":
			return refuse(InvalidURL, `The path of the link contains %q; send the link as the platform shows it.`, part)
		default:
			if len(a.parts) == maxParts {
				return refuse(UnsupportedLink, "The path of the link has more than %d parts; no link of a video or an account has so many.", maxParts)
			}
			a.parts = append(a.parts, part)
		}
	}
	return nil
}

// part returns the i-th part of the path, or "" if there is none.
func (a *address) part(i int) string {
	if i < len(a.parts) {
		return a.parts[i]
	}
	return ""
}

// word returns the i-th part of the path in lower case, for comparison with fixed words of the platform.
func (a *address) word(i int) string { return strings.ToLower(a.part(i)) }

// get returns the first value of a query parameter, decoded once, or "" if there is none.
func (a *address) get(name string) string {
	for pair := range pairs(a.query) {
		if key, value, _ := strings.Cut(pair, "="); strings.EqualFold(key, name) {
			return unescapeQuery(value)
		}
	}
	return ""
}

// pairs iterates over the pairs of a query. Links that were copied from HTML have "&amp;", sometimes escaped twice. Links of old programs
// have ";" between the pairs.
func pairs(query string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for query != "" {
			pair := query
			if i := strings.IndexAny(query, "&;"); i >= 0 {
				pair, query = query[:i], query[i+1:]
			} else {
				query = ""
			}
			if pair != "" && pair != "amp" && !yield(pair) {
				return
			}
		}
	}
}

// inFragment returns the address in a fragment "#!/path" or "#/path" of an old web application, or nil.
func (a *address) inFragment() *address {
	rest := strings.TrimPrefix(a.fragment, "!")
	if !strings.HasPrefix(rest, "/") {
		return nil
	}
	b := *a
	b.fragment = ""
	if b.setPath(rest) != nil {
		return nil
	}
	return &b
}

// unwrap parses the link inside a wrapper. inner may be relative to the wrapper's platform.
func (a *address) unwrap(inner string) (Link, *Error) {
	switch {
	case inner == "":
		return Link{}, a.refusePath()
	case a.depth > 0:
		return Link{}, refuse(UnsupportedLink, "The link wraps a link that wraps another one; send the innermost link.")
	case inner[0] == '/' && !strings.HasPrefix(inner, "//"):
		inner = "www." + a.base + inner
	}
	return parseOne(inner, a.depth+1)
}

// accountHost reports whether the first path part of this host can be an account. Service hosts such as help. and developers. have
// articles there.
func (a *address) accountHost() bool {
	switch a.sub {
	case "", "www", "m", "mobile", "www.m", "web", "mbasic", "touch", "free", "lite", "d", "x", "p":
		return true
	}
	return isLocale(a.sub)
}

// refusePath refuses a page of a platform that is neither a video nor an account.
func (a *address) refusePath() *Error {
	if len(a.parts) == 0 {
		return refuse(UnsupportedLink, "The link leads to the front page of %s; accepted are %s.", a.host, accepted(a.platform))
	}
	return refuse(UnsupportedLink, "%s on %s is neither a video nor an account; accepted are %s.",
		quote("/"+strings.Join(a.parts, "/")), a.host, accepted(a.platform))
}

// refuseID refuses a video link whose id has the wrong shape.
func (a *address) refuseID(id, shape string) *Error {
	if id == "" {
		return refuse(UnsupportedLink, "The link to %s names no video id; %s.", a.host, shape)
	}
	return refuse(UnsupportedLink, "%s is not a video id of %s; %s.", quote(id), a.base, shape)
}

// refuseHandle refuses an account link whose handle has the wrong shape.
func (a *address) refuseHandle(handle, shape string) *Error {
	return refuse(UnsupportedLink, "%s is not an account name of %s; %s.", quote(handle), a.base, shape)
}

const platformNames = "TikTok, Instagram, YouTube, Facebook"

// accepted returns the usual forms of a platform's links, for error messages.
func accepted(p Platform) string {
	switch p {
	case TikTok:
		return "tiktok.com/@handle/video/ID, tiktok.com/@handle and vm.tiktok.com/CODE"
	case Instagram:
		return "instagram.com/reel/CODE, instagram.com/p/CODE, instagram.com/username and instagram.com/share/CODE"
	case YouTube:
		return "youtube.com/shorts/ID, youtube.com/watch?v=ID, youtu.be/ID, youtube.com/@handle and youtube.com/channel/ID"
	default:
		return "facebook.com/reel/ID, facebook.com/watch/?v=ID, facebook.com/name/videos/ID, facebook.com/name and fb.watch/CODE"
	}
}

func refuse(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// quote quotes and escapes a part of a link for an error message. It cuts the part after 60 characters.
func quote(s string) string {
	left := 60
	for i := range s {
		if left == 0 {
			s = s[:i] + "…"
			break
		}
		left--
	}
	return strconv.Quote(s)
}
