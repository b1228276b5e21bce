package link

import (
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxBytes is the maximum length of a link in bytes. Links of videos and accounts are much shorter, and many programs do not accept longer
// links.
const maxBytes = 2048

// maxParts is the largest number of parts between slashes in the path of a link. It limits the memory for parsing a link.
const maxParts = 32

// maxTrim is the largest number of characters that Parse removes from the end of a link because they can belong to the surrounding text.
const maxTrim = 8

// closers are characters that often follow a link in a text. Some can also end an id, so Parse
// first tries the link with them.
const closers = `.,;:!?)]}>"'*_~|` + "`" + "…。，、；：！？）】」』》”’»"

// openers are characters that often precede a link in a text. Parse always removes them.
const openers = `<("'[{*` + "`" + "（【「『《“‘«"

// Parse parses a link of a video or account. Every error is an [*Error]. All links to the same
// video, except short links, give the same ID. For the
// redirectors, login pages and embedded players that this package knows, Parse returns the link in their query.
func Parse(raw string) (Link, error) {
	l, err := parseLink(raw)
	if err != nil {
		return Link{}, err
	}
	return l, nil
}

// parseLink does the same as Parse, but its error has the type *Error instead of error.
func parseLink(raw string) (Link, *Error) {
	if len(raw) > maxBytes {
		return Link{}, newError(InvalidURL, "The link has %d bytes; at most %d are accepted.", len(raw), maxBytes)
	}
	s := strings.TrimFunc(raw, isBlank)
	s = strings.TrimLeft(s, openers)
	if hasPrefixFold(s, "http%3a") || hasPrefixFold(s, "https%3a") {
		if decoded, err := url.PathUnescape(s); err == nil {
			s = decoded
		}
	}
	l, first := parseBareLink(s, 0)
	if (first == nil || first.Reason == UnsupportedLink) && containsSecondLink(s) {
		return Link{}, newError(InvalidURL, "The text contains two links; send each link on its own.")
	}
	if before, ok := strings.CutSuffix(s, "_"); ok && l.Platform == Instagram && len(l.ID) == longCodeLength {
		// A code of this length is rare, and almost all codes are one character shorter. So the "_" at the end
		// probably belongs to the text around the link.
		s = before
		l, first = parseBareLink(s, 0)
	}
	for err, i := first, 0; err != nil; i++ {
		// The last character can be punctuation after the link. Remove it if it is in closers, and
		// try again.
		_, size := utf8.DecodeLastRuneInString(s)
		if first.Reason != UnsupportedLink || i == maxTrim || size == 0 || !strings.Contains(closers, s[len(s)-size:]) {
			return Link{}, first
		}
		s = s[:len(s)-size]
		l, err = parseBareLink(s, 0)
	}
	return l, nil
}

// isQueryValue returns true if the text before a link ends with the name of a query parameter and "=", so that the link is the value of the
// parameter.
func isQueryValue(before string) bool {
	name, ok := strings.CutSuffix(before, "=")
	return ok && !strings.Contains(name[strings.LastIndexAny(name, "?&#")+1:], "=")
}

// containsSecondLink returns true if a second link of a supported platform follows the first link in s. A link that is the value of a query
// parameter does not count.
func containsSecondLink(s string) bool {
	for i := 0; ; {
		n := strings.Index(s[i:], "://")
		if n < 0 {
			return false
		}
		i += n + len("://")
		for _, scheme := range [...]string{"https://", "http://"} {
			start := i - len(scheme)
			// A scheme at the beginning, or directly after another one there, belongs to the first link.
			if start <= 0 || start == schemeLength(s) || isQueryValue(s[:start]) || !strings.EqualFold(s[start:i], scheme) {
				continue
			}
			host := s[i:]
			if end := strings.IndexAny(host, "/?#"); end >= 0 {
				host = host[:end]
			}
			if _, _, ok := lookUpHost(strings.ToLower(host)); ok {
				return true
			}
		}
	}
}

// parseBareLink parses a link without surrounding text. The depth is 0 for the link that the caller passed, and 1 for a link that was found inside another
// link.
func parseBareLink(s string, depth int) (Link, *Error) {
	a, err := splitLink(s)
	if err != nil {
		return Link{}, err
	}
	a.depth = depth
	switch a.platform {
	case TikTok:
		return a.parseTikTok()
	case Instagram:
		return a.parseInstagram()
	case YouTube:
		return a.parseYouTube()
	default:
		return a.parseFacebook()
	}
}

// address is a link of one of the platforms, split into its parts.
type address struct {
	platform Platform
	host     string   // the host in lower case, without port
	base     string   // the platform's registered domain name at the end of host
	sub      string   // the part of host before base, without the last dot, such as "", "www" or "www.m"
	parts    []string // the parts of the path between slashes, decoded and without empty parts
	query    string   // the query without "?", still percent-encoded
	fragment string   // the fragment without "#", still percent-encoded
	lastPart string   // the last non-empty part of the path between slashes, still percent-encoded
	depth    int      // 0 for the link that the caller passed, 1 for a link that was found inside another link
}

// splitLink splits a link into its parts. It refuses a link that is not a web address of a platform.
func splitLink(s string) (*address, *Error) {
	if s == "" {
		return nil, newError(InvalidURL, "The link is empty; paste the address of a video or an account.")
	}
	if !utf8.ValidString(s) {
		return nil, newError(InvalidURL, "The link is not valid UTF-8.")
	}
	if strings.ContainsFunc(s, isForbidden) {
		return nil, newError(InvalidURL, "The link contains a blank or a control character; send one link and nothing else.")
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
		if bareHandle.MatchString(s) && a.platform == "" {
			return nil, newError(InvalidURL, "%s is a handle and not a link such as https://www.tiktok.com/@handle.", quote(s))
		}
		return nil, err
	}
	rest, a.fragment, _ = strings.Cut(rest, "#")
	return a, a.setPath(rest)
}

// bareHandle matches a handle that is sent in place of a link, such as "@northwind.studio".
var bareHandle = regexp.MustCompile(`^@[\p{L}\p{N}._-]+$`)

// appSchemes are the URL schemes that open a platform's application. A link with such a scheme is not a web address.
var appSchemes = [...]string{
	"instagram", "fb", "tiktok", "snssdk1233", "snssdk1180", "musically", "youtube", "vnd.youtube", "intent",
}

// schemeLength returns the length of "https://" or "http://" at the beginning of s, or 0.
func schemeLength(s string) int {
	for _, scheme := range [...]string{"https://", "http://"} {
		if len(s) >= len(scheme) && strings.EqualFold(s[:len(scheme)], scheme) {
			return len(scheme)
		}
	}
	return 0
}

// cutScheme returns the part of a link after "https://", "http://" or "//". It returns a link without scheme unchanged, and refuses links
// with a scheme such as "ftp:".
func cutScheme(s string) (string, *Error) {
	i := strings.IndexAny(s, ":/?#")
	if i < 0 || s[i] != ':' {
		return strings.TrimLeft(s, "/"), nil
	}
	scheme, rest := s[:i], s[i+1:]
	if strings.EqualFold(scheme, "https") || strings.EqualFold(scheme, "http") {
		// Accept "https:/host", as browsers do. Some proxies remove double slashes.
		if cut := strings.TrimLeft(rest, "/"); cut != rest {
			if schemeLength(cut) > 0 { // a form added a second scheme to the link
				return cutScheme(cut)
			}
			return cut, nil
		}
		return "", newError(InvalidURL, "The link has no slashes after %s:; a link starts with https:// or http://.", strings.ToLower(scheme))
	} else if rest != "" && isDigit(rest[0]) {
		return s, nil // s is a host and a port without a scheme
	}
	for _, app := range appSchemes {
		if strings.EqualFold(scheme, app) {
			return "", newError(UnsupportedLink, "%s: links open an application; send the https:// link of the video or account.", app)
		}
	}
	return "", newError(InvalidURL, "The scheme %s is not accepted; a link starts with https:// or http://.", quote(scheme))
}

// setHost sets a.platform, a.host, a.base and a.sub. The parameter authority is the part of the link between
// the scheme and the path.
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
			return newError(InvalidURL, "%s is not the host name of a website; a link looks like https://www.tiktok.com/@handle/video/ID.", quote(host))
		}
		return newError(UnsupportedPlatform, "The host %s belongs to none of the supported platforms: %s.", quote(host), platformNames)
	}
	a.sub = strings.TrimSuffix(strings.TrimSuffix(a.host, a.base), ".")
	if userinfo {
		return newError(InvalidURL, "The link has a user name before the host %s; send the link without the user name.", a.host)
	}
	if hasPort && port != "443" && port != "80" {
		return newError(InvalidURL, "The port %s is not accepted; only the ports 443 and 80 are accepted.", quote(port))
	}
	return nil
}

