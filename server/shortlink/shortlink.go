// Package shortlink resolves a short link to the video or account that it leads to.
//
// Resolver.Resolve follows the redirects of the link. Callers supply the link, so a request could reach an address that must not be
// requested. For this reason, Resolve reads only headers, connects only to hosts of the platform, and requests at most maxHops addresses.
//
// Start reading in Resolver.followRedirects: checkHop checks an address, requestRedirect requests it, and parseTarget parses the address to which it
// redirects.
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

// The possible values of [Error.Code]. The API returns them as result codes.
const (
	CodeNotFound        = "not_found"        // the video or account of the short link does not exist any more
	CodeUnsupportedLink = "unsupported_link" // the short link leads to a page that is no video and no account of the link's platform
	CodeLinkUnresolved  = "link_unresolved"  // any other failure to resolve the short link, for example a redirect loop

	CodePlatformUnavailable = "platform_unavailable" // the platform answered with 5xx or not at all
	CodeRateLimited         = "rate_limited"         // the platform got too many requests
)

const (
	maxHops        = 5               // maximum number of addresses that are requested for one short link
	defaultTimeout = 5 * time.Second // default of Options.Timeout
	maxIdle        = 16              // maximum number of idle connections to each host
	idleTimeout    = time.Second     // time after which an idle connection is closed
	userAgent      = "ReelTally (+https://github.com/reeltally/reeltally)"
)

// Error is the reason why a short link could not be resolved.
type Error struct {
	Code string
	// Retryable is true if a later attempt to resolve the same link can succeed. It is true for CodeLinkUnresolved, CodePlatformUnavailable
	// and CodeRateLimited.
	Retryable bool
	// Detail is a sentence for the caller of the API. It contains no internal addresses.
	Detail string
	cause  error // the network or parse error that caused this Error; nil if the platform's response caused it
}

func (e *Error) Error() string { return e.Detail }

// Unwrap returns the network or parse error that caused e, or nil if the platform's response caused e.
func (e *Error) Unwrap() error { return e.cause }

// Options are the settings of a [Resolver]. The zero value uses the real platforms.
type Options struct {
	// BaseURL is the address of a server that simulates the platforms. If BaseURL is set, the
	// resolver requests only this server, with BaseURL/HOST/PATH instead of https://HOST/PATH.
	BaseURL string
	Logger  *slog.Logger     // logger for warnings; nil disables logging
	Now     func() time.Time // clock that measures how long Resolve takes, for log messages; nil means time.Now
	Timeout time.Duration    // time limit for requesting one address; 0 means 5 seconds
	RootCAs *x509.CertPool   // trusted root certificates; nil means the root certificates of the system
	// Lookup and Dial are the fields of [outbound.Guard] with the same names. nil means the default of the field.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// Resolver resolves short links. It has no cache. It is safe for concurrent use.
type Resolver struct {
	// transport sends the requests. It is used without an http.Client, because a client would follow redirects and add a Referer.
	transport *http.Transport

	base    string // Options.BaseURL without trailing slash; "" for the real platforms
	log     *slog.Logger
	now     func() time.Time
	timeout time.Duration
}

// New returns a resolver. It fails if BaseURL is not an http or https URL.
func New(o Options) (*Resolver, error) {
	guard := &outbound.Guard{Reach: platformReach, Lookup: o.Lookup, Dial: o.Dial}
	if o.BaseURL != "" {
		reach, err := outbound.AllowOneServer(o.BaseURL)
		if err != nil {
			return nil, fmt.Errorf("short links: %w", err)
		}
		guard.Reach = reach
	}
	transport := outbound.NewTransport(guard)
	// Most short links of a bulk request have the same host. Keeping connections open saves TLS handshakes, each of which takes a
	// millisecond of CPU time.
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
		r.now = time.Now //nolint:forbidigo // the default of Options.Now
	}
	return r, nil
}

// platformReach returns the kind of IP addresses to which a host may resolve. It allows only port
// 443 of the platforms' hosts. hostPort has the form HOST:PORT.
func platformReach(hostPort string) outbound.Reach {
	host, port, err := net.SplitHostPort(hostPort)
	if _, ok := link.PlatformOfHost(host); err != nil || !ok || port != "443" {
		return outbound.NoAddress
	}
	return outbound.Public
}

