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

// The demo organisation's extent.
const (
	demoVideos     = 60
	demoPerAccount = 5
	demoDays       = 90
	tokenFile      = "demo-token"
)

// demoID is the demo organisation in every database.
func demoID() uuid.UUID {
	return seed.ID(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sha256.Sum256([]byte("demo organisation")))
}

// demo is what a newcomer needs.
type demo struct {
	org   *store.Org
	token string
	// fresh is a video that is not tracked yet; shown is one that has numbers and a history. "" where no sandbox stands
	// for any platform.
	fresh, shown string
}

// hasDemo says whether this database has the demo organisation's made-up numbers.
func (u *up) hasDemo(ctx context.Context) (bool, error) {
	page, err := u.store.Org(demoID()).Videos(ctx, store.VideoQuery{IncludeRemoved: true, WithoutTotal: true,
		Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 1}})
	return len(page.Videos) > 0, err
}

// demo makes the organisation, its data and its token where they are not there yet.
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
	if !seeded && len(u.standsFor) > 0 {
		// All of it is one batch, so that it is there as a whole or not at all.
		err := seed.Fill(ctx, d.org, u.box.World(), seed.Plan{Videos: demoVideos, Days: demoDays, PerAccount: demoPerAccount,
			Platforms: u.standsFor, Today: store.DateOf(now)}, func(seed.Progress) {})
		if err != nil {
			return d, fmt.Errorf("demo organisation: %w", err)
		}
	}
	if d.token, err = u.token(ctx); err != nil {
		return d, err
	}
	if d.shown, err = mostViewed(ctx, d.org); err != nil || len(u.standsFor) == 0 {
		return d, err
	}
	platform := u.standsFor[0]
	if u.standsFor[len(u.standsFor)-1] != platform {
		platform = link.TikTok
	}
	d.fresh, err = untracked(ctx, d.org, u.box.World(), platform, now)
	return d, err
}

// token returns the token of the last start if it still works, else a new one, which it keeps for the next start where
// only this user can read it.
func (u *up) token(ctx context.Context) (string, error) {
	path := filepath.Join(u.folder(), tokenFile)
	kept, err := os.ReadFile(path) //nolint:gosec // our own file
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	secret := strings.TrimSpace(string(kept))
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
	return secret, keep(path, secret+"\n")
}

// keep writes a file that its owner alone can read, whole or not at all.
func keep(path, content string) error {
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

func mostViewed(ctx context.Context, org *store.Org) (string, error) {
	page, err := org.Videos(ctx, store.VideoQuery{WithoutTotal: true, Order: store.Order{Column: "latest_views", Descending: true}, Window: store.Window{Limit: 1}})
	if err != nil || len(page.Videos) == 0 || page.Videos[0].LatestViews == nil {
		return "", err
	}
	return page.Videos[0].Link, nil
}

// untracked finds an ordinary video of the world that the organisation does not track. The search begins at the same place
// each time.
func untracked(ctx context.Context, org *store.Org, world *sandbox.World, p link.Platform, now time.Time) (string, error) {
	dice := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // chance that can be repeated, not secrecy
	for range 1000 {
		v, ok := seed.AnyVideo(world, p, dice, now)
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
	return "", errors.New("every video that was tried for the first steps is tracked")
}

// welcome tells a newcomer where everything is and what to try.
func (u *up) welcome(w io.Writer, d demo) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("ReelTally answers at %s", u.api.Address)
	line("")
	if len(u.standsFor) > 0 {
		names := make([]string, len(u.standsFor))
		for i, p := range u.standsFor {
			names[i] = string(p)
		}
		line("All numbers of %s are MADE UP by the sandbox, and every answer says so", strings.Join(names, ", "))
		line("(ReelTally-Sandbox: true). Any link of the right shape has some. For real ones set a key:")
		line("reeltally up --help lists them.")
	} else {
		line("The numbers come from the sources that you configured.")
		if u.Sandbox {
			line("Those that the sandbox made up before are still in the database, so that every answer warns of them.")
		}
	}
	line("")
	line("The token of the demo organisation:")
	line("  %s", d.token)
	line("")
	fresh, shown := d.fresh, d.shown
	if fresh == "" {
		line("Put the link of a video in place of LINK (percent-encoded in the second and the third line):")
		fresh = "LINK"
	}
	if shown == "" {
		shown = "LINK"
	}
	line("Track a video, read one, read its history:")
	base, auth := u.api.Address, "-H 'Authorization: Bearer "+d.token+"'"
	line("  curl -sS %s -H 'Content-Type: application/json' -d '{\"link\": %s}' %s/videos", auth, strconv.Quote(fresh), base)
	line("  curl -sS %s %s/videos/%s", auth, base, url.QueryEscape(shown))
	line("  curl -sS %s %s/videos/%s/history", auth, base, url.QueryEscape(shown))
	line("")
	line("The data is %s.", u.place())
	line("Ctrl-C stops.")
	_, err := io.WriteString(w, b.String())
	return err
}
