package collector

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// whose passes an answer for an account on unless it is, or may be, of somebody else who has the handle now.
func whose(t queue.Target, asked Target, r Result, now time.Time) Result {
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
func (c *Collector) acknowledge(ctx context.Context, claim queue.Claim, outcomes []ingest.Outcome) error {
	var lost []ingest.AccountOutcome
	outcomes = slices.DeleteFunc(outcomes, func(o ingest.Outcome) bool {
		if o.HandleLost {
			lost = append(lost, ingest.AccountOutcome{Outcome: o})
		}
		return o.HandleLost
	})
	return errors.Join(c.writer.Acknowledge(ctx, claim, claim.At, outcomes), c.writer.AcknowledgeAccounts(ctx, claim, claim.At, lost))
}
