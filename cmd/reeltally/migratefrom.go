package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/cmd/internal/migrate"
	"github.com/reeltally/reeltally/cmd/internal/transfer"
	"github.com/reeltally/reeltally/store"
)

type migrateFromCommand struct {
	boot.Logging
	databaseCommand
	Service          string      `arg:"" enum:"shortimize,reeltally" help:"Service to copy from: shortimize or reeltally. Both have the same API."`
	URL              string      `name:"url" required:"" placeholder:"URL" help:"Address of the service's API, such as https://api.example.com. Its host may have a private address."`
	Token            boot.Secret `setting:"REELTALLY_MIGRATE_TOKEN" placeholder:"TOKEN" help:"Token of the organisation at the service. Other users of this machine can see a token on the command line: set REELTALLY_MIGRATE_TOKEN instead, or write the token to standard input."`
	Org              string      `placeholder:"NAME|ID" help:"Id or name of the organisation that receives the data. Without it, this is the organisation with the name that the organisation has at the service, which is created if it does not exist."`
	WorkDir          string      `placeholder:"FOLDER" help:"Folder for the downloaded data. It must be new, empty, or that of an interrupted migration. It is deleted after a successful migration. Default: reeltally-migrate-ID in the current folder, with the id of the organisation."`
	DryRun           bool        `help:"Show how much there is to copy, without changing the database."`
	ShortLinkBaseURL string      `name:"shortlink-base-url" setting:"REELTALLY_SHORTLINK_BASE_URL" placeholder:"URL" help:"URL of a replacement for the hosts of short links: https://HOST/PATH is requested as URL/HOST/PATH."`
	JSON             bool        `name:"json" help:"Print JSON: one object of counts."`
}

// Help returns the text that --help shows below the summary of the command.
func (migrateFromCommand) Help() string {
	return "The other service must show all its data for this token: its organisation needs the tier premium. Fetched points of the organisation are never changed. " +
		"An existing video gets only details that it lacks, such as its caption. An existing collection gets the members of its remote copy, and its display settings if it has none. " +
		"An account that was stopped is tracked again if the service tracks it. " +
		"To resume an interrupted migration, run the same command again in the same folder: downloaded histories are not requested again. See docs/import.md for details."
}

// Run copies an organisation from another server into this database.
func (c *migrateFromCommand) Run(ctx context.Context, p boot.Process) error {
	token, err := c.token(p.Stdin)
	if err != nil {
		return boot.UsageError{Err: err}
	}
	logger := c.Logger(p.Stderr)
	remote, err := migrate.NewRemote(c.URL, token, func(reason string, wait time.Duration) {
		logger.WarnContext(ctx, "waiting for the service", "reason", reason, "wait", wait.Round(time.Second).String())
	})
	if err != nil {
		return boot.UsageError{Err: fmt.Errorf("--url: %w", err)}
	}
	if c.WorkDir != "" {
		if err := migrate.CheckDir(c.WorkDir); err != nil {
			return boot.UsageError{Err: fmt.Errorf("--work-dir: %w", err)}
		}
	}
	remoteOrganisation, err := remote.Organisation(ctx)
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.printCounts(ctx, p, remote, remoteOrganisation)
	}
	return c.withNewStore(ctx, p, func(st *store.Store) error {
		org, err := c.destinationOrganisation(ctx, st, remoteOrganisation)
		if err != nil {
			return err
		}
		shorts, err := newShortLinks(st, c.ShortLinkBaseURL, logger)
		if err != nil {
			return err
		}
		m := migrate.Migration{Remote: remote, From: remoteOrganisation, Org: st.Org(org.ID), Dir: c.WorkDir, Now: time.Now, Resolve: shorts.resolve}
		if m.Dir == "" {
			m.Dir = migrate.DefaultDir(org.ID)
		}
		bars := stageProgress{w: p.Stderr, log: logger}
		m.Progress = func(s migrate.Stage, done, total int) {
			bars.showStage(ctx, string(s), "entries", int64(done), int64(total))
		}
		m.ImportProgress = func(s transfer.Stage, done, total int64) {
			if s == transfer.Checking || s == transfer.Writing {
				bars.showStage(ctx, string(s), "entries", done, total)
			}
		}
		summary, err := m.Run(ctx)
		bars.finish(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return errors.New("interrupted: run the same command again to continue")
		}
		if err != nil {
			return fmt.Errorf("%w (to continue, run the same command again)", err)
		}
		return c.printSummary(p, org, st.Retention(), summary)
	})
}

