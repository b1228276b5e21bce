// Package thumbnail fetches the pictures of videos and makes small copies of them.
//
// [Copier] copies the pictures that are due into the store. [Fetcher] requests a picture from the platform's own hosts only, because the
// addresses of pictures come from the answers of sources. Shrink makes a copy of at most MaxWidth by MaxHeight pixels. Start reading at
// Copier.CopyDuePictures.
package thumbnail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	_ "image/png" // decodes PNG pictures
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/image/draw"
	_ "golang.org/x/image/webp" // decodes WebP pictures

	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/store/link"
)

const (
	// MaxWidth is the largest width of a copy in pixels.
	MaxWidth = 160
	// MaxHeight is the largest height of a copy in pixels.
	MaxHeight = 284

	maxBytes  = 4 << 20 // maximum size of a fetched picture in bytes
	maxPixels = 8 << 20 // maximum number of pixels of a fetched picture; the decoded picture takes up to 64 MiB
	maxHops   = 3       // maximum number of requests for one picture: the first one and two redirects
	quality   = 75      // quality of the JPEG; most copies take 4 to 9 KB
	timeout   = 10 * time.Second
	userAgent = "ReelTally (+https://github.com/reeltally/reeltally)"
)

// hosts are the domains from which each platform serves the pictures of videos. Their subdomains are included.
var hosts = map[link.Platform][]string{
	link.TikTok:    {"tiktokcdn.com", "tiktokcdn-us.com", "tiktokcdn-eu.com", "ttwstatic.com", "muscdn.com", "ibyteimg.com"},
	link.Instagram: {"cdninstagram.com", "fbcdn.net"},
	link.Facebook:  {"fbcdn.net"},
	link.YouTube:   {"ytimg.com", "img.youtube.com", "ggpht.com"},
}

// Options are the settings of a [Fetcher]. The zero value uses the real platforms.
type Options struct {
	// BaseURL is the address of a server that simulates the platforms. If BaseURL is set, the
	// fetcher requests BaseURL/HOST/PATH instead of https://HOST/PATH.
	BaseURL string
	RootCAs *x509.CertPool // trusted root certificates; nil means the root certificates of the system
	// Lookup and Dial are the fields of [outbound.Guard] with the same names. nil means the default of the field.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// Fetcher fetches pictures. It is safe for concurrent use.
type Fetcher struct {
	transport *http.Transport // sends the requests; Fetch follows redirects itself, because it must check the host of each redirect
	base      string          // Options.BaseURL without trailing slash; "" for the real platforms
}

// New returns a Fetcher. It fails if BaseURL is not an http or https URL.
func New(o Options) (*Fetcher, error) {
	guard := &outbound.Guard{Reach: allowedAddressKind, Lookup: o.Lookup, Dial: o.Dial}
	if o.BaseURL != "" {
		reach, err := outbound.AllowOneServer(o.BaseURL)
		if err != nil {
			return nil, fmt.Errorf("thumbnails: %w", err)
		}
		guard.Reach = reach
	}
	transport := outbound.NewTransport(guard)
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs}
	return &Fetcher{transport: transport, base: strings.TrimSuffix(o.BaseURL, "/")}, nil
}

// Close closes the idle connections.
func (f *Fetcher) Close() { f.transport.CloseIdleConnections() }

// allowedAddressKind returns outbound.Public if a platform serves pictures from the host and the
// port is 443. Otherwise it returns outbound.NoAddress.
func allowedAddressKind(address string) outbound.Reach {
	host, port, err := net.SplitHostPort(address)
	if err != nil || port != "443" {
		return outbound.NoAddress
	}
	for p := range hosts {
		if isPictureHost(p, host) {
			return outbound.Public
		}
	}
	return outbound.NoAddress
}

// isPictureHost returns true if the host is one of the domains from which the platform serves pictures, or a name below such a domain.
func isPictureHost(p link.Platform, host string) bool {
	for _, domain := range hosts[p] {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// Fetch requests the picture of a video and returns a small JPEG copy. pictureURL must be an https
// URL at a host of the platform.
func (f *Fetcher) Fetch(ctx context.Context, p link.Platform, pictureURL string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	at, err := url.Parse(pictureURL)
	if err != nil {
		return nil, err
	}
	for range maxHops {
		// A redirect, too, may lead only to a host of the platform.
		if at.Scheme != "https" || at.User != nil || at.Port() != "" || !isPictureHost(p, strings.ToLower(at.Hostname())) {
			return nil, fmt.Errorf("%s is not an https URL of a host that serves pictures of %s, without user name and port", at.Redacted(), p)
		}
		picture, location, err := f.requestPicture(ctx, at)
		if err != nil {
			return nil, err
		}
		if location == "" {
			return Shrink(picture)
		}
		if at, err = at.Parse(location); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the picture redirects more than %d times", maxHops-1)
}

// requestPicture sends one GET request for a picture. It returns either the body of the response, or the location to which the response redirects.
func (f *Fetcher) requestPicture(ctx context.Context, at *url.URL) (body []byte, location string, err error) {
	target := at.String()
	if f.base != "" {
		target = f.base + "/" + at.Host + at.RequestURI()
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	r.Header.Set("User-Agent", userAgent)
	r.Header.Set("Accept", "image/jpeg, image/png, image/webp")
	resp, err := f.transport.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.Header.Get("Location") != "":
		return nil, resp.Header.Get("Location"), nil
	case resp.StatusCode != http.StatusOK:
		return nil, "", fmt.Errorf("the host %s answered with status %d", at.Host, resp.StatusCode)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err == nil && len(body) > maxBytes {
		err = fmt.Errorf("the picture is larger than %d bytes", maxBytes)
	}
	return body, "", err
}

// ErrTooManyPixels is the error of Shrink for a picture with more than 8 Mi pixels, which would need too much memory.
var ErrTooManyPixels = errors.New("the picture has too many pixels")

// Shrink converts a JPEG, PNG or WebP picture to a JPEG of at most MaxWidth by MaxHeight pixels.
// The JPEG keeps the proportions.
func Shrink(picture []byte) ([]byte, error) {
	size, _, err := image.DecodeConfig(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	if size.Width <= 0 || size.Height <= 0 || size.Width > maxPixels/size.Height {
		return nil, ErrTooManyPixels
	}
	original, _, err := image.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil, err
	}
	// The scale is at most 1, so that no picture is enlarged.
	scale := min(1, float64(MaxWidth)/float64(size.Width), float64(MaxHeight)/float64(size.Height))
	small := image.NewRGBA(image.Rect(0, 0, max(1, int(float64(size.Width)*scale+0.5)), max(1, int(float64(size.Height)*scale+0.5))))
	draw.Draw(small, small.Bounds(), image.NewUniform(color.White), image.Point{}, draw.Src) // a white background for transparent pixels
	draw.CatmullRom.Scale(small, small.Bounds(), original, original.Bounds(), draw.Over, nil)
	var out bytes.Buffer
	if err := jpeg.Encode(&out, small, &jpeg.Options{Quality: quality}); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
