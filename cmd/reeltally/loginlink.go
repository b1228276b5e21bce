package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/store"
)

type loginLinkCommand struct {
	databaseCommand
	Org    string `placeholder:"NAME|ID" help:"Name or id of the organisation. It is not needed if there is only one, or none yet."`
	AppURL string `name:"app-url" setting:"REELTALLY_APP_URL" default:"http://127.0.0.1:8080" placeholder:"URL" help:"Public URL of the dashboard, with which the link begins."`
	Scopes string `default:"read,write,admin" placeholder:"SCOPES" help:"What the visitor may do, separated by commas: read, write, and admin to manage tokens."`
}

// Run creates a token, and prints a link that signs a browser in to the dashboard with this token.
// The link works only once.
func (c *loginLinkCommand) Run(ctx context.Context, p boot.Process) error {
	scopes, err := store.ParseScopes(c.Scopes)
	if err != nil {
		return boot.UsageError{Err: fmt.Errorf("--scopes: %w", err)}
	}
	if err := boot.CheckBaseURL("REELTALLY_APP_URL", c.AppURL); err != nil {
		return err
	}
	return c.withStore(ctx, p, func(st *store.Store) error {
		org, err := c.organisation(ctx, st)
		if errors.Is(err, errNoOrganisation) {
			return c.printSetupLink(ctx, p, st)
		}
		if err != nil {
			return err
		}
		token, _, err := st.CreateToken(ctx, org.ID, "Login link", scopes, store.SessionLife)
		if err != nil {
			return err
		}
		link, err := createLoginLink(ctx, st, token, c.AppURL)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(p.Stdout, link)
		_, errNote := fmt.Fprintf(p.Stderr, "The link signs in to the organisation %s. It works once, within 30 minutes. To end the session, run: reeltally token revoke %s\n", plainText(org.Name), token.ID)
		return errors.Join(err, errNote)
	})
}

var errNoOrganisation = errors.New("there is no organisation yet")

// organisation returns the organisation that the flag --org names. Without the flag, it returns the only organisation of the database. If there
// is no organisation, it returns errNoOrganisation.
func (c *loginLinkCommand) organisation(ctx context.Context, st *store.Store) (store.Organisation, error) {
	if c.Org != "" {
		return findOrganisation(ctx, st, c.Org)
	}
	all, err := st.Organisations(ctx)
	switch {
	case err != nil:
		return store.Organisation{}, err
	case len(all) == 0:
		return store.Organisation{}, errNoOrganisation
	case len(all) > 1:
		return store.Organisation{}, boot.UsageError{Err: fmt.Errorf("there are %d organisations: name one with --org, for example --org %s", len(all), all[0].ID)}
	}
	return all[0], nil
}

// printSetupLink prints a link to the page that creates the first organisation.
func (c *loginLinkCommand) printSetupLink(ctx context.Context, p boot.Process, st *store.Store) error {
	secret, err := st.CreateSetupLink(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, strings.TrimRight(c.AppURL, "/")+"/setup/"+secret)
	_, errNote := fmt.Fprintln(p.Stderr, "There is no organisation yet. The link creates the first organisation. It works once, within 30 minutes. Earlier links no longer work.")
	return errors.Join(err, errNote)
}

// createLoginLink creates a login link for a token and returns its URL. appURL is the public URL of the dashboard.
func createLoginLink(ctx context.Context, st *store.Store, token store.Token, appURL string) (string, error) {
	secret, err := st.CreateLoginLink(ctx, token.ID)
	return strings.TrimRight(appURL, "/") + "/login/" + secret, err
}
