package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oapi-codegen/nullable"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/server/web"
	"github.com/reeltally/reeltally/store"
)

// The dashboard uses the functions in this file to show share pages. These functions find a collection or report by the hash of its share page, and
// check the password of the page.

// shareViewLimit is the maximum number of requests for share pages from one IP address in a minute. Requests with a wrong hash or a wrong
// password are also counted.
var shareViewLimit = addressLimit{"share_views", 120, "requests for share pages"}

// maxShareReads is the maximum number of GET requests in a minute that all share pages of an organisation together can send to one operation of
// the API. Requests of the organisation's programs are counted separately.
const maxShareReads = 600

// wrongPasswordLimit limits the number of wrong passwords that visitors can send for a share page.
type wrongPasswordLimit struct {
	attempts int64 // maximum number of wrong passwords in a period of the length window
	window   time.Duration
}

var (
	wrongPasswordsPerAddress = wrongPasswordLimit{10, 10 * time.Minute} // for wrong passwords from one IP address for one share page
	wrongPasswordsPerPage    = wrongPasswordLimit{100, time.Hour}       // for wrong passwords from all IP addresses for one share page
)

// passwordRequiredError returns the error response for access "protected" without a password. kind is what the caller wants to protect.
func passwordRequiredError(kind string) *Error {
	e := problem(CodePasswordRequired, "A protected %s needs a password: send a password of at least 8 characters in the same request, or set a password in an earlier request.", kind)
	e.Faults = []api.Fault{bodyFault("/access", string(e.Code), "%s", e.Detail)}
	return e
}

// maxDisplaySettings is the maximum size of the display_settings of a collection or report, in bytes. It keeps lists small, because each entry of a
// list contains its settings.
const maxDisplaySettings = 16 << 10

// readSharing converts the members access, share_expires_at and display_settings of a request to a change for the database. For the password, see
// hashPassword.
func readSharing(access *api.Access, expiresAt nullable.Nullable[time.Time], settings json.RawMessage) (store.SharingPatch, error) {
	patch := store.SharingPatch{DisplaySettings: settings}
	if len(settings) > maxDisplaySettings {
		return patch, invalidRequest(bodyFault("/display_settings", faultMaxLength, "display_settings must have at most %d bytes, not %d", maxDisplaySettings, len(settings)))
	}
	if access != nil {
		patch.Access = new(store.Access(*access))
	}
	if expiresAt.IsSpecified() {
		patch.ShareExpiry = &store.Change[store.Instant]{}
		if !expiresAt.IsNull() {
			patch.ShareExpiry.To = new(store.InstantOf(expiresAt.MustGet()))
		}
	}
	return patch, nil
}

// hashPassword returns the hash of the password of a request, or nil if the request has no password. Hashing is slow, so it must not run for an unknown
// collection or report: hashPassword first calls requireItem, which returns an error if the collection or report is unknown.
func hashPassword(ctx context.Context, password *string, requireItem func() error) (*string, error) {
	if password == nil {
		return nil, nil //nolint:nilnil // a request without a password does not change the password
	}
	if err := requireItem(); err != nil {
		return nil, err
	}
	hash, err := store.HashPassword(ctx, *password)
	return &hash, err
}

// FindShare returns the public or protected collection or report whose share page has this hash and has not expired.
func (b pageBackend) FindShare(ctx context.Context, kind store.ShareKind, hash string) (store.Share, error) {
	if err := b.s.tokens.addressLimits.countRequest(ctx, shareViewLimit, clientAddress(ctx)); err != nil {
		return store.Share{}, b.problem(ctx, err)
	}
	share, err := b.s.store.Share(ctx, kind, hash)
	return share, b.problem(ctx, err)
}

// RecordShareVisit stores that a visitor opens a share page now. It does not wait for the write.
func (b pageBackend) RecordShareVisit(ctx context.Context, share store.Share) {
	b.s.background.startWrite(ctx, "last visit of a share page",
		func(ctx context.Context) error { return b.s.store.SaveShareVisit(ctx, share) }, string(share.Kind)+"_id", share.ItemID())
}

