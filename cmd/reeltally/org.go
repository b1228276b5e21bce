package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/store"
)

type orgCommands struct {
	Create          createOrgCommand       `cmd:"" help:"Create an organisation."`
	List            listOrgsCommand        `cmd:"" help:"List all organisations."`
	Usage           orgUsageCommand        `cmd:"" help:"Show how many videos and accounts each organisation has in the queue of each source."`
	SetTier         setTierCommand         `cmd:"" help:"Change an organisation's tier."`
	SetSubscription setSubscriptionCommand `cmd:"" help:"Change an organisation's subscription."`
	SetOperator     setOperatorCommand     `cmd:"" help:"Set whether an organisation's dashboard shows the state of collecting for all organisations."`
	Rename          renameOrgCommand       `cmd:"" help:"Change an organisation's name."`
	Delete          deleteOrgCommand       `cmd:"" help:"Delete an organisation and all its data."`
}

// identifier is a command-line argument that is the UUID of a token.
type identifier struct{ uuid.UUID }

// UnmarshalText parses an id. The error contains the invalid text.
func (i *identifier) UnmarshalText(text []byte) error {
	if err := i.UUID.UnmarshalText(text); err != nil {
		return fmt.Errorf("%q is not a valid id: an id looks like 01900000-0000-7000-8000-000000000000", text)
	}
	return nil
}

type createOrgCommand struct {
	databaseCommand
	Name         string `required:"" placeholder:"NAME" help:"Name of the organisation, 1 to 100 characters."`
	Tier         string `default:"premium" enum:"limited,basic,premium" placeholder:"TIER" help:"Tier of the organisation: limited, basic or premium."`
	Subscription string `default:"active" enum:"active,none" placeholder:"STATE" help:"Subscription of the organisation: active, or none for the free plan."`
	JSON         bool   `name:"json" help:"Print JSON: {\"organisation_id\"}."`
}

// Run creates the organisation and prints its id.
func (c *createOrgCommand) Run(ctx context.Context, p boot.Process) error {
	if err := store.CheckName("organisation", c.Name); err != nil {
		return boot.UsageError{Err: fmt.Errorf("--name: %w", err)}
	}
	return c.withNewStore(ctx, p, func(st *store.Store) error {
		if err := warnOfSameName(ctx, p.Stderr, st, c.Name, uuid.Nil); err != nil {
			return err
		}
		o, err := st.CreateOrganisation(ctx, c.Name, store.Tier(c.Tier), store.Subscription(c.Subscription))
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(p.Stdout, struct {
				ID uuid.UUID `json:"organisation_id"`
			}{o.ID})
		}
		_, err = fmt.Fprintf(p.Stdout, "Created organisation %s: %s (tier %s, subscription %s)\nTo create a token for it, run: reeltally token create --org %s --name NAME\n",
			plainText(o.Name), o.ID, o.Tier, o.Subscription, o.ID)
		return err
	})
}

// warnOfSameName writes a warning if an organisation has the given name. It ignores the organisation with the id "except".
func warnOfSameName(ctx context.Context, w io.Writer, st *store.Store, name string, except uuid.UUID) error {
	orgs, err := st.Organisations(ctx)
	if err != nil {
		return err
	}
	for _, o := range orgs {
		if o.Name == strings.TrimSpace(name) && o.ID != except {
			_, err := fmt.Fprintf(w, "Another organisation has the name %s too: %s. Other commands need the id of the organisation they work with.\n", plainText(o.Name), o.ID)
			return err
		}
	}
	return nil
}

type listOrgsCommand struct {
	databaseCommand
	JSON bool `name:"json" help:"Print the organisations as a JSON list of objects."`
}

type orgJSON struct {
	ID           uuid.UUID          `json:"organisation_id"`
	Name         string             `json:"name"`
	Tier         store.Tier         `json:"tier"`
	Subscription store.Subscription `json:"subscription"`
	CreatedAt    apiTime            `json:"created_at"`
	Operator     bool               `json:"operator"`
	// DeletingSince is when the deletion of the organisation began; null if it is not being deleted.
	DeletingSince *apiTime `json:"deleting_since"`
}

// Run lists the organisations, oldest first.
func (c *listOrgsCommand) Run(ctx context.Context, p boot.Process) error {
	return c.withStore(ctx, p, func(st *store.Store) error {
		orgs, err := st.Organisations(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			out := make([]orgJSON, len(orgs))
			for i, o := range orgs {
				out[i] = orgJSON{o.ID, o.Name, o.Tier, o.Subscription, apiTime{o.CreatedAt.Time()}, o.Operator, toAPITime(o.DeletingSince)}
			}
			return writeJSON(p.Stdout, out)
		}
		rows := [][]any{{"ID", "NAME", "TIER", "SUBSCRIPTION", "CREATED", "OPERATOR", "STATE"}}
		for _, o := range orgs {
			state := "in use"
			if o.DeletingSince != nil {
				state = "being deleted since " + formatInstant(o.DeletingSince, "")
			}
			rows = append(rows, []any{o.ID, o.Name, o.Tier, o.Subscription, o.CreatedAt.Time().Format(time.DateTime), formatYesNo(o.Operator), state})
		}
		return writeTable(p.Stdout, rows)
	})
}

