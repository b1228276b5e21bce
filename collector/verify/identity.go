package verify

import (
	"time"

	"github.com/reeltally/reeltally/collector/source"
)

const (
	// handleTrusted is how long after the last fetch of an account its handle is assumed to be unchanged, if no id can confirm the account.
	handleTrusted = 3 * 24 * time.Hour
	// longestLag is the maximum age of the numbers in a result with Result.Lags. Such a result comes from a source whose numbers can be old.
	longestLag = 10 * 24 * time.Hour
)

// Account returns the result r if it is about the requested account. If another account has the handle now, Account returns a result of
// class OtherOwner. If another account may have the handle, it returns a result of class Missing. asked is the requested target.
func Account(asked source.Target, r source.Result, now time.Time) source.Result {
	switch {
	case r.Account == nil:
	case source.IsOtherAccount(asked, r.Account):
		return source.HandleReused(asked, r.Sandbox)
	case incomparableIDs(asked, r.Account) && (asked.FetchedAt == nil || now.Sub(asked.FetchedAt.Time()) > handleTrusted):
		return source.Result{Target: asked, Class: source.Missing, Sandbox: r.Sandbox,
			Detail: "no id shows whether the handle " + asked.Handle + " still belongs to the account: this source has another kind of id"}
	}
	return r
}

// incomparableIDs returns true if both the target and the facts have ids, but no ids of the same kind.
func incomparableIDs(t source.Target, f *source.AccountFacts) bool {
	common := t.AccountID != "" && f.ID != nil || t.SourceID != "" && f.SourceID != nil
	return !common && (t.AccountID != "" || t.SourceID != "") && (f.ID != nil || f.SourceID != nil)
}

// IsOlder returns true if a result is probably older than the stored counts. Some sources give counts that are hours old (Result.Lags). Such
// a result counts as older if it has fewer views than stored. If the stored counts were fetched more than longestLag ago, IsOlder returns
// false, because the number of views then really fell.
func IsOlder(t source.Target, r source.Result, now time.Time) bool {
	f := r.Facts
	return r.Lags && f != nil && t.Views != nil && f.Views != nil && *f.Views < *t.Views && t.FetchedAt != nil && now.Sub(t.FetchedAt.Time()) < longestLag
}
