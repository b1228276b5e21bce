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

// The size of the demo organisation.
const (
	demoVideos     = 60
	demoPerAccount = 5
	demoDays       = 90
)

// tokenFile is the name of the file with the demo organisation's token.
const tokenFile = "demo-token"

// demoID returns the id of the demo organisation, which is the same in every database.
func demoID() uuid.UUID {
	return seed.ID(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sha256.Sum256([]byte("demo organisation")))
}

// demo is the demo organisation, its token and the links of two example videos.
type demo struct {
	org   *store.Org
	token string
	// untrackedLink is the link of a video that is not tracked yet. trackedLink is that of a video with a history. Both are "" if the
	// sandbox imitates no platform.
	untrackedLink, trackedLink string
}

// hasDemo reports whether the demo organisation has videos.
func (u *up) hasDemo(ctx context.Context) (bool, error) {
	page, err := u.store.Org(demoID()).Videos(ctx, store.VideoQuery{IncludeRemoved: true, WithoutTotal: true,
		Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 1}})
	return len(page.Videos) > 0, err
}

// demo returns the demo organisation. It creates the organisation, its data and its token if they do not exist yet.
func (u *up) demo(ctx context.Context) (d demo, err error) {
	now := time.Now()
	_, err = backfill.LoadOrganisation(ctx, u.store, store.Organisation{ID: demoID(), Name: "Demo", Tier: store.TierPremium,
		Subscription: store.SubscriptionActive, CreatedAt: store.InstantOf(now)})
	if err != nil {
		return d, err
	}
	d.org = u.store.Org(demoID())
	seeded, err := u.hasDemo(ctx)
	if err != nil {
		return d, err
	}
	if !seeded && len(u.sandboxPlatforms) > 0 {
		// The data fits into one batch, which is one transaction, so it is never incomplete.
		err := seed.Fill(ctx, d.org, u.sandboxServer.World(), seed.Plan{Videos: demoVideos, Days: demoDays, PerAccount: demoPerAccount,
			Platforms: u.sandboxPlatforms, Today: store.DateOf(now)}, func(seed.Progress) {})
		if err != nil {
			return d, fmt.Errorf("demo organisation: %w", err)
		}
	}
	if d.token, err = u.token(ctx); err != nil {
		return d, err
	}
	if d.trackedLink, err = mostViewed(ctx, d.org); err != nil || len(u.sandboxPlatforms) == 0 {
		return d, err
	}
	platform := u.sandboxPlatforms[0]
	if u.sandboxPlatforms[len(u.sandboxPlatforms)-1] != platform {
		platform = link.TikTok
	}
	d.untrackedLink, err = findUntracked(ctx, d.org, u.sandboxServer.World(), platform, now)
	return d, err
}

// token returns the token of the last start if it is still valid. Otherwise it creates a token and saves it for the next start in a file
// that only this user can read.
func (u *up) token(ctx context.Context) (string, error) {
	path := filepath.Join(u.dataDir(), tokenFile)
	saved, err := os.ReadFile(path) //nolint:gosec // our own file
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	secret := strings.TrimSpace(string(saved))
	identity, err := u.store.Authenticate(ctx, secret)
	switch {
	case err == nil && identity.Organisation.ID == demoID() && identity.Token.May(store.ScopeRead) && identity.Token.May(store.ScopeWrite):
		return secret, nil
	case err != nil && !errors.Is(err, store.ErrTokenUnknown) && !errors.Is(err, store.ErrTokenExpired) && !errors.Is(err, store.ErrTokenRevoked):
		return "", err
	}
	_, secret, err = u.store.CreateToken(ctx, demoID(), "First look", []store.Scope{store.ScopeRead, store.ScopeWrite}, 0)
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

// mostViewed returns the link of the organisation's video with the most views, or "" if no video has views.
func mostViewed(ctx context.Context, org *store.Org) (string, error) {
	page, err := org.Videos(ctx, store.VideoQuery{WithoutTotal: true, Order: store.Order{Column: "latest_views", Descending: true}, Window: store.Window{Limit: 1}})
	if err != nil || len(page.Videos) == 0 || page.Videos[0].LatestViews == nil {
		return "", err
	}
	return page.Videos[0].Link, nil
}

// findUntracked returns the link of a public sandbox video that the organisation does not track. The search is deterministic.
func findUntracked(ctx context.Context, org *store.Org, world *sandbox.World, p link.Platform, now time.Time) (string, error) {
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

// printWelcome prints the address, the demo token, example commands and where the data is.
func (u *up) printWelcome(w io.Writer, d demo) error {
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
	untracked, tracked := d.untrackedLink, d.trackedLink
	if untracked == "" {
		line("Replace LINK by the link of a video. In the second and third command, percent-encode the link.")
		untracked = "LINK"
	}
	if tracked == "" {
		tracked = "LINK"
	}
	line("Track a video, read a video, read its history:")
	base, auth := u.api.Address, "-H 'Authorization: Bearer "+d.token+"'"
	line("  curl -sS %s -H 'Content-Type: application/json' -d '{\"link\": %s}' %s/videos", auth, strconv.Quote(untracked), base)
	line("  curl -sS %s %s/videos/%s", auth, base, url.QueryEscape(tracked))
	line("  curl -sS %s %s/videos/%s/history", auth, base, url.QueryEscape(tracked))
	line("")
	line("The data is %s.", u.dataLocation())
	line("Ctrl-C stops.")
	_, err := io.WriteString(w, b.String())
	return err
}