// changeOrganisation finds an organisation and calls change with its id. Then it prints what the organisation now has, for example "tier basic".
func (c databaseCommand) changeOrganisation(ctx context.Context, p boot.Process, idOrName, newState string, change func(st *store.Store, id uuid.UUID) error) error {
	return c.withStore(ctx, p, func(st *store.Store) error {
		org, err := findOrganisation(ctx, st, idOrName)
		if err != nil {
			return err
		}
		if err := change(st, org.ID); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "Organisation %s (%s) now has %s.\n", plainText(org.Name), org.ID, newState)
		return err
	})
}

type setTierCommand struct {
	databaseCommand
	boot.Logging
	Org  string `arg:"" placeholder:"NAME|ID" help:"Name or id of the organisation."`
	Tier string `arg:"" enum:"limited,basic,premium" help:"New tier: limited, basic or premium."`
}

// Run changes the organisation's tier.
func (c *setTierCommand) Run(ctx context.Context, p boot.Process) error {
	return c.changeOrganisation(ctx, p, c.Org, "tier "+c.Tier, func(st *store.Store, id uuid.UUID) error {
		return moveTargetsWithProgress(ctx, p.Stderr, c.Logger(p.Stderr), func(progress func(done, total int64)) error {
			return st.SetTier(ctx, id, store.Tier(c.Tier), progress)
		})
	})
}

type setSubscriptionCommand struct {
	databaseCommand
	boot.Logging
	Org          string `arg:"" placeholder:"NAME|ID" help:"Name or id of the organisation."`
	Subscription string `arg:"" enum:"active,none" help:"New subscription: active, or none for the free plan."`
}

// Run changes the organisation's subscription.
func (c *setSubscriptionCommand) Run(ctx context.Context, p boot.Process) error {
	return c.changeOrganisation(ctx, p, c.Org, "subscription "+c.Subscription, func(st *store.Store, id uuid.UUID) error {
		return moveTargetsWithProgress(ctx, p.Stderr, c.Logger(p.Stderr), func(progress func(done, total int64)) error {
			return st.SetSubscription(ctx, id, store.Subscription(c.Subscription), progress)
		})
	})
}

type setOperatorCommand struct {
	databaseCommand
	Org      string `arg:"" placeholder:"NAME|ID" help:"Name or id of the organisation."`
	Operator string `arg:"" enum:"yes,no" help:"yes: tokens of the organisation with the scope admin can open the page Operations; no: they cannot."`
}

// Run sets whether the organisation is the operator of this installation. The operator's tokens with the scope "admin"
// can open the dashboard's page Operations, which shows the state of all collectors.
func (c *setOperatorCommand) Run(ctx context.Context, p boot.Process) error {
	return c.changeOrganisation(ctx, p, c.Org, "the setting operator="+c.Operator, func(st *store.Store, id uuid.UUID) error {
		return st.SetOperator(ctx, id, c.Operator == "yes")
	})
}

type renameOrgCommand struct {
	databaseCommand
	Org  string `arg:"" placeholder:"NAME|ID" help:"Name or id of the organisation."`
	Name string `arg:"" placeholder:"NEW-NAME" help:"New name of the organisation, 1 to 100 characters."`
}

// Run changes the organisation's name.
func (c *renameOrgCommand) Run(ctx context.Context, p boot.Process) error {
	if err := store.CheckName("organisation", c.Name); err != nil {
		return boot.UsageError{Err: fmt.Errorf("NEW-NAME: %w", err)}
	}
	return c.withStore(ctx, p, func(st *store.Store) error {
		org, err := findOrganisation(ctx, st, c.Org)
		if err != nil {
			return err
		}
		if err := warnOfSameName(ctx, p.Stderr, st, c.Name, org.ID); err != nil {
			return err
		}
		if err := st.RenameOrganisation(ctx, org.ID, c.Name); err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "Organisation %s (%s) is now named %s.\n", plainText(org.Name), org.ID, plainText(strings.TrimSpace(c.Name)))
		return err
	})
}

// moveTargetsWithProgress calls moveTargets, which moves targets to another lane in batches, and
// shows the progress. It shows no progress if one batch is enough.
func moveTargetsWithProgress(ctx context.Context, w io.Writer, logger *slog.Logger, moveTargets func(progress func(done, total int64)) error) error {
	var bar *progress
	err := moveTargets(func(done, total int64) {
		if bar == nil && done < total {
			bar = newProgress(w, logger, "lanes", "targets", total)
		}
		if bar != nil {
			bar.showDone(ctx, done, 0)
		}
	})
	if bar != nil {
		bar.finish(ctx)
	}
	return err
}