// Resolve returns the link of the video or account that a short link leads to. It returns all other
// links unchanged. Every error is an [*Error].
func (r *Resolver) Resolve(ctx context.Context, l link.Link) (link.Link, error) {
	if l.Kind != link.Short {
		return l, nil
	}
	start := r.now()
	target, hops, failed := r.followRedirects(ctx, l)
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
		// The IP address of the host is not allowed. This can be an attack through the name server.
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "cannot resolve a short link", slog.String("code", failed.Code), slog.Any("cause", withoutURL(failed.cause)))
	return link.Link{}, failed
}

// withoutURL removes the URL from an error, because the URL must not be logged. It returns the
// cause of a *url.Error, and other errors unchanged.
func withoutURL(err error) error {
	if withAddress := (*url.Error)(nil); errors.As(err, &withAddress) {
		return withAddress.Err
	}
	return err
}

// followRedirects follows the redirects of a short link and returns the link of the video or account. hopCount is the number of addresses
// that were requested.
func (r *Resolver) followRedirects(ctx context.Context, l link.Link) (target link.Link, hopCount int, failed *Error) {
	address, err := url.Parse(l.Canonical)
	if err != nil {
		return link.Link{}, 0, offPlatformError(l.Platform)
	}
	seen := map[string]bool{}
	for hopCount < maxHops {
		if failed := checkHop(address, l.Platform); failed != nil {
			return link.Link{}, hopCount, failed
		}
		if seen[address.String()] {
			return link.Link{}, hopCount, unresolvedError(nil, "The link redirects in a loop on %s; try again later.", address.Host)
		}
		seen[address.String()] = true
		hopCount++
		location, failed := r.requestRedirect(ctx, address)
		if failed != nil {
			return link.Link{}, hopCount, failed
		}
		next, err := address.Parse(location)
		if err != nil {
			return link.Link{}, hopCount, unresolvedError(err, "%s redirects to an invalid address; try again later.", address.Host)
		}
		target, failed := parseTarget(next, l.Platform)
		// The resolver does not request the page of the video or account.
		if failed != nil || target.Kind != link.Short {
			return target, hopCount, failed
		}
		if address, err = nextHop(next, target); err != nil {
			return link.Link{}, hopCount, offPlatformError(l.Platform)
		}
	}
	return link.Link{}, hopCount, unresolvedError(nil, "The link redirects more than %d times; try again later.", maxHops)
}

// checkHop returns an error if the resolver must not request u. It may request only https URLs of the platform, on port 443 and without a
// user name.
func checkHop(u *url.URL, p link.Platform) *Error {
	platform, ok := link.PlatformOfHost(u.Hostname())
	if !ok || platform != p || u.Scheme != "https" || u.User != nil || u.Port() != "" && u.Port() != "443" {
		return offPlatformError(p)
	}
	return nil
}

// parseTarget returns the link of the video, account or short link to which a response redirects.
// It fails for other kinds of pages and for other platforms.
func parseTarget(address *url.URL, p link.Platform) (link.Link, *Error) {
	// The address can be a login page with the real link in its query. link.Parse then returns this link.
	target, err := link.Parse(address.String())
	if err == nil {
		if target.Platform != p {
			return link.Link{}, offPlatformError(p)
		}
		return target, nil
	}
	var refused *link.Error
	if platform, ok := link.PlatformOfHost(address.Hostname()); ok && platform == p && isDeadPage(address) {
		return link.Link{}, deadLinkError(err, "The link is dead: it does not lead to a video or an account any more.")
	}
	if errors.As(err, &refused) && refused.Reason == link.UnsupportedLink {
		return link.Link{}, &Error{Code: CodeUnsupportedLink, Detail: "The target of the short link is not supported. " + refused.Detail, cause: err}
	}
	return link.Link{}, offPlatformError(p)
}

// isDeadPage returns true if platforms redirect dead short links to the page. Such pages are the front page,
// the page for missing pages, and a login page whose next page is missing, invalid or dead.
func isDeadPage(u *url.URL) bool {
	switch first, _, _ := strings.Cut(strings.Trim(strings.ToLower(u.Path), "/"), "/"); first {
	case "", "404", "notfound", "home.php":
		return true
	case "login", "login.php", "accounts", "challenge", "checkpoint":
		// A login page is dead unless its URL names a valid next page that is not dead.
		query := u.Query()
		wanted, err := u.Parse(cmp.Or(query.Get("next"), query.Get("redirect_url"), "/"))
		return err != nil || isDeadPage(wanted)
	}
	return false
}

