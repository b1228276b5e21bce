package sandbox

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/reeltally/reeltally"
)

// The sandbox accepts these keys and tokens, those of TikTok in tiktok.go, and the tokens that it issues itself. It refuses all others in the
// same way as the real source.
const (
	YouTubeAPIKey = "sandbox-youtube-key"
	VendorKey     = "sandbox-vendor-key"
	// InstagramToken is the access token of the Instagram account whose handle Sandbox.InstagramAccount returns.
	InstagramToken = "sandbox-instagram-token"
	// FacebookToken is the access token of the first page in World.FacebookPages. The token can read all pages, but it can read the
	// insights of its own page only.
	FacebookToken = "sandbox-facebook-token"
	// FacebookUserToken is the access token of a system user. The request me/accounts with this
	// token returns the tokens of all pages in World.FacebookPages. The token can read neither insights nor the videos of the second and third page.
	FacebookUserToken = "sandbox-facebook-user-token"
	// MetaAppSecret is the secret of the app that issued all tokens of the Graph API.
	MetaAppSecret = "sandbox-meta-app-secret" //nolint:gosec // valid only in the sandbox
)

// Options configure a Sandbox. The zero value is ready for use.
type Options struct {
	Now    func() time.Time // clock of the sandbox; nil means time.Now
	Logger *slog.Logger     // logger for the calls; nil disables logging
	Seed   uint64           // seed of the random data; the same seed always gives the same accounts and videos
}

// Sandbox simulates the platforms and vendors. Use New to create a Sandbox. All methods may be called concurrently.
type Sandbox struct {
	now    func() time.Time
	logger *slog.Logger
	world  *World
	frozen atomic.Pointer[time.Time] // time at which a control call has stopped the clock; nil if the clock runs
	faults *faults
	calls  *callLog
	quota  *quota
	logins *tiktokLogins
	meta   metaApp
	runs   apifyRuns
}

// New returns a sandbox. A sandbox opens no files or connections and therefore needs no method Close.
func New(o Options) *Sandbox {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the default of Options.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Sandbox{
		now: o.Now, logger: o.Logger, world: newWorld(o.Seed),
		faults: &faults{rules: map[string]*rule{}}, calls: newCallLog(), quota: newQuota(), logins: newTikTokLogins(o.Seed, o.Now()),
	}
}

// World returns the generator of the sandbox's accounts and videos.
func (s *Sandbox) World() *World { return s.world }

// Settings returns values of environment variables, by name. They make all sources and the resolver of short links use the sandbox. The
// sandbox's Handler must be served at baseURL.
func (s *Sandbox) Settings(baseURL string) map[string]string {
	settings := map[string]string{}
	for _, setting := range s.settings(baseURL) {
		settings[setting[0]] = setting[1]
	}
	return settings
}

// WriteSettings writes the settings to w. Each line has the form NAME=value.
func (s *Sandbox) WriteSettings(w io.Writer, baseURL string) error {
	var lines strings.Builder
	for _, setting := range s.settings(baseURL) {
		lines.WriteString(setting[0] + "=" + setting[1] + "\n")
	}
	// All lines are written together. So a program that has read one of them need not wait for the others.
	_, err := io.WriteString(w, lines.String())
	return err
}

// settings returns the name and the value of each setting, in the order of WriteSettings.
func (s *Sandbox) settings(baseURL string) [][2]string {
	base := strings.TrimRight(baseURL, "/")
	return [][2]string{
		{"REELTALLY_SANDBOX", "true"},
		{"REELTALLY_YOUTUBE_BASE_URL", base + "/youtube/"},
		{"REELTALLY_YOUTUBE_API_KEY", YouTubeAPIKey},
		{"REELTALLY_TIKTOK_BASE_URL", base + "/tiktok/"},
		{"REELTALLY_TIKTOK_RESEARCH_BASE_URL", base + "/tiktok/"},
		{"REELTALLY_TIKTOK_CLIENT_KEY", TikTokClientKey},
		{"REELTALLY_TIKTOK_CLIENT_SECRET", TikTokClientSecret},
		{"REELTALLY_TIKTOK_REFRESH_TOKEN", TikTokRefreshToken},
		{"REELTALLY_INSTAGRAM_BASE_URL", base + "/instagram/v25.0/"},
		{"REELTALLY_INSTAGRAM_ACCESS_TOKEN", InstagramToken},
		{"REELTALLY_INSTAGRAM_APP_SECRET", MetaAppSecret},
		{"REELTALLY_INSTAGRAM_ACCOUNT_ID", instagramUserID(s.world.accountOfInstagramToken().number)},
		{"REELTALLY_FACEBOOK_BASE_URL", base + "/facebook/v25.0/"},
		{"REELTALLY_FACEBOOK_ACCESS_TOKEN", FacebookToken},
		{"REELTALLY_FACEBOOK_APP_SECRET", MetaAppSecret},
		{"REELTALLY_FACEBOOK_PAGE_ID", s.world.pageOfFacebookToken().id},
		{"REELTALLY_VENDOR", "sandbox"},
		{"REELTALLY_VENDOR_BASE_URL", base + "/vendor"},
		{"REELTALLY_VENDOR_KEY", VendorKey},
		{"REELTALLY_SHORTLINK_BASE_URL", base + "/shortlinks"},
		{"REELTALLY_THUMBNAIL_BASE_URL", base + "/thumbnails"},
	}
}

