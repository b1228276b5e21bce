package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/server/mcp"
	"github.com/reeltally/reeltally/store"
)

// Code identifies the kind of an error, so that programs can handle it. The meaning of a code never changes.
type Code string

// The codes of error responses. A fault in the member "errors" of an error response has one of these codes, or one of faultCodes.
const (
	CodeInvalidRequest       Code = "invalid_request"
	CodeURLNotEncoded        Code = "url_not_encoded"
	CodeInvalidURL           Code = "invalid_url"
	CodeUnsupportedPlatform  Code = "unsupported_platform"
	CodeUnsupportedLink      Code = "unsupported_link"
	CodeWrongKind            Code = "wrong_kind"
	CodeTokenMissing         Code = "token_missing"
	CodeTokenMalformed       Code = "token_malformed"
	CodeTokenMistyped        Code = "token_mistyped"
	CodeTokenUnknown         Code = "token_unknown"
	CodeTokenExpired         Code = "token_expired"
	CodeTokenRevoked         Code = "token_revoked"
	CodeScopeMissing         Code = "scope_missing"
	CodeHostNotAllowed       Code = "host_not_allowed"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeNotAcceptable        Code = "not_acceptable"
	CodeConflict             Code = "conflict"
	CodeCollectionCycle      Code = "collection_cycle"
	CodeCollectionTooDeep    Code = "collection_too_deep"
	CodeTooManyCollections   Code = "too_many_collections"
	CodeCollectionTooLarge   Code = "collection_too_large"
	CodeTooManyReports       Code = "too_many_reports"
	CodeTooManyTokens        Code = "too_many_tokens"
	CodeTooManyWebhooks      Code = "too_many_webhooks"
	CodeWebhookDisabled      Code = "webhook_disabled"
	CodePasswordRequired     Code = "password_required"
	CodePreconditionFailed   Code = "precondition_failed"
	CodeIdempotencyKeyInUse  Code = "idempotency_key_in_use"
	CodeIdempotencyKeyReused Code = "idempotency_key_reused"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeUnsupportedMedia     Code = "unsupported_media_type"
	CodeRateLimited          Code = "rate_limited"
	CodeIdempotencyStoreFull Code = "idempotency_store_full"
	CodeInternal             Code = "internal"
	CodeUnavailable          Code = "unavailable"
	CodeLinkUnresolved       Code = "link_unresolved"
)

// CodeInfo is the HTTP status and the description of an error code.
type CodeInfo struct {
	Code    Code
	Status  int
	Title   string
	Meaning string // sentences that say when the server answers with this code
}

