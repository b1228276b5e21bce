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

// tokenFile is the name of the file that contains the demo organisation's token.
const tokenFile = "demo-token"

// demoOrganisationID returns the id of the demo organisation, which is the same in every database.
func demoOrganisationID() uuid.UUID {
	return seed.ID(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sha256.Sum256([]byte("demo organisation")))
}

// demoData is the demo organisation, its token and the link for the printed example commands.
type demoData struct {
	org   *store.Org
	token string
	// exampleLink is the link of a video that the organisation does not track yet. It is "" if the sandbox imitates no platform.
	exampleLink string
}

// hasDemoVideos reports whether the demo organisation has videos.
func (u *up) hasDemoVideos(ctx context.Context) (bool, error) {
	page, err := u.store.Org(demoOrganisationID()).Videos(ctx, store.VideoQuery{IncludeRemoved: true, WithoutTotal: true,
		Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 1}})
	return len(page.Videos) > 0, err
}

// prepareDemo returns the demo organisation. It creates the organisation, its data and its token if they do not exist yet.
func (u *up) prepareDemo(ctx context.Context) (d demoData, err error) {
	now := time.Now()
	_, err = backfill.LoadOrganisation(ctx, u.store, store.Organisation{ID: demoOrganisationID(), Name: "Demo", Tier: store.TierPremium,
		Subscription: store.SubscriptionActive, CreatedAt: store.InstantOf(now)})
	if err != nil {
		return d, err
	}
	d.org = u.store.Org(demoOrganisationID())
	seeded, err := u.hasDemoVideos(ctx)
	if err != nil {
		return d, err
	}
	if !seeded && len(u.sandboxPlatforms) > 0 {
		// The demo data fits into one batch, which is one transaction, so an interruption cannot leave a part of the data.
		err := seed.Fill(ctx, d.org, u.sandboxServer.World(), seed.Plan{Videos: demoVideos, Days: demoDays, PerAccount: demoPerAccount,
			Platforms: u.sandboxPlatforms, Today: store.DateOf(now)}, func(seed.Progress) {})
		if err != nil {
			return d, fmt.Errorf("demo organisation: %w", err)
		}
	}
	if d.token, err = u.demoToken(ctx); err != nil || len(u.sandboxPlatforms) == 0 {
		return d, err
	}
	platform := u.sandboxPlatforms[0]
	if u.sandboxPlatforms[len(u.sandboxPlatforms)-1] != platform {
		platform = link.TikTok
	}
	d.exampleLink, err = findUntrackedVideo(ctx, d.org, u.sandboxServer.World(), platform, now)
	return d, err
}

// demoToken returns the demo organisation's token from tokenFile if the token is still valid. Otherwise it creates a token and writes it
// to tokenFile, which only this user can read.
func (u *up) demoToken(ctx context.Context) (string, error) {
	path := filepath.Join(u.dataDir(), tokenFile)
	saved, err := os.ReadFile(path) //nolint:gosec // the operator chooses the folder
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	secret := strings.TrimSpace(string(saved))
	identity, err := u.store.Authenticate(ctx, secret)
	switch {
	case err == nil && identity.Organisation.ID == demoOrganisationID() && identity.Token.May(store.ScopeRead) && identity.Token.May(store.ScopeWrite):
		return secret, nil
	case err != nil && !errors.Is(err, store.ErrTokenUnknown) && !errors.Is(err, store.ErrTokenExpired) && !errors.Is(err, store.ErrTokenRevoked):
		return "", err
	}
	_, secret, err = u.store.CreateToken(ctx, demoOrganisationID(), "First look", []store.Scope{store.ScopeRead, store.ScopeWrite}, 0)
	if err != nil {
		return "", err
	}
	return secret, writePrivateFile(path, secret+"\n")
}

// writePrivateFile atomically writes a file that only its owner can read.
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

// findUntrackedVideo returns the link of a public sandbox video that the organisation does not track. The search is deterministic.
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

// printWelcome prints the API's address, the demo token, three example commands and where the data is.
func (u *up) printWelcome(w io.Writer, d demoData) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ReelTally runs at %s", u.api.Address)
	line("")
	if len(u.sandboxPlatforms) > 0 {
		names := make([]string, len(u.sandboxPlatforms))
		for i, p := range u.sandboxPlatforms {
			names[i] = string(p)
		}
		line("All numbers of %s are MADE UP by the sandbox. Every response is marked", strings.Join(names, ", "))
		line("with ReelTally-Sandbox: true. You can track any valid link. To get real numbers, configure a source:")
		line("reeltally up --help lists the settings.")
	} else {
		line("The numbers come from the sources that you configured.")
		if u.Sandbox {
			line("The database still has made-up numbers from the sandbox, so every response is marked with ReelTally-Sandbox: true.")
		}
	}
	line("")
	line("Token of the demo organisation:")
	line("  %s", d.token)
	line("")
	video := d.exampleLink
	if video == "" {
		line("Replace LINK by the link of a video. In the second and third command, percent-encode the link.")
		video = "LINK"
	}
	line("Track a video. After a few seconds, read the video and its history:")
	base, auth := u.api.Address, "-H 'Authorization: Bearer "+d.token+"'"
	line("  curl -sS %s -H 'Content-Type: application/json' -d '{\"link\": %s}' %s/videos", auth, strconv.Quote(video), base)
	line("  curl -sS %s %s/videos/%s", auth, base, url.QueryEscape(video))
	line("  curl -sS %s %s/videos/%s/history", auth, base, url.QueryEscape(video))
	line("")
	line("The data is %s.", u.dataLocation())
	line("Ctrl-C stops.")
	_, err := io.WriteString(w, b.String())
	return err
}