// LastShareVisit returns when a visitor last opened a share page. The result is nil if the page had
// no visitor or does not belong to the organisation.
func (b pageBackend) LastShareVisit(ctx context.Context, identity store.Identity, hash string) (*time.Time, error) {
	var opened *time.Time
	err := b.readInSlot(ctx, identity, func(o *store.Org) error {
		at, err := o.LastShareVisit(ctx, hash)
		if at != nil {
			opened = new(at.Time())
		}
		return err
	})
	return opened, err
}

// CheckSharePassword returns a pass if the password of a protected share page is correct. The pass
// is a signed text that expires after web.ShareSessionLife.
func (b pageBackend) CheckSharePassword(ctx context.Context, share store.Share, password string) (pass string, err error) {
	pageKey := "share_guesses:" + *share.Hash
	// The limit of the address comes first. An attempt that this limit refuses does not count for the page, so one address cannot use up the limit of
	// the page.
	limits := []struct {
		key string
		wrongPasswordLimit
	}{{pageKey + ":" + clientAddress(ctx), wrongPasswordsPerAddress}, {pageKey, wrongPasswordsPerPage}}
	// Count the attempt before the check, so that concurrent attempts cannot exceed the limits.
	for _, limit := range limits {
		quota, err := b.s.rates.Count(ctx, limit.key, 1, limit.attempts, limit.window)
		if err == nil && quota.Exceeded {
			e := problem(CodeRateLimited, "There were too many wrong passwords. Try again in %s.", inMinutes(quota.Reset))
			e.RetryAfter = quota.Reset
			err = e
		}
		if err != nil {
			return "", b.problem(ctx, err)
		}
	}
	matches, err := store.PasswordMatches(ctx, password, *share.PasswordHash)
	if err != nil {
		return "", b.problem(ctx, err)
	}
	if !matches {
		return "", &web.Problem{Status: http.StatusForbidden, Code: "wrong_password", Title: "Wrong password", Detail: "This is not the password of the page. Upper and lower case matter."}
	}
	// The password is correct, so subtract the attempt again.
	for _, limit := range limits {
		if _, err := b.s.rates.Count(ctx, limit.key, -1, limit.attempts, limit.window); err != nil {
			return "", b.problem(ctx, err)
		}
	}
	expiry := strconv.FormatInt(b.s.now().Add(web.ShareSessionLife).Unix(), 10)
	return expiry + "." + b.signSharePass(share, expiry), nil
}

// HasSharePass returns true if CheckSharePassword returned this pass for the share page, and the
// pass is still valid.
func (b pageBackend) HasSharePass(share store.Share, pass string) bool {
	expiry, signature, _ := strings.Cut(pass, ".")
	seconds, err := strconv.ParseInt(expiry, 10, 64)
	return err == nil && b.s.now().Unix() < seconds && hmac.Equal([]byte(signature), []byte(b.signSharePass(share, expiry)))
}

// signSharePass returns the signature of a pass for a share page. expiryText is the Unix time when
// the pass ends, in decimal digits.
func (b pageBackend) signSharePass(share store.Share, expiryText string) string {
	// The signature covers the hash of the password. So a new password makes all earlier passes invalid.
	parts := []string{"share pass", *share.Hash, *share.PasswordHash, expiryText}
	// The signature also covers how often the page was opened again after it was closed. So each reopening makes all earlier passes invalid. The number 0
	// is not signed, so that passes from older program versions, which did not sign this number, stay valid.
	if share.Reopened > 0 {
		parts = append(parts, strconv.FormatInt(share.Reopened, 10))
	}
	mac := hmac.New(sha256.New, b.s.cursorKey)
	for _, part := range parts {
		_, _ = mac.Write([]byte(part + "\x00")) // the signed texts contain no NUL, so NUL can separate them
	}
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