// codes contains the HTTP status and the description of every error code, sorted by status.
var codes = [...]CodeInfo{
	{CodeInvalidRequest, 400, "Invalid request", "The request violates the contract; errors[] lists every fault."},
	{CodeURLNotEncoded, 400, "URL not encoded", "The path contains a link that is not percent-encoded, or that a proxy decoded."},
	{CodeInvalidURL, 400, "Invalid URL", "The value of a link is not a web address."},
	{CodeUnsupportedPlatform, 400, "Unsupported platform", "The link does not belong to a supported platform."},
	{CodeUnsupportedLink, 400, "Unsupported link", "The link belongs to a supported platform but is neither a video nor an account."},
	{CodeWrongKind, 400, "Wrong kind of link", "The operation needs the link of a video and got the link of an account, or the reverse."},
	{CodeTokenMissing, 401, "Token missing", "There is no Authorization header."},
	{CodeTokenMalformed, 401, "Malformed authorization", "The Authorization header does not consist of `Bearer` and a token of this server."},
	{CodeTokenMistyped, 401, "Mistyped token", "The token's checksum is wrong: the token was mistyped or cut off."},
	{CodeTokenUnknown, 401, "Unknown token", "The token is well formed, but this server does not know it."},
	{CodeTokenExpired, 401, "Expired token", "The token has expired."},
	{CodeTokenRevoked, 401, "Revoked token", "The token was revoked, or its organisation is being deleted."},
	{CodeScopeMissing, 403, "Scope missing", "The token lacks the scope that the operation needs."},
	{CodeHostNotAllowed, 403, "Host not allowed", "A request to /mcp over a loopback address names a host that is not this machine; only a trusted proxy may send such requests."},
	{CodeNotFound, 404, "Not found", "The path or the item does not exist, or the item belongs to another organisation."},
	{CodeMethodNotAllowed, 405, "Method not allowed", "The path does not support this method; the Allow header lists the methods it supports."},
	{CodeNotAcceptable, 406, "Not acceptable", "The header Accept does not allow any format of the operation. All operations have the format JSON; lists and histories also have CSV and XLSX."},
	{CodeConflict, 409, "Conflict", "The request conflicts with the current state of the data."},
	{CodeCollectionCycle, 409, "Collection cycle", "A collection cannot be its own parent, directly or through other collections."},
	{CodeCollectionTooDeep, 409, "Collection too deep", "Collections can be nested at most 16 levels deep."},
	{CodeTooManyCollections, 409, "Too many collections", "The organisation has reached its limit of collections. Delete some, or ask the operator for a higher limit."},
	{CodeCollectionTooLarge, 409, "Collection too large", "The collection has more videos than the limit (5,000, or fewer for a long period), or the collections have too many members. Or the report would have more than 75,000 points. Choose a smaller collection or a shorter period."},
	{CodeTooManyReports, 409, "Too many reports", "The organisation has 1,000 reports, which is the limit. Reports are never deleted."},
	{CodeTooManyTokens, 409, "Too many tokens", "The organisation has 1,000 tokens, which is the limit. Expired and revoked tokens also count. They are deleted 90 days after they expired or were revoked."},
	{CodeTooManyWebhooks, 409, "Too many webhooks", "The organisation has 20 webhooks, which is the limit. Delete one first."},
	{CodeWebhookDisabled, 409, "Webhook disabled", "Nothing can be sent to the webhook, because it is disabled. Enable it first."},
	{CodePasswordRequired, 409, "Password required", "A collection or report with the access `protected` needs a password. Set it in the same PATCH, or in an earlier one. A new collection has no password, so it cannot be protected."},
	{CodeIdempotencyKeyInUse, 409, "Idempotency key in use", "The first request with this Idempotency-Key is still running, or it was interrupted less than 15 seconds ago; Retry-After tells how long to wait."},
	{CodePreconditionFailed, 412, "Precondition failed", "If-Match does not name the current version: the item was changed after it was read, or it never had this ETag."},
	{CodeBodyTooLarge, 413, "Body too large", "The body is larger than 2 MiB."},
	{CodeUnsupportedMedia, 415, "Unsupported media type", "The body is not sent as application/json."},
	{CodeIdempotencyKeyReused, 422, "Idempotency key reused", "This Idempotency-Key belongs to a request with another body or path."},
	{CodeRateLimited, 429, "Rate limit reached", "Too many requests in this minute; Retry-After tells how long to wait."},
	{CodeIdempotencyStoreFull, 429, "Idempotency store full", "The organisation's Idempotency-Keys of the last 24 hours use all the space reserved for them. Requests without a key are still served."},
	{CodeInternal, 500, "Internal error", "The server failed; its log contains the cause with the request id."},
	{CodeUnavailable, 503, "Temporarily unavailable", "The database is unavailable or too busy, or the request took longer than the server allows; the same request may succeed later."},
	{CodeLinkUnresolved, 503, "Short link not resolved", "The short link could not be resolved now; the same request may succeed later."},
}

// Codes returns all error codes with their descriptions, sorted by HTTP status.
func Codes() []CodeInfo { return append([]CodeInfo(nil), codes[:]...) }

// FaultCode is the code of a fault in the member "errors" of an error response, and its meaning.
type FaultCode struct{ Code, Meaning string }

// faultCodes are the codes of single faults, which occur only in the list "errors" of an error response. Similar codes are next to each other.
var faultCodes = [...]FaultCode{
	{faultRequired, "A required member, parameter or body is missing."},
	{faultUnknownMember, "The operation does not have this member."},
	{faultUnknownParameter, "The operation does not have this query parameter."},
	{faultDuplicateMember, "A member occurs twice in an object."},
	{faultRepeated, "A query parameter with one value is given more than once."},
	{faultType, "The value has another type, or is a number that its type cannot hold."},
	{"nullable", "The value is null, which is not allowed."},
	{faultEmpty, "The parameter has no value."},
	{"enum", "The value is not one of the allowed values."},
	{faultFormat, "The value is not a UUID, date, time or address."},
	{"pattern", "The text does not have the required form."},
	{"minimum", "The number is too small."},
	{"maximum", "The number is too large."},
	{"min_length", "The text is too short or empty."},
	{faultMaxLength, "The text is too long."},
	{"min_items", "The array has too few entries."},
	{faultMaxItems, "The array has too many entries."},
	{faultMaxWords, "The text has too many words."},
	{faultMaxValues, "The body has too many values."},
	{faultRange, "A date or time is too early or too late, or after the end of its range."},
	{faultConflict, "The parameter cannot be used together with the other parameters."},
	{"invalid_cursor", "The cursor is not from this list with these filters and this order."},
	{"cursor_expired", "Events after this cursor no longer exist. Begin again without a cursor, and read the videos once."},
	{faultCharacter, "A text contains a character that is not allowed there."},
	{faultEncoding, "A text is not valid UTF-8, has an invalid escape, or contains a NUL character."},
	{faultSyntax, "The body is not JSON or is nested too deeply, or a parameter is not percent-encoded correctly."},
	{faultTrailingText, "There is text after the JSON value."},
}

