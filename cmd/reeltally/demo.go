package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/seed"
	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

const (
	demoVideos     = 60 // number of videos of the demo organisation
	demoPerAccount = 5  // maximum number of videos of one account
	demoDays       = 90 // length of the histories in days
)

// `reeltally up` stores tokens in these files. Because the names differ, both files can be in the
// same folder.
const (
	demoTokenFile = "demo-token" // token of the demo organisation
	realTokenFile = "token"      // token of an organisation with real numbers
)

// demoOrganisationID returns the id of the demo organisation, which is the same in every database.
func demoOrganisationID() uuid.UUID {
	return seed.ID(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sha256.Sum256([]byte("demo organisation")))
}

// firstOrganisation has the organisation that `reeltally up` creates, and the token and the links that `reeltally up` prints.
type firstOrganisation struct {
	org   *store.Org
	token string
	// loginLink is a URL that signs its visitor in to the dashboard. It works only once.
	loginLink string
	// exampleLink is the link that the printed example commands use: a video of the sandbox that the organisation does not track yet. It is ""
	// if no sandbox runs.
	exampleLink string
}

// hasVideos returns true if the organisation has videos, including those that are no longer tracked.
func hasVideos(ctx context.Context, org *store.Org) (bool, error) {
	list, err := org.ListVideos(ctx, store.VideoQuery{IncludeRemoved: true, WithoutTotal: true,
		Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 1}})
	if err != nil {
		return false, err
	}
	return len(list.Rows) > 0, nil
}

// organisationID returns the id of the organisation that `reeltally up` creates. The id is the same in every database.
func (u *up) organisationID() uuid.UUID {
	if u.sandboxServer != nil {
		return demoOrganisationID()
	}
	return seed.ID(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sha256.Sum256([]byte("first organisation")))
}

// prepareOrganisation creates the organisation and its token if they do not exist. If the sandbox
// runs, an organisation without videos gets made-up data.
func (u *up) prepareOrganisation(ctx context.Context) (first firstOrganisation, err error) {
	now, name := time.Now(), "My organisation"
	if u.sandboxServer != nil {
		name = "Demo"
	}
	_, err = backfill.CreateOrganisation(ctx, u.store, store.Organisation{ID: u.organisationID(), Name: name, Tier: store.TierPremium,
		Subscription: store.SubscriptionActive, CreatedAt: store.InstantOf(now)})
	if err != nil {
		return first, err
	}
	if err := u.store.SetOperator(ctx, u.organisationID(), true); err != nil {
		return first, err
	}
	first.org = u.store.Org(u.organisationID())
	if first.token, err = u.readOrCreateToken(ctx); err != nil {
		return first, err
	}
	identity, err := u.store.Authenticate(ctx, first.token)
	if err != nil {
		return first, err
	}
	first.loginLink, err = createLoginLink(ctx, u.store, identity.Token, u.api.AppURL)
	if err != nil || u.sandboxServer == nil {
		return first, err
	}
	seeded, err := hasVideos(ctx, first.org)
	if err != nil {
		return first, err
	}
	if !seeded {
		// The made-up data fits into one batch, which seed.Run writes in one transaction. So after an interruption, the database has all of the data or
		// none.
		err := seed.Run(ctx, first.org, u.sandboxServer.World(), seed.Plan{Videos: demoVideos, Days: demoDays, PerAccount: demoPerAccount,
			Platforms: link.Platforms, Today: store.DateOf(now)}, func(seed.Progress) {})
		if err != nil {
			return first, fmt.Errorf("demo organisation: %w", err)
		}
		if err := requestThumbnails(ctx, u.store, first.org); err != nil {
			return first, err
		}
	}
	first.exampleLink, err = findUntrackedVideo(ctx, first.org, u.sandboxServer.World(), link.TikTok, now)
	return first, err
}

// requestThumbnails asks the collector to fetch the thumbnails of the demo organisation's videos.
func requestThumbnails(ctx context.Context, st *store.Store, org *store.Org) error {
	list, err := org.ListVideos(ctx, store.VideoQuery{Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: demoVideos}})
	if err != nil {
		return err
	}
	var thumbnails []store.Thumbnail
	for _, v := range list.Rows {
		thumbnails = append(thumbnails, store.Thumbnail{Platform: v.Platform, ExternalID: v.ExternalID, URL: *v.ThumbnailURL})
	}
	return st.RequestThumbnails(ctx, thumbnails)
}

