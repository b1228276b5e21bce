// Package shortlink finds out where a short link leads. It is the only part of the server that follows an address
// from outside while a request waits, so it asks for headers only, from the platform's own hosts only, and a few
// times only.
package shortlink

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/store/link"
)

// The codes of [Error]; they are result codes of the contract.
const (
	CodeNotFound        = "not_found"        // the link is dead
	CodeUnsupportedLink = "unsupported_link" // it leads to something that is neither a video nor an account
	CodeLinkUnresolved  = "link_unresolved"  // it could not be followed now

	CodePlatformUnavailable = "platform_unavailable" // the platform answers with an error of its own, or not at all
	CodeRateLimited         = "rate_limited"         // the platform was asked too often
)

const (
	maxHops        = 5
	defaultTimeout = 5 * time.Second
	maxIdle        = 16          // idle connections to one host that are kept for the next link
	idleTimeout    = time.Second // idle connections are closed after it
	userAgent      = "ReelTally (+https://github.com/reeltally/reeltally)"
)

// Error says why a short link has no target.
type Error struct {
	Code string
	// Retryable tells whether resending the link may help. It is true for the last three codes.
	Retryable bool
	// Detail is a plain sentence for the caller. It names hosts of the platform at most.
	Detail string
	cause  error
}

func (e *Error) Error() string { return e.Detail }

// Unwrap returns what happened on the network; nil when the platform's answer was the reason.
func (e *Error) Unwrap() error { return e.cause }