// FaultCodes returns the codes that only occur in the member "errors" of error responses. A fault can also have one of Codes.
func FaultCodes() []FaultCode { return append([]FaultCode(nil), faultCodes[:]...) }

// info returns the HTTP status and the description of an error code. For an unknown code, it returns the description of CodeInternal.
func (c Code) info() CodeInfo {
	for _, i := range codes {
		if i.Code == c {
			return i
		}
	}
	return CodeInternal.info()
}

// Error is an error that is sent to the caller as an error response in JSON (RFC 9457, "problem details").
type Error struct {
	Code       Code
	Detail     string // sentences that tell the caller what is wrong and what is allowed
	Faults     []api.Fault
	RetryAfter time.Duration // time after which the caller can retry; 0 if the response has no Retry-After header
	Cause      error         // underlying error, which is logged but not sent to the caller; can be nil
}

func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

func (e *Error) Unwrap() error { return e.Cause }

// problem returns an Error with the given code. Its Detail is formatted as by fmt.Sprintf.
func problem(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// maxFaults is the maximum number of faults that an error response lists in its member "errors".
const maxFaults = 1000

// invalidRequest returns an error response with the code invalid_request that lists the faults of the request. There must be at least one
// fault.
func invalidRequest(faults ...api.Fault) *Error {
	e := &Error{Code: CodeInvalidRequest, Faults: faults, Detail: withFullStop(faults[0].Detail)}
	if len(faults) > 1 {
		const shown = 3
		details := make([]string, 0, shown)
		for _, f := range faults[:min(shown, len(faults))] {
			details = append(details, f.Detail)
		}
		e.Detail = withFullStop(fmt.Sprintf("%d faults: %s", len(faults), strings.Join(details, "; ")))
		if len(faults) > shown {
			e.Detail += " The member \"errors\" lists more faults."
		}
		e.Faults = faults[:min(maxFaults, len(faults))]
	}
	return e
}

// withFullStop returns s with a full stop at its end. It adds the full stop only if s has none.
func withFullStop(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

// toSentence returns s with a capital letter at its beginning and a full stop at its end. The first letter of s must be in ASCII.
func toSentence(s string) string { return withFullStop(strings.ToUpper(s[:1]) + s[1:]) }

// bodyFault returns a fault in the request body. valuePointer is the JSON pointer of the invalid value.
func bodyFault(valuePointer, code, format string, args ...any) api.Fault {
	return api.Fault{Location: api.FaultLocationBody, Pointer: &valuePointer, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// namedFault returns a fault in the path, query or header parameter called name. The location says which of the three it is.
func namedFault(location api.FaultLocation, name, code, format string, args ...any) api.Fault {
	return api.Fault{Location: location, Name: &name, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// queryFault returns a fault in the query parameter called name.
func queryFault(name, code, format string, args ...any) api.Fault {
	return namedFault(api.FaultLocationQuery, name, code, format, args...)
}

// internalDetail is the text for the caller in every response with the code "internal". The cause of the error is only logged.
const internalDetail = "The server failed to answer. Quote the request id when you report this."

// unavailableRetryAfter is the value of the header Retry-After in responses with status 503.
const unavailableRetryAfter = 5 * time.Second

// limitCodes has the code of the error response for each kind of limit.
var limitCodes = map[store.LimitKind]Code{
	store.LimitCollections: CodeTooManyCollections,
	store.LimitReports:     CodeTooManyReports,
	store.LimitTokens:      CodeTooManyTokens,
	store.LimitWebhooks:    CodeTooManyWebhooks,
	store.LimitTotals:      CodeCollectionTooLarge,
}

// toError converts an error of a request into the error response. An error of an unknown type gets
// the code "internal", and its text is only logged.
func toError(err error) *Error {
	var (
		known    *Error
		failed   *linkFailure
		missing  *store.NotFoundError
		limit    *store.LimitError
		tooLarge *http.MaxBytesError
		fromEcho *echo.HTTPError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &failed):
		return failed.problem()
	case errors.As(err, &missing):
		return &Error{Code: CodeNotFound, Cause: err,
			Detail: fmt.Sprintf("Your organisation has no %s %s.", missing.Kind, strings.Join(missing.Names, ", "))}
	case errors.As(err, &limit):
		return &Error{Code: limitCodes[limit.Kind], Cause: err, Detail: toSentence(limit.Text)}
	case errors.Is(err, store.ErrWebhookDisabled):
		return &Error{Code: CodeWebhookDisabled, Cause: err, Detail: "The webhook is disabled. Enable it with PATCH /webhooks/{webhook_id} first."}
	case errors.As(err, &tooLarge):
		return problem(CodeBodyTooLarge, "The body is larger than the %d bytes allowed.", tooLarge.Limit)
	case errors.Is(err, store.ErrOrganisationDeleted): // the deletion began after the request was authenticated
		return &Error{Code: CodeTokenRevoked, Cause: err, Detail: "The organisation of the token is being deleted."}
	case errors.Is(err, store.ErrDuplicate):
		return &Error{Code: CodeConflict, Detail: "An item with this name or id exists already.", Cause: err}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return unavailableError(err)
	case errors.As(err, &fromEcho):
		return fromEchoError(fromEcho)
	}
	return &Error{Code: CodeInternal, Cause: err, Detail: internalDetail}
}

// unavailableError returns an error response with status 503. The cause is only logged, for example that the database is down.
func unavailableError(cause error) *Error {
	return &Error{Code: CodeUnavailable, Cause: cause, RetryAfter: unavailableRetryAfter,
		Detail: fmt.Sprintf("The server cannot answer right now. Try again in %s.", inSeconds(unavailableRetryAfter))}
}

// fromEchoError converts an error of the web framework echo, or of the generated code that decodes requests, into the error response.
func fromEchoError(err *echo.HTTPError) *Error {
	switch err.Code {
	case http.StatusBadRequest:
		// The request passed the validation, but the generated code could not decode it. That is a bug in the server, so the cause is
		// logged.
		return &Error{Code: CodeInvalidRequest, Detail: "The server could not decode the request.", Cause: err}
	}
	return &Error{Code: CodeInternal, Cause: err, Detail: internalDetail}
}

// failureLevel returns the level at which to log that a request failed. It is the level debug if the caller closed the connection, because that is not
// an error of the server. ctx is the context of the request. If writing to the closed connection fails, net/http cancels ctx before Write returns.
func failureLevel(ctx context.Context) slog.Level {
	if errors.Is(ctx.Err(), context.Canceled) {
		return slog.LevelDebug
	}
	return slog.LevelError
}

// writeError is the error handler of the web framework echo. It logs the cause of err and sends the error response.
func (s *Server) writeError(err error, c echo.Context) {
	r, w := c.Request(), c.Response()
	if w.Committed {
		s.logger.Log(r.Context(), failureLevel(r.Context()), "request failed after the response was started", "request_id", requestID(c), "error", err)
		return
	}
	switch {
	case errors.Is(err, echo.ErrNotFound):
		err = unknownPathError(c)
	case errors.Is(err, echo.ErrMethodNotAllowed):
		err = problem(CodeMethodNotAllowed, "The path %s does not support the method %s; it supports %s.", instancePath(c), words.Quote(r.Method), w.Header().Get(echo.HeaderAllow))
	}
	e := toError(err)
	ctxErr := r.Context().Err()
	if e.Code == CodeInternal && ctxErr != nil { // the caller closed the connection, or the request took too long
		e = unavailableError(err)
	}
	info := e.Code.info()
	if e.Cause != nil {
		level := slog.LevelDebug
		if info.Status >= http.StatusInternalServerError {
			level = failureLevel(r.Context())
		}
		s.logger.Log(r.Context(), level, "request failed", "request_id", requestID(c), "code", e.Code, "error", withoutNames(e.Cause))
	}
	h := w.Header()
	if e.RetryAfter > 0 {
		h.Set(echo.HeaderRetryAfter, strconv.Itoa(wholeSeconds(e.RetryAfter)))
	}
	if info.Status == http.StatusUnauthorized {
		h.Set(echo.HeaderWWWAuthenticate, challengeHeader(e))
	}
	if s.showErrorPage(c, e) {
		return
	}
	body, encodeErr := e.encode(instancePath(c), requestID(c))
	if encodeErr != nil {
		s.logger.ErrorContext(r.Context(), "cannot encode the error response", "request_id", requestID(c), "error", encodeErr)
	}
	if err := c.Blob(info.Status, problemType, body); err != nil {
		s.logger.DebugContext(r.Context(), "cannot send the error response", "request_id", requestID(c), "error", err)
	}
}

// problemType is the Content-Type of error responses.
const problemType = "application/problem+json"

// encode returns the body of the error response. The parameter instance is the path of the request.
func (e *Error) encode(instance, requestID string) ([]byte, error) {
	info := e.Code.info()
	body, err := json.Marshal(api.Problem{
		Type: "/errors#" + string(info.Code), Title: info.Title, Status: int32(info.Status), //nolint:gosec // no overflow, because an HTTP status has three digits
		Detail: e.Detail, Error: e.Detail, Instance: instance, Code: string(info.Code), RequestID: requestID,
		Errors: e.Faults,
	})
	return append(body, '\n'), err
}

// withoutNames returns the error to write to the log. It removes the names of the missing objects
// from a *store.NotFoundError, because a name can be a link.
func withoutNames(err error) error {
	if missing, ok := errors.AsType[*store.NotFoundError](err); ok {
		return fmt.Errorf("no such %s", missing.Kind)
	}
	return err
}

// maxInstance is the maximum length, in bytes, of the path that an error response repeats in its member "instance".
const maxInstance = 10_000

// instancePath returns the member "instance" of an error response: the path of the request. If the
// path is longer than maxInstance, the result is the route, such as /videos/:ad_id. If an MCP tool call has faults, the result is mcpPath,
// because an argument that the path needs can be missing.
func instancePath(c echo.Context) string {
	if call, ok := mcp.CallFrom(c.Request().Context()); ok && len(call.Faults) > 0 {
		return mcpPath
	}
	if path := c.Request().URL.EscapedPath(); len(path) <= maxInstance {
		return path
	}
	return cmp.Or(c.Path(), "/")
}

// challengeHeader returns the value of the header WWW-Authenticate for a response with status 401.
func challengeHeader(e *Error) string {
	const realm = `Bearer realm="ReelTally"`
	// RFC 6750, section 3.1, recommends no error code if the request has no token.
	if e.Code == CodeTokenMissing {
		return realm
	}
	return fmt.Sprintf(`%s, error="invalid_token", error_description="%s"`, realm, describeInASCII(e.Detail))
}

// describeInASCII replaces each character that the parameter error_description of a challenge does not allow. It returns the new text.
func describeInASCII(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r == '\\':
			return '/'
		case r < ' ' || r > '~':
			return '?'
		}
		return r
	}, strings.ReplaceAll(text, "…", "..."))
}

// wholeSeconds returns d in seconds, rounded up and at least 1, so that a caller that waits this long does not retry too early.
func wholeSeconds(d time.Duration) int {
	return max(1, int(math.Ceil(d.Seconds())))
}

// inSeconds returns d in whole seconds as text, such as "1 second". It rounds d in the same way as wholeSeconds.
func inSeconds(d time.Duration) string { return countWithNoun(wholeSeconds(d), "second") }

// inMinutes returns d as text for a reader of a page, such as "9 minutes". It rounds d up. A time of at most two minutes is given in seconds.
func inMinutes(d time.Duration) string {
	if d <= 2*time.Minute {
		return inSeconds(d)
	}
	return countWithNoun(int(math.Ceil(d.Minutes())), "minute")
}

// countWithNoun returns a number with its noun in the singular or plural, such as "2048 characters".
func countWithNoun(n int, noun string) string {
	// The number has no thousands separators, so that programs can read it.
	return strconv.Itoa(n) + " " + english.PluralWord(n, noun, "")
}

// unknownPathError returns the error for a request that matches no route.
func unknownPathError(c echo.Context) *Error {
	if hint := unencodedLinkError(c.Request()); hint != nil {
		return hint
	}
	path := instancePath(c)
	switch {
	case path == "/": // the path of the request is too long to be named
		return problem(CodeNotFound, "This path does not exist. /docs lists all operations.")
	case strings.HasSuffix(path, "/"):
		return problem(CodeNotFound, "The path %s does not exist. Check the slash at its end: perhaps an id is missing after it, or there must be no slash. /docs lists all operations.", path)
	}
	return problem(CodeNotFound, "The path %s does not exist. /docs lists all operations.", path)
}

// unencodedLinkError returns an error if the path contains a link that is not percent-encoded, and nil
// otherwise. It must be called only for a request that matches no route.
func unencodedLinkError(r *http.Request) *Error {
	resource, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !strings.Contains(rest, "/") || !strings.Contains(rest, ".") {
		return nil
	}
	switch resource {
	case "videos", "accounts":
		return problem(CodeURLNotEncoded, "The link in this path is not percent-encoded. Encode it with your language's component encoder, so that / becomes %%2F. "+
			"If you sent an encoded link, a proxy has decoded it: send GET /%s?link=… instead, or use the id.", resource)
	}
	return nil
}