// setPath sets a.parts, a.lastPart and a.query from the path and the query of a link. It decodes the path once and leaves out empty parts.
func (a *address) setPath(pathAndQuery string) *Error {
	path, query, _ := strings.Cut(pathAndQuery, "?")
	trimmed := strings.TrimRight(path, "/")
	a.lastPart = trimmed[strings.LastIndexByte(trimmed, '/')+1:]
	if strings.IndexByte(path, '%') >= 0 {
		if decoded, err := url.PathUnescape(path); err == nil {
			path = decoded
		}
		// If the "?" before the query was percent-encoded, the decoded path contains the query.
		if before, after, ok := strings.Cut(path, "?"); ok {
			path, query = before, after+"&"+query
		}
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return newError(InvalidURL, "The path of the link contains an encoded control character.")
	}
	// In links of some programs the "?" before the query is missing, as in "watch&v=ID" and "/v/ID&hl=en".
	if before, after, ok := strings.Cut(path, "&"); ok {
		path, query = before, after+"&"+query
	}
	a.query = query
	a.parts = make([]string, 0, 6)
	for part := range strings.SplitSeq(path, "/") {
		switch part = strings.TrimSpace(part); part {
		case "", ".": // ignore empty parts; also ignore single dots, as browsers do
		case "..":
			return newError(InvalidURL, `The path of the link contains %q; send the link as the platform shows it.`, part)
		default:
			if len(a.parts) == maxParts {
				return newError(UnsupportedLink, "The path of the link has more than %d parts; no link of a video or an account has so many.", maxParts)
			}
			a.parts = append(a.parts, part)
		}
	}
	return nil
}

