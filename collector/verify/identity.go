package verify

import (
	"time"

	"github.com/reeltally/reeltally/collector/source"
)

const (
	// handleTrusted is how long after a fetch an account's handle is trusted if no id can confirm it.
	handleTrusted = 3 * 24 * time.Hour
	// longestLag is how old the numbers of a lagging source can be.
	longestLag = 10 * 24 * time.Hour
)

// Account returns the result unless its account is, or may be, another one that has taken over the handle. asked is the target as it was
// asked for.
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

// incomparableIDs returns true if both the target and the facts have ids, but none of the same kind.
func incomparableIDs(t source.Target, f *source.AccountFacts) bool {
	common := t.AccountID != "" && f.ID != nil || t.SourceID != "" && f.SourceID != nil
	return !common && (t.AccountID != "" || t.SourceID != "") && (f.ID != nil || f.SourceID != nil)
}

// IsOlder returns true if a lagging source's facts are from before the last counts written. Counts that are older than the longest
// lag are not compared: then fewer views are news.
func IsOlder(t source.Target, r source.Result, now time.Time) bool {
	f := r.Facts
	return r.Lags && f != nil && t.Views != nil && f.Views != nil && *f.Views < *t.Views && t.FetchedAt != nil && now.Sub(t.FetchedAt.Time()) < longestLag
}
