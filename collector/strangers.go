package collector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/reeltally/reeltally/store"
)

// whose passes an answer for an account on unless it is, or may be, of somebody else who has the handle now.
func whose(t store.Target, asked Target, r Result, now time.Time) Result {
	switch {
	case r.Account == nil:
	case asked.IsStranger(r.Account):
		return asked.Stranger(r.Sandbox)
	case asked.knowsOtherIDs(r.Account) && (t.FetchedAt == nil || now.Sub(t.FetchedAt.Time()) > handleLife):
		return Result{Target: asked, Class: Missing, Sandbox: r.Sandbox, Detail: "nothing tells whether the handle " + asked.Handle + " is still the account's: this source has another kind of id for it"}
	}
	return r
}

// acknowledge writes what no source could answer.
func (c *Collector) acknowledge(ctx context.Context, claim store.Claim, outcomes []store.Outcome) error {
	var lost []store.AccountOutcome
	outcomes = slices.DeleteFunc(outcomes, func(o store.Outcome) bool {
		if o.HandleLost {
			lost = append(lost, store.AccountOutcome{Outcome: o})
		}
		return o.HandleLost
	})
	return errors.Join(store.NewWriter(c.store).Acknowledge(ctx, claim, claim.At, outcomes), store.NewWriter(c.store).AcknowledgeAccounts(ctx, claim, claim.At, lost))
}
