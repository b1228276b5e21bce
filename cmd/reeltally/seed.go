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
	databaseCommand
	Orgs   int    `default:"1" placeholder:"N" help:"Number of organisations to create, with tier premium. Their ids depend on the arguments and the day."`
	Org    string `placeholder:"NAME|ID" help:"Fill this organisation, which must be empty, instead of creating organisations."`
	Videos int    `default:"1000" placeholder:"N" help:"Number of videos in each organisation."`
	Days   int32  `default:"90" placeholder:"N" help:"Length of the histories in days up to today, 1 to 730. The last 90 days have daily points, earlier days weekly ones."`
	JSON   bool   `name:"json" help:"Print JSON, one object a line: {\"organisation_id\"}."`
}

// Help returns the text that --help shows below the summary of the command.
func (seedCommand) Help() string {
	return "The data comes from the sandbox. Use a new database or one with made-up data: a database with real numbers is refused. " +
		"The same arguments on the same day create the same data, with the same ids. " +
		"To resume an interrupted seed, run the same command again on the same day. A seed with other arguments or on another day refuses an organisation that already has videos."
}

// videosPerAccount is the maximum number of seeded videos of one account. It equals the number of videos of an account that ReelTally
// tracks by default.
const videosPerAccount = 30

// Run fills the organisations one after the other and prints their ids.
func (c *seedCommand) Run(ctx context.Context, p boot.Process) error {
	plan := seed.Plan{Videos: c.Videos, Days: c.Days, PerAccount: videosPerAccount, Platforms: link.Platforms, Today: store.DateOf(time.Now())}
	if err := plan.Check(); err != nil {
		return boot.UsageError{Err: fmt.Errorf("invalid --videos or --days: %w", err)}
	}
	if c.Orgs < 1 || (c.Org != "" && c.Orgs != 1) {
		return boot.UsageError{Err: fmt.Errorf("--orgs is %d; it must be 1 or more and cannot be combined with --org", c.Orgs)}
	}
	return c.withNewStore(ctx, p, func(st *store.Store) error {
		// Check the kind of the data first, so that a refused seed creates no organisations.
		kind, err := st.DataKind(ctx)
		if err != nil {
			return err
		}
		if kind == store.RealData {
			return &store.DataKindError{Have: kind, New: store.MadeUpData}
		}
		orgs, err := c.findOrCreateOrganisations(ctx, st, plan)
		if err != nil {
			return err
		}
		logger := c.Logger(p.Stderr)
		world := newSandbox(0, logger).World()
		bar := newProgress(p.Stderr, logger, "seed", "videos", int64(len(orgs)*c.Videos))
		for i, id := range orgs {
			err = seed.Run(ctx, st.Org(id), world, plan, func(done seed.Progress) { bar.showDone(ctx, int64(i*c.Videos+done.Videos), done.Points) })
			if err != nil {
				err = fmt.Errorf("cannot fill organisation %s: %w", id, err)
				break
			}
			bar.startNextOrganisation()
		}
		if bar.finish(ctx); err != nil {
			return err
		}
		return c.printOrganisations(p, orgs)
	})
}

// printOrganisations prints one line for each filled organisation: a JSON object if the flag --json is set, and text otherwise.
func (c *seedCommand) printOrganisations(p boot.Process, orgs []uuid.UUID) error {
	for _, id := range orgs {
		var err error
		if c.JSON {
			err = writeJSON(p.Stdout, struct {
				ID uuid.UUID `json:"organisation_id"`
			}{id})
		} else {
			_, err = fmt.Fprintf(p.Stdout, "Organisation %s has %s with %s of history.\n", id, numberWithNoun(c.Videos, "video"), numberWithNoun(c.Days, "day"))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// findOrCreateOrganisations returns the ids of the organisations to fill. Without the flag --org,
// it finds or creates as many organisations as --orgs says.
func (c *seedCommand) findOrCreateOrganisations(ctx context.Context, st *store.Store, plan seed.Plan) ([]uuid.UUID, error) {
	if c.Org != "" {
		org, err := findOrganisation(ctx, st, c.Org)
		return []uuid.UUID{org.ID}, err
	}
	ids := make([]uuid.UUID, c.Orgs)
	from := (plan.Today - store.Date(plan.Days)).Time()
	for i := range ids {
		at := from.Add(time.Duration(i) * time.Second)
		ids[i] = seed.ID(at, sha256.Sum256(fmt.Appendf(nil, "seed %d %d %d %s", i, plan.Videos, plan.Days, plan.Today)))
		_, err := backfill.CreateOrganisation(ctx, st, store.Organisation{ID: ids[i], Name: fmt.Sprintf("Seed %d", i+1), Tier: store.TierPremium,
			Subscription: store.SubscriptionActive, CreatedAt: store.InstantOf(at)})
		if err != nil {
			return nil, err
		}
	}
	return ids, nil
}
