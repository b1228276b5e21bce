package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/seed"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

type seedCommand struct {
	boot.Logging
	operator
	Orgs   int        `default:"1" placeholder:"N" help:"How many organisations are made, of tier premium; their ids follow from the arguments and the day."`
	Org    identifier `placeholder:"ID" help:"Fill this organisation, which has to be empty, instead of making any."`
	Videos int        `default:"1000" placeholder:"N" help:"How many videos each gets."`
	Days   int32      `default:"90" placeholder:"N" help:"Over how many days up to today their history goes, 1 to 730: a point a day for 90 days, a week before."`
	JSON   bool       `name:"json" help:"Answer with JSON: {\"organisation_id\"} a line."`
}

// Help says what kong prints below the flags.
func (seedCommand) Help() string {
	return "The numbers are those of the sandbox's world: start the server with REELTALLY_SANDBOX=true, so that it says so. " +
		"The same arguments on the same day make the same data, identifiers included. A seed that was broken off goes on where it stopped " +
		"when it is started again with the same arguments on the same day; otherwise an organisation that has videos is refused."
}

// perAccount is how many of its videos are taken of an account: as many as tracking it by default would take.
const perAccount = 30

// Run fills the organisations, one after the other, and prints their ids.
func (c *seedCommand) Run(ctx context.Context, p boot.Process) error {
	plan := seed.Plan{Videos: c.Videos, Days: c.Days, PerAccount: perAccount, Platforms: link.Platforms, Today: store.DateOf(time.Now())}
	if err := plan.Check(); err != nil {
		return boot.UsageError{Err: fmt.Errorf("--videos, --days: %w", err)}
	}
	if c.Orgs < 1 || (c.Org.UUID != uuid.Nil && c.Orgs != 1) {
		return boot.UsageError{Err: fmt.Errorf("--orgs is %d; it must be 1 or more, and is left out with --org", c.Orgs)}
	}
	return c.with(ctx, p, func(st *store.Store) error {
		orgs, err := c.organisations(ctx, st, plan)
		if err != nil {
			return err
		}
		logger := c.Logger(p.Stderr)
		world := newSandbox(0, logger).World()
		show := newProgress(p.Stderr, logger, "seed", "videos", int64(len(orgs)*c.Videos))
		for i, id := range orgs {
			err = seed.Fill(ctx, st.Org(id), world, plan, func(done seed.Progress) { show.set(ctx, int64(i*c.Videos+done.Videos), done.Points) })
			if err != nil {
				err = fmt.Errorf("organisation %s: %w", id, err)
				break
			}
			show.next()
		}
		if show.end(ctx); err != nil {
			return err
		}
		return c.print(p, orgs)
	})
}

func (c *seedCommand) print(p boot.Process, orgs []uuid.UUID) error {
	for _, id := range orgs {
		var err error
		if c.JSON {
			err = writeJSON(p.Stdout, struct {
				ID uuid.UUID `json:"organisation_id"`
			}{id})
		} else {
			_, err = fmt.Fprintf(p.Stdout, "Organisation %s has %d videos with %d days of history.\n", id, c.Videos, c.Days)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// organisations returns the ids of those to be filled, made where they are not there yet.
func (c *seedCommand) organisations(ctx context.Context, st *store.Store, plan seed.Plan) ([]uuid.UUID, error) {
	if c.Org.UUID != uuid.Nil {
		_, err := st.Organisation(ctx, c.Org.UUID)
		return []uuid.UUID{c.Org.UUID}, err
	}
	ids := make([]uuid.UUID, c.Orgs)
	from := (plan.Today - store.Date(plan.Days)).Time()
	for i := range ids {
		at := from.Add(time.Duration(i) * time.Second)
		ids[i] = seed.ID(at, sha256.Sum256(fmt.Appendf(nil, "seed %d %d %d %s", i, plan.Videos, plan.Days, plan.Today)))
		_, err := backfill.LoadOrganisation(ctx, st, store.Organisation{ID: ids[i], Name: fmt.Sprintf("Seed %d", i+1), Tier: store.TierPremium,
			Subscription: store.SubscriptionActive, CreatedAt: store.InstantOf(at)})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