// tokenPath returns the path of the file with the organisation's token.
func (u *up) tokenPath() string {
	if u.sandboxServer != nil {
		return filepath.Join(u.dataDir(), demoTokenFile)
	}
	return filepath.Join(u.dataDir(), realTokenFile)
}

// readOrCreateToken returns the token in the file at u.tokenPath. If the file has no valid token,
// readOrCreateToken stores a new token there.
func (u *up) readOrCreateToken(ctx context.Context) (string, error) {
	path := u.tokenPath()
	saved, err := os.ReadFile(path) //nolint:gosec // the operator chooses the folder
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	secret := strings.TrimSpace(string(saved))
	identity, err := u.store.Authenticate(ctx, secret)
	switch {
	case err == nil && identity.Organisation.ID == u.organisationID() && !slices.ContainsFunc(store.Scopes, func(s store.Scope) bool { return !identity.Token.HasScope(s) }):
		return secret, nil
	case err != nil && !errors.Is(err, store.ErrTokenUnknown) && !errors.Is(err, store.ErrTokenExpired) && !errors.Is(err, store.ErrTokenRevoked):
		return "", err
	}
	_, secret, err = u.store.CreateToken(ctx, u.organisationID(), "First look", store.Scopes, 0)
	if err != nil {
		return "", err
	}
	return secret, writePrivateFile(path, secret+"\n")
}

// writePrivateFile writes a file that only its owner can read. It replaces an existing file in one step, so that the file never has only a
// part of the content.
func writePrivateFile(path, content string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.WriteString(content)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// findUntrackedVideo returns the link of a public sandbox video that the organisation does not track. It tries the same videos in the same
// order each time.
func findUntrackedVideo(ctx context.Context, org *store.Org, world *sandbox.World, p link.Platform, now time.Time) (string, error) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // deterministic numbers, not for security
	for range 1000 {
		v, ok := seed.AnyVideo(world, p, random, now)
		if !ok || v.Category != sandbox.Normal || v.State != sandbox.Public {
			continue
		}
		l, err := link.Parse(v.Link)
		if err != nil {
			return "", err
		}
		tracked, err := org.TrackedVideoIDs(ctx, []link.Link{l})
		if err != nil {
			return "", err
		}
		if tracked[0] == uuid.Nil {
			return v.Link, nil
		}
	}
	return "", errors.New("no untracked sandbox video was found for the example commands")
}

// printWelcome prints the API's address, a link that signs in to the dashboard, the token, three example commands and the location of the
// data.
func (u *up) printWelcome(w io.Writer, first firstOrganisation) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ReelTally runs at %s", u.api.Address)
	line("")
	line("Open the dashboard. This address signs in once, within 30 minutes:")
	line("  %s", first.loginLink)
	line("Later, sign in at %s/login with the token below.", u.api.AppURL)
	line("")
	if u.sandboxServer != nil {
		line("All numbers are MADE UP by the sandbox. Every response is marked with ReelTally-Sandbox: true.")
		line("You can track any valid link. To get real numbers, configure a source: `reeltally up --help` lists the settings.")
		line("Real numbers are stored in another database than made-up numbers.")
		line("")
		line("Token of the demo organisation:")
	} else {
		line("The numbers come from the sources that you configured. Platforms without a source have no numbers.")
		line("")
		line("Token of your organisation:")
	}
	line("  %s", first.token)
	line("")
	video := first.exampleLink
	if video == "" {
		line("Replace LINK by the link of a video. In the second and third command, percent-encode the link.")
		video = "LINK"
	}
	line("Track a video. After a few seconds, read the video and its history:")
	base, auth := u.api.Address, "-H 'Authorization: Bearer "+first.token+"'"
	line("  curl -sS %s -H 'Content-Type: application/json' -d '{\"link\": %s}' %s/videos", auth, strconv.Quote(video), base)
	line("  curl -sS %s %s/videos/%s", auth, base, url.QueryEscape(video))
	line("  curl -sS %s %s/videos/%s/history", auth, base, url.QueryEscape(video))
	line("")
	line("The data is %s.", u.dataLocation())
	line("Ctrl-C stops.")
	_, err := io.WriteString(w, b.String())
	return err
}