// pathPart returns the path part with index i, or "" if the path has fewer parts. The parts of a path are separated by slashes.
func (a *address) pathPart(i int) string {
	if i < len(a.parts) {
		return a.parts[i]
	}
	return ""
}

// lowerPathPart returns the path part with index i in lower case, or "" if the path has fewer parts.
func (a *address) lowerPathPart(i int) string { return strings.ToLower(a.pathPart(i)) }

// queryValue returns the first value of the query parameter with the given name, decoded once and without blanks around it. If the query does not
// have the parameter, the value is "".
func (a *address) queryValue(name string) string {
	for pair := range splitQuery(a.query) {
		if key, value, _ := strings.Cut(pair, "="); strings.EqualFold(key, name) {
			return strings.Trim(unescapeQuery(value), " ")
		}
	}
	return ""
}

// splitQuery iterates over the pairs "key=value" of a query. The separator between pairs can be "&", "&amp;" as in HTML, "&amp;amp;", or ";" as
// in links of old programs.
func splitQuery(query string) func(yield func(string) bool) {
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

// addressInFragment returns a copy of the address whose path and query come from the fragment, as
// in "host/#!/path?query". It returns nil if the fragment has no valid path.
func (a *address) addressInFragment() *address {
	fragment := a.fragment
	if fragment == "" { // the "#" can be percent-encoded
		_, fragment, _ = strings.Cut(a.query, "%23")
	}
	if !strings.Contains(fragment, "=") { // the separators of the path and the query can be percent-encoded
		fragment = unescapeQuery(fragment)
	}
	rest := strings.TrimPrefix(fragment, "!")
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

// parseInnerLink parses a link that was found in the query of the outer link. The inner link can
// also be only a path.
func (a *address) parseInnerLink(inner string) (Link, *Error) {
	switch {
	case inner == "":
		return Link{}, a.refusePath()
	case a.depth > 0:
		return Link{}, newError(UnsupportedLink, "The link contains a link that contains a third link; send only the innermost link.")
	case inner[0] == '/' && !strings.HasPrefix(inner, "//"):
		inner = "www." + a.base + inner
	}
	return parseBareLink(inner, a.depth+1)
}

// isAccountHost returns true if the first part of the path can be an account name, as on
// www.instagram.com but not on help.instagram.com.
func (a *address) isAccountHost() bool {
	switch a.sub {
	case "", "www", "m", "mobile", "www.m", "web", "mbasic", "touch", "free", "lite", "d", "x", "p":
		return true
	}
	return isLocale(a.sub)
}

// refusePath returns the error for a link that leads to another page of a platform, not to a video or an account.
func (a *address) refusePath() *Error {
	if len(a.parts) == 0 {
		return newError(UnsupportedLink, "The link leads to the front page of %s; accepted are %s.", a.host, acceptedForms(a.platform))
	}
	return newError(UnsupportedLink, "%s on %s is neither a video nor an account; accepted are %s.",
		quote("/"+strings.Join(a.parts, "/")), a.host, acceptedForms(a.platform))
}

// refuseVideoID returns the error for a video link whose id is missing or has the wrong form. The text rightForm describes the right form.
func (a *address) refuseVideoID(id, rightForm string) *Error {
	if id == "" {
		return newError(UnsupportedLink, "The link to %s names no video id; %s.", a.host, rightForm)
	}
	return newError(UnsupportedLink, "%s is not a video id of %s; %s.", quote(id), a.base, rightForm)
}

// refuseHandle returns the error for an account link whose handle has the wrong form. The text rightForm describes the right form.
func (a *address) refuseHandle(handle, rightForm string) *Error {
	return newError(UnsupportedLink, "%s is not an account name of %s; %s.", quote(handle), a.base, rightForm)
}

// platformNames has the names of all platforms, for use in error messages.
const platformNames = "TikTok, Instagram, YouTube, Facebook"

// acceptedForms returns the usual forms of a platform's links, for use in error messages.
func acceptedForms(p Platform) string {
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

// newError returns an Error with a formatted detail.
func newError(reason Reason, format string, args ...any) *Error {
	return &Error{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}

// quote returns s as a quoted Go string for use in an error message. If s has more than 60 characters, it ends with "…" after the 60th.
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