// token returns the token for the remote server. The token is the value of the flag or environment variable, or else the first line of stdin.
func (c *migrateFromCommand) token(stdin io.Reader) (string, error) {
	token := c.Token.Reveal()
	if token == "" && stdin != nil {
		line, err := bufio.NewReader(io.LimitReader(stdin, 4096)).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		token = strings.TrimSpace(line)
	}
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return "", errors.New("the token of the service is missing or has a space: set REELTALLY_MIGRATE_TOKEN, or write the token to standard input")
	}
	return token, nil
}

// destinationOrganisation returns the organisation that the flag --org names. Without the flag,
// destinationOrganisation finds or creates an organisation with the name of the copied organisation.
func (c *migrateFromCommand) destinationOrganisation(ctx context.Context, st *store.Store, source migrate.Organisation) (store.Organisation, error) {
	if c.Org != "" {
		return findOrganisation(ctx, st, c.Org)
	}
	if source.Name == "" {
		return store.Organisation{}, boot.UsageError{Err: errors.New("the service does not report the name of its organisation; set --org to the name of the organisation that receives the data")}
	}
	org, err := findOrganisation(ctx, st, source.Name)
	if !errors.Is(err, store.ErrNotFound) {
		return org, err
	}
	subscription := store.SubscriptionActive
	if source.Subscription == string(store.SubscriptionNone) {
		subscription = store.SubscriptionNone
	}
	return st.CreateOrganisation(ctx, source.Name, store.TierPremium, subscription)
}

// printCounts prints how much a migration would copy: the numbers of collections, accounts and videos.
func (c *migrateFromCommand) printCounts(ctx context.Context, p boot.Process, remote *migrate.Remote, remoteOrganisation migrate.Organisation) error {
	n, err := remote.Count(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(p.Stdout, n)
	}
	_, err = fmt.Fprintf(p.Stdout, "Dry run, nothing is written. The organisation %s has %s, %s and %s.\nThe migration needs one request for each video and collection.\n",
		plainText(remoteOrganisation.Name), numberWithNoun(n.Collections, "collection"), numberWithNoun(n.Accounts, "account"), numberWithNoun(n.Videos, "video"))
	return err
}

// printSummary prints the summary of a migration. It leaves out counts that are 0.
func (c *migrateFromCommand) printSummary(p boot.Process, org store.Organisation, keep store.Retention, s migrate.Summary) error {
	if c.JSON {
		return writeJSON(p.Stdout, s)
	}
	var b strings.Builder
	line := func(n int64, noun, format string, args ...any) {
		if n > 0 {
			fmt.Fprintf(&b, "  "+format+"\n", append([]any{numberWithNoun(n, noun)}, args...)...)
		}
	}
	fmt.Fprintf(&b, "Copied to %s (%s):\n", plainText(org.Name), org.ID)
	line(int64(s.Collections), "collection", "%s, %d new", s.NewCollections)
	line(int64(s.Protected), "collection", "%s made private: set a password to protect it again")
	line(int64(s.Accounts), "tracked account", "%s")
	line(int64(s.InvalidAccounts), "account", "%s left out: link or tracking type not known")
	line(s.Import.Videos, "video", "%s, %d new", s.Import.New)
	line(s.Import.Stopped, "video", "%s not tracked: the tracking was stopped")
	line(s.Import.Added, "point", "%s added")
	line(s.Import.RolledUp, "point", "%s left out: after %d days, only the last point of a week is kept", keep.Daily)
	line(s.Import.Existing, "point", "%s skipped: already there")
	line(s.Import.Conflicts, "point", "%s left out: an existing point of the same day or week has other counts and is kept")
	line(s.Import.TooOld, "point", "%s left out: older than %d days", keep.Weekly)
	line(s.Interpolated, "point", "%s left out: interpolated, not measured")
	line(s.Unmarked, "point", "%s left out: older than 90 days, and the service does not say which of these points were measured")
	line(s.Gone, "video", "%s without points: the service did not find the history")
	line(s.Members, "account or video", "%s added to collections")
	line(int64(s.MissingMembers), "member of a collection", "%s left out: the video or account is missing, or the service does not list it")
	for _, c := range []struct {
		n    int64
		noun string
	}{{s.Unlisted.Collections, "collection"}, {s.Unlisted.Accounts, "account"}, {s.Unlisted.Videos, "video"}} {
		line(c.n, c.noun, "Warning: %s missing: the service counts more than it lists")
	}
	line(s.Import.Bad, "row", "%s left out: %s", strings.Join(s.Bad, "; "))
	_, err := io.WriteString(p.Stdout, b.String())
	return err
}