// nextHop returns the address to request after a redirect to redirectURL. shortLink must be the
// result of parsing redirectURL.
func nextHop(redirectURL *url.URL, shortLink link.Link) (*url.URL, error) {
	inner, err := url.Parse(shortLink.Canonical)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(redirectURL.Path, shortLink.ID) {
		// redirectURL is a login page that leads to shortLink.
		return inner, nil
	}
	// redirectURL is itself an address of shortLink, so the query is kept.
	hop := *redirectURL
	hop.Scheme, hop.Fragment = "https", ""
	if hop.Port() == "80" {
		hop.Host = hop.Hostname()
	}
	return &hop, nil
}

// requestRedirect requests an address and returns the target of the redirect. If the response to HEAD is neither a redirect nor status 429,
// requestRedirect sends GET, because some servers redirect only GET.
func (r *Resolver) requestRedirect(ctx context.Context, address *url.URL) (location string, failed *Error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	for _, method := range [...]string{http.MethodHead, http.MethodGet} {
		var status int
		if status, location, failed = r.roundTrip(ctx, method, address); failed != nil {
			return "", failed
		}
		switch {
		case status >= 300 && status < 400 && location != "":
			return location, nil
		case status == http.StatusTooManyRequests:
			return "", retryableError(CodeRateLimited, nil, "%s refuses requests for now because there were too many; try again later.", address.Host)
		case method == http.MethodHead:
		case status == http.StatusNotFound || status == http.StatusGone:
			return "", deadLinkError(nil, "The link is dead: %s answers with status %d.", address.Host, status)
		case status >= http.StatusInternalServerError:
			failed = retryableError(CodePlatformUnavailable, nil, "%s answers with status %d; try again later.", address.Host, status)
		default:
			failed = unresolvedError(nil, "%s answers with status %d and no redirect; try again later.", address.Host, status)
		}
	}
	return "", failed
}

// roundTrip sends one request and returns the status and Location of the response.
func (r *Resolver) roundTrip(ctx context.Context, method string, address *url.URL) (status int, location string, failed *Error) {
	request, err := http.NewRequestWithContext(ctx, method, r.requestURL(address), http.NoBody)
	if err != nil {
		return 0, "", unresolvedError(err, "%s cannot be requested; try again later.", address.Host)
	}
	request.Header.Set("User-Agent", userAgent)
	request.Header.Set("Accept", "text/html")
	response, err := r.transport.RoundTrip(request)
	if err != nil {
		return 0, "", r.networkError(err, address.Host)
	}
	// The body is not read. If it is not empty, Close also closes the connection.
	_ = response.Body.Close()
	return response.StatusCode, response.Header.Get("Location"), nil
}

// requestURL returns the URL to request for an address. If Options.BaseURL is set, this is BaseURL/HOST/PATH. Otherwise, it is the address
// itself.
func (r *Resolver) requestURL(address *url.URL) string {
	if r.base == "" {
		return address.String()
	}
	actual := r.base + "/" + address.Hostname() + address.EscapedPath()
	if address.RawQuery != "" {
		actual += "?" + address.RawQuery
	}
	return actual
}

// networkError returns the Error for a request that failed with err and got no response. Detail does not contain the text of err, because
// this text can contain internal addresses.
func (r *Resolver) networkError(err error, host string) *Error {
	if refused := (*outbound.RefusedError)(nil); errors.As(err, &refused) || errors.Is(err, context.Canceled) {
		return unresolvedError(err, "%s could not be reached; try again later.", host)
	}
	var netErr net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.As(err, &netErr) && netErr.Timeout() {
		return retryableError(CodePlatformUnavailable, err, "%s did not answer within %s; try again later.", host, r.timeout)
	}
	return retryableError(CodePlatformUnavailable, err, "%s could not be reached; try again later.", host)
}

// unresolvedError returns a retryable error with the code CodeLinkUnresolved.
func unresolvedError(cause error, format string, args ...any) *Error {
	return retryableError(CodeLinkUnresolved, cause, format, args...)
}

// retryableError returns an Error with Retryable set. Its Detail is the formatted text.
func retryableError(code string, cause error, format string, args ...any) *Error {
	return &Error{Code: code, Retryable: true, Detail: fmt.Sprintf(format, args...), cause: cause}
}

// deadLinkError returns the Error for a short link to a video or account that no longer exists.
func deadLinkError(cause error, format string, args ...any) *Error {
	return &Error{Code: CodeNotFound, Detail: fmt.Sprintf(format, args...), cause: cause}
}

// offPlatformError returns the Error for a short link of platform p that redirects to an address outside of the platform.
func offPlatformError(p link.Platform) *Error {
	return &Error{
		Code:   CodeUnsupportedLink,
		Detail: fmt.Sprintf("The short link leads to an address outside of %s and is not followed.", p),
	}
}
