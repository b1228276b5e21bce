package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Backend is the interface through which pages use the server. If the visitor can do something about an error, the error is a *Problem.
type Backend interface {
	// Identify returns the token and the organisation of the session with this secret.
	Identify(ctx context.Context, session string) (store.Identity, error)
	// SignIn creates a session for a token and returns the session's secret.
	SignIn(ctx context.Context, token string) (session string, err error)
	// FindLoginLink returns the token and the organisation of a login link. The link can still be used afterwards.
	FindLoginLink(ctx context.Context, link string) (store.Identity, error)
	// UseLoginLink creates a session for a login link and returns the session's secret. The link cannot be used again.
	UseLoginLink(ctx context.Context, link string) (session string, err error)
	// CheckSetupLink returns a *Problem if the setup link cannot be used. The operator creates the first organisation with a setup link.
	CheckSetupLink(ctx context.Context, link string) error
	// SetUp uses a setup link to create the first organisation, its first token and a session. Afterwards, the link cannot be used again.
	SetUp(ctx context.Context, link, name string) (store.Setup, error)
	// HasNoSource returns true if no collector is running, or if the running collectors have no source.
	HasNoSource(ctx context.Context) (bool, error)
	// SignOut ends the session with this secret.
	SignOut(ctx context.Context, session string) error
	// FindShare returns the collection or report whose share page has this hash. If the page is unknown,
	// private, expired or of another kind, the error is a *Problem with status 404.
	FindShare(ctx context.Context, kind store.ShareKind, hash string) (store.Share, error)
	// RecordShareVisit stores that a visitor opens a share page now. It does not wait for the write.
	RecordShareVisit(ctx context.Context, share store.Share)
	// LastShareVisit returns the time at which a visitor last opened a share page. The result can be up
	// to store.ShareVisitInterval too early. It is nil for a page without visits and for another
	// organisation's page.
	LastShareVisit(ctx context.Context, id store.Identity, hash string) (*time.Time, error)
	// AccountGains returns the tracked videos of an account that gained the most views in a period, the highest gain first. Videos with unknown gains
	// are left out. If the account has too many videos for the period, tooMany is true. If the tier hides numbers, gains is empty.
	AccountGains(ctx context.Context, id store.Identity, account uuid.UUID, from, to store.Date) (gains []store.CollectionVideo, tooMany bool, err error)
	// CollectionAccounts returns the sums over the videos of each account in a collection, the account with the highest gain first. If query.WithPrevious
	// is true, it also returns the numbers of the previous period. query.ForReport must be false. If the tier hides numbers, there are no accounts, and
	// previous is nil.
	CollectionAccounts(ctx context.Context, id store.Identity, query store.CollectionTotalsQuery) (accounts []client.ReportAccount, previous *store.PreviousPeriod, err error)
	// TimesOfAdding returns when each of the videos or accounts with the given ids was added to a collection. kind is "video" or "account". It leaves out ids that were
	// not added to the collection. A video that is in the collection only through its account or a hashtag was not added.
	TimesOfAdding(ctx context.Context, id store.Identity, collection uuid.UUID, kind string, ids []uuid.UUID) (map[uuid.UUID]store.Instant, error)
	// CollectionSums returns the sums over the tracked videos of each collection, by the id of the collection. A collection without tracked
	// videos is not in the map. If the tier hides numbers, the map is nil.
	CollectionSums(ctx context.Context, id store.Identity) (map[uuid.UUID]store.CollectionSum, error)
	// Reports returns the reports of all collections of the organisation, the newest first. It also returns the reports of deleted collections.
	Reports(ctx context.Context, id store.Identity) ([]store.Report, error)
	// Report returns a report of the organisation without its document. If the organisation has no report with this id, the error is a *Problem with
	// status 404.
	Report(ctx context.Context, id store.Identity, report uuid.UUID) (store.Report, error)
	// CheckSharePassword checks a share page's password and returns a pass, which is a signed
	// cookie value. The error is a *Problem after a wrong password or too many wrong passwords.
	CheckSharePassword(ctx context.Context, share store.Share, password string) (pass string, err error)
	// HasSharePass returns true if pass was returned by CheckSharePassword for this share page and is still valid. A new password of the page makes
	// every pass invalid.
	HasSharePass(share store.Share, pass string) bool
	// SignThumbnail returns the signature in the address of a video's thumbnail, a small preview picture. externalID is the id of the video on
	// its platform.
	SignThumbnail(p link.Platform, externalID string) string
	// Thumbnail returns the stored thumbnail of a video, a JPEG. If no thumbnail is stored, or if the signature is wrong, the error is a
	// *Problem with status 404.
	Thumbnail(ctx context.Context, p link.Platform, externalID, signature string) ([]byte, error)
	// Do returns the API's response to a request. The request has the rights of identity.Token.
	// visitorRequest is the request that the browser sent for the page.
	Do(identity store.Identity, visitorRequest *http.Request, request APIRequest) (Response, error)
	// Operations returns the JSON of /status and the versions of the program and the API. visitorRequest is the
	// request that the browser sent for the page.
	Operations(visitorRequest *http.Request) (status []byte, version Version, err error)
	// FetchableLinks says which videos and accounts the running collectors can fetch, by platform and form of link. The result can be a few
	// seconds old.
	FetchableLinks(ctx context.Context) (queue.Fetchable, error)
	// TargetsWithStatus returns the videos and accounts that have the given fetch status, from all organisations. limit is the maximum
	// number of results.
	TargetsWithStatus(ctx context.Context, status store.FetchStatus, limit int) ([]queue.TargetStatus, error)
	// ErrorCodes returns all error codes of the API, sorted by status.
	ErrorCodes() []ErrorCode
	// FaultCodes returns the codes of faults in the member "errors" of error responses. They have no status and no title.
	FaultCodes() []ErrorCode
	// HistoryDays returns the maximum age, in days, of the history points that a tier shows.
	HistoryDays(tier store.Tier) int
	// HidesNumbers returns true if a tier hides numbers.
	HidesNumbers(tier store.Tier) bool
	// IsDataMadeUp returns true if the numbers in the database are made up by the sandbox.
	IsDataMadeUp() bool
}

// ErrorCode is an error code of the API.
type ErrorCode struct {
	Code    string
	Status  int // HTTP status
	Title   string
	Meaning string // text that says when the API returns this error code
}

// APIRequest is a request that a page sends to the API.
type APIRequest struct {
	Method         string
	Target         string // path and query
	Body           []byte // JSON; nil if the request has no body
	IfMatch        string // value of the header If-Match; "" if the request has none
	IdempotencyKey string // value of the header Idempotency-Key; "" if the request has none
}

// Response is a response of the API.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem is an error message that a page shows to the visitor.
type Problem struct {
	Status     int
	Code       string
	Title      string
	Detail     string
	Faults     []client.Fault // faults of a request that the API refused; empty for other problems
	RetryAfter time.Duration  // time after which the visitor can retry; 0 if it is not known
}

func (p *Problem) Error() string { return fmt.Sprintf("%d %s: %s", p.Status, p.Code, p.Detail) }