// Handler returns the handler for platforms, vendors, short links, thumbnails and control calls. README.md lists the paths.
func (s *Sandbox) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(reeltally.SandboxHeader, "true")
		area, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		switch area {
		case "youtube":
			s.serveYouTube(w, r, rest)
		case "tiktok":
			s.serveTikTok(w, r, rest)
		case "instagram":
			s.serveInstagram(w, r, rest)
		case "facebook":
			s.serveFacebook(w, r, rest)
		case "vendor":
			s.serveVendor(w, r, rest)
		case "shortlinks":
			s.serveShortLink(w, r)
		case "thumbnails":
			s.serveThumbnail(w, r, rest)
		case "_control":
			s.serveControl(w, r, rest)
		default:
			writeReply(w, r, problemReply(http.StatusNotFound,
				"unknown path; the sandbox has /youtube/, /tiktok/, /instagram/, /facebook/, /vendor/, /shortlinks/, /thumbnails/ and /_control/"))
		}
	})
}

// clock returns the sandbox's current time in UTC, in whole seconds.
func (s *Sandbox) clock() time.Time {
	if set := s.frozen.Load(); set != nil {
		return *set
	}
	return s.now().UTC().Truncate(time.Second)
}

// call is one request to a simulated source.
type call struct {
	r      *http.Request
	now    time.Time
	source string // name of the called source, such as sourceYouTube
	// platform is the platform of a call to a vendor. It is "" for all other calls, and also for YouTube, because the name "youtube" means YouTube's own
	// API.
	platform string
	method   string
	ids      []string // the ids, links or handles that the call requests
}

// These are the names of the sources in faults and in the call log. The call log also lists a call to a vendor under the name of the
// platform, except for YouTube.
const (
	sourceYouTube   = "youtube"
	sourceVendor    = "vendor"
	sourceInstagram = "instagram"
	sourceFacebook  = "facebook"
	// TikTok's own APIs have the names "tiktok_display" and "tiktok_research". In faults and in the call log, the name "tiktok" stands for
	// the calls that ask a vendor for TikTok data.
	sourceTikTokDisplay  = "tiktok_display"
	sourceTikTokResearch = "tiktok_research"
	sourceShortLinks     = "shortlinks"
)

// errorReplies has functions that create the wrong answers of one simulated source, in the format of its platform.
type errorReplies struct {
	rateLimited, quotaSpent, serverError func() reply
	// hostile turns the correct answer into a malformed or misleading one. The number of earlier hostile answers selects one of the variants.
	hostile func(earlierCalls int, correct reply) reply
}

// serveCall records a call and sends its reply. An active fault of the source delays, changes or
// replaces the reply.
func (s *Sandbox) serveCall(w http.ResponseWriter, c *call, replies errorReplies, correctReply func(*call) reply) {
	rep := correctReply(c)
	s.calls.recordCall(c)
	// A real platform checks the key first, so a call without a valid key gets no fault.
	if rep.refused {
		writeReply(w, c.r, rep)
		return
	}
	f, n, ok := s.faults.takeRule(c.source, c.platform, c.ids)
	if !ok {
		writeReply(w, c.r, rep)
		return
	}
	s.logger.DebugContext(c.r.Context(), "call answered with a fault", "fault", f.Fault, "source", c.source, "method", c.method)
	switch f.Fault {
	case faultRateLimited:
		writeReply(w, c.r, replies.rateLimited().withRetryAfter(f.RetryAfter))
	case faultQuotaSpent:
		writeReply(w, c.r, replies.quotaSpent())
	case faultServerError:
		writeReply(w, c.r, replies.serverError().withRetryAfter(f.RetryAfter))
	case faultSlow:
		if sleep(c.r.Context(), f.RetryAfter) {
			writeReply(w, c.r, rep)
		}
	case faultRefused:
		writeReply(w, c.r, reply{status: f.Status, raw: f.Body})
	case faultZeros:
		writeReply(w, c.r, withZeroCounts(rep))
	case faultHostile:
		if rep.status == http.StatusOK || rep.status == http.StatusCreated || rep.isRedirect() {
			rep = replies.hostile(n, rep)
		}
		writeReply(w, c.r, rep)
	case faultTruncated:
		// Content-Length is alternately the length of the truncated body and the length of the whole body.
		writeReply(w, c.r, rep.withHalfBody(n%2 == 1))
	}
}