// Options are the settings of a [Resolver]; the zero value talks to the real platforms.
type Options struct {
	// BaseURL is where something stands in for the platforms. The address https://HOST/PATH is then asked for at
	// BaseURL/HOST/PATH, and nothing else is ever connected to. Empty means the platforms themselves.
	BaseURL string
	Logger  *slog.Logger     // nil: nothing is logged
	Now     func() time.Time // nil: the wall clock; for the log only
	Timeout time.Duration    // of one hop; 0: five seconds
	RootCAs *x509.CertPool   // nil: the system's
	// Lookup and Dial are those of [outbound.Guard].
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// Resolver follows short links. It keeps nothing between calls, the caller caches; it may be used by many goroutines.
type Resolver struct {
	// transport sends one request and nothing more: a client would follow, keep cookies and add a Referer.
	transport *http.Transport

	base    string // without final slash; "" for the platforms themselves
	log     *slog.Logger
	now     func() time.Time
	timeout time.Duration
}

// New makes a resolver. The error is about BaseURL, which has to be an http or https address.
func New(o Options) (*Resolver, error) {
	guard := &outbound.Guard{Reach: ofPlatforms, Lookup: o.Lookup, Dial: o.Dial}
	if o.BaseURL != "" {
		base, err := url.Parse(o.BaseURL)
		if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" ||
			base.RawQuery != "" || base.Fragment != "" {
			return nil, fmt.Errorf("short link base URL %q: want http://HOST/PATH or https://HOST/PATH", o.BaseURL)
		}
		standIn := outbound.AddressOf(base)
		guard.Reach = func(address string) outbound.Reach {
			if address == standIn {
				return outbound.Operated
			}
			return outbound.Nowhere
		}
	}
	transport := outbound.NewTransport(guard)
	// Most links of a bulk request are on one host. Reusing connections saves TLS handshakes, each of which takes a millisecond of processor
	// time.
	transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = maxIdle, idleTimeout
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs}
	r := &Resolver{
		transport: transport,

		base:    strings.TrimSuffix(o.BaseURL, "/"),
		log:     o.Logger,
		now:     o.Now,
		timeout: cmp.Or(o.Timeout, defaultTimeout),
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.now == nil {
		r.now = time.Now //nolint:forbidigo // the default; it decides how long Retry-After is worth believing, no more
	}
	return r, nil
}

// ofPlatforms lets the dialer reach the platforms' own hosts over TLS.
func ofPlatforms(address string) outbound.Reach {
	host, port, err := net.SplitHostPort(address)
	if _, ok := link.HostPlatform(host); err != nil || !ok || port != "443" {
		return outbound.Nowhere
	}
	return outbound.Public
}

// Resolve returns the video or account that a short link leads to; a link that is none comes back as it is. The
// error is always an [*Error].
//
// A redirect counts as soon as its target is understood: the target itself is not asked for. A login page that
// remembers where it was wanted counts as a redirect to there.
func (r *Resolver) Resolve(ctx context.Context, l link.Link) (link.Link, error) {
	if l.Kind != link.Short {
		return l, nil
	}
	start := r.now()
	target, hops, failed := r.follow(ctx, l)
	log := r.log.With(
		slog.String("platform", string(l.Platform)),
		slog.Int("hops", hops),
		slog.Int64("elapsed_ms", r.now().Sub(start).Milliseconds()))
	if failed == nil {
		log.DebugContext(ctx, "short link resolved", slog.String("kind", string(target.Kind)))
		return target, nil
	}
	level := slog.LevelDebug
	if refused := (*outbound.RefusedError)(nil); errors.As(failed, &refused) {
		// A name of a platform never stands for an inner address: somebody plays with the name server.
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "short link not resolved", slog.String("code", failed.Code), slog.Any("cause", failed.cause))
	return link.Link{}, failed
}

// follow asks hop after hop. hops is how many were asked.
func (r *Resolver) follow(ctx context.Context, l link.Link) (target link.Link, hops int, failed *Error) {
	address, err := url.Parse(l.Canonical)
	if err != nil {
		return link.Link{}, 0, deadEnd(l.Platform)
	}
	seen := map[string]bool{}
	for hops < maxHops {
		if failed := checkHop(address, l.Platform); failed != nil {
			return link.Link{}, hops, failed
		}
		if seen[address.String()] {
			return link.Link{}, hops, unresolved(nil, "The link leads in a circle on %s; try again later.", address.Host)
		}
		seen[address.String()] = true
		hops++
		location, failed := r.ask(ctx, address)
		if failed != nil {
			return link.Link{}, hops, failed
		}
		next, err := address.Parse(location)
		if err != nil {
			return link.Link{}, hops, unresolved(err, "%s redirects to something that is no address; try again later.", address.Host)
		}
		target, failed := meaning(next, l.Platform)
		if failed != nil || target.Kind != link.Short {
			return target, hops, failed
		}
		if address, err = hopTo(next, target); err != nil {
			return link.Link{}, hops, deadEnd(l.Platform)
		}
	}
	return link.Link{}, hops, unresolved(nil, "The link redirects more than %d times; try again later.", maxHops)
}

// checkHop refuses to ask anything but a host of the platform over TLS at its own port.
func checkHop(u *url.URL, p link.Platform) *Error {
	platform, ok := link.HostPlatform(u.Hostname())
	if !ok || platform != p || u.Scheme != "https" || u.User != nil || u.Port() != "" && u.Port() != "443" {
		return deadEnd(p)
	}
	return nil
}

// meaning says what the target of a redirect is: a video, an account, another short link, or a refusal.
func meaning(next *url.URL, p link.Platform) (link.Link, *Error) {
	target, err := link.Parse(next.String())
	if err == nil {
		if target.Platform != p {
			return link.Link{}, deadEnd(p)
		}
		return target, nil
	}
	var refused *link.Error
	if platform, ok := link.HostPlatform(next.Hostname()); ok && platform == p && isNowhere(next) {
		return link.Link{}, dead(err, "The link is dead: it leads to no video and no account any more.")
	}
	if errors.As(err, &refused) && refused.Reason == link.UnsupportedLink {
		return link.Link{}, &Error{Code: CodeUnsupportedLink, Detail: "The short link was followed. " + refused.Detail, cause: err}
	}
	return link.Link{}, deadEnd(p)
}

// isNowhere holds for the pages to which platforms send whoever asks for something that is gone: the front page,
// the page for missing pages, and a login page that does not remember where it was wanted, or remembers such a
// page.
func isNowhere(u *url.URL) bool {
	switch first, _, _ := strings.Cut(strings.Trim(strings.ToLower(u.Path), "/"), "/"); first {
	case "", "404", "notfound", "home.php":
		return true
	case "login", "login.php", "accounts", "challenge", "checkpoint":
		query := u.Query()
		wanted, err := u.Parse(cmp.Or(query.Get("next"), query.Get("redirect_url"), "/"))
		return err != nil || isNowhere(wanted)
	}
	return false
}

// hopTo is the address to ask next: the one of the redirect, whose query may matter, or the short link inside a
// login page.
func hopTo(next *url.URL, target link.Link) (*url.URL, error) {
	inner, err := url.Parse(target.Canonical)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(next.Path, target.ID) {
		return inner, nil
	}
	hop := *next
	hop.Scheme, hop.Fragment = "https", ""
	if hop.Port() == "80" {
		hop.Host = hop.Hostname()
	}
	return &hop, nil
}

// ask returns where the address redirects to. Some servers answer HEAD otherwise than GET, so anything but a
// redirect is asked again.
func (r *Resolver) ask(ctx context.Context, address *url.URL) (location string, failed *Error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	for _, method := range [...]string{http.MethodHead, http.MethodGet} {
		var status int
		if status, location, failed = r.header(ctx, method, address); failed != nil {
			return "", failed
		}
		switch {
		case status >= 300 && status < 400 && location != "":
			return location, nil
		case status == http.StatusTooManyRequests:
			return "", mayPass(CodeRateLimited, nil, "%s does not answer for now because of too many requests; try again later.", address.Host)
		case method == http.MethodHead:
		case status == http.StatusNotFound || status == http.StatusGone:
			return "", dead(nil, "The link is dead: %s does not know it (status %d).", address.Host, status)
		case status >= http.StatusInternalServerError:
			failed = mayPass(CodePlatformUnavailable, nil, "%s answers with status %d; try again later.", address.Host, status)
		default:
			failed = unresolved(nil, "%s answers with status %d and no redirect; try again later.", address.Host, status)
		}
	}
	return "", failed
}

// header sends one request and reads the head of the answer, never its body.
func (r *Resolver) header(ctx context.Context, method string, address *url.URL) (status int, location string, failed *Error) {
	request, err := http.NewRequestWithContext(ctx, method, r.actual(address), http.NoBody)
	if err != nil {
		return 0, "", unresolved(err, "%s cannot be asked; try again later.", address.Host)
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "text/html")
	response, err := r.transport.RoundTrip(request)
	if err != nil {
		return 0, "", r.silent(err, address.Host)
	}
	// The body is not read. If it is not empty, Close ends the connection; otherwise the connection is reused.
	_ = response.Body.Close()
	return response.StatusCode, response.Header.Get("Location"), nil
}

// actual is where an address is really asked for.
func (r *Resolver) actual(address *url.URL) string {
	if r.base == "" {
		return address.String()
	}
	actual := r.base + "/" + address.Hostname() + address.EscapedPath()
	if address.RawQuery != "" {
		actual += "?" + address.RawQuery
	}
	return actual
}

// silent explains why there was no answer. The cause stays in the log: it may name addresses of the operator.
func (r *Resolver) silent(err error, host string) *Error {
	if refused := (*outbound.RefusedError)(nil); errors.As(err, &refused) || errors.Is(err, context.Canceled) {
		return unresolved(err, "%s could not be reached; try again later.", host)
	}
	var netErr net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout() {
		return mayPass(CodePlatformUnavailable, err, "%s did not answer within %s; try again later.", host, r.timeout)
	}
	return mayPass(CodePlatformUnavailable, err, "%s could not be reached; try again later.", host)
}

func unresolved(cause error, format string, args ...any) *Error {
	return mayPass(CodeLinkUnresolved, cause, format, args...)
}

func mayPass(code string, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Retryable: true, Detail: fmt.Sprintf(format, args...), cause: cause}
}

func dead(cause error, format string, args ...any) *Error {
	return &Error{Code: CodeNotFound, Detail: fmt.Sprintf(format, args...), cause: cause}
}

// deadEnd refuses a redirect that leaves the platform.
func deadEnd(p link.Platform) *Error {
	return &Error{
		Code:   CodeUnsupportedLink,
		Detail: fmt.Sprintf("The short link leads away from the addresses of %s and is not followed.", p),
	}
}
