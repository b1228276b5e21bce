// Package seed fills organisations with a part of the sandbox's world, as if they had tracked it for a while. All of it
// follows from the organisation's id, the plan and the day: the same again is the same data, to the identifiers.
//
// The numbers are the world's own, taken at midnight, so that what a collector fetches from the sandbox later goes on
// where they end.
package seed

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

// Source is the provenance of the points.
const Source = "sandbox"

// Plan is how much an organisation gets.
type Plan struct {
	Videos int
	// Days of history, today's included: one point a day for 90 days, one a week before.
	Days int32
	// PerAccount is how many of its videos are taken of each account, at most.
	PerAccount int
	Platforms  []link.Platform
	Today      store.Date
	// Batch is how many points are written in one transaction, about; 0 means 20,000. It changes nothing of the data.
	Batch int
}

// MaxDays is the longest history that anybody can ask for.
const MaxDays = 730

// Check returns what is wrong with the plan.
func (p Plan) Check() error {
	switch {
	case p.Videos < 1:
		return fmt.Errorf("%d videos: at least 1", p.Videos)
	case p.Days < 1 || p.Days > MaxDays:
		return fmt.Errorf("%d days: 1 to %d", p.Days, MaxDays)
	case p.PerAccount < 1 || len(p.Platforms) == 0:
		return errors.New("an account needs at least one video, and a platform")
	}
	return nil
}

// Progress is what has been written so far.
type Progress struct{ Accounts, Videos, Points int }

// ErrNotEmpty refuses an organisation that has videos of another origin.
var ErrNotEmpty = errors.New("the organisation has videos that this seed did not make: only an empty organisation is filled, or one where the same seed of the same day was broken off")

// Fill fills an organisation and tells of its progress now and then. What is there already from the same plan of the same
// day stays: a seed that was broken off goes on where it stopped. ErrNotEmpty when the organisation has videos of
// another origin.
func Fill(ctx context.Context, org *store.Org, world *sandbox.World, p Plan, progress func(Progress)) error {
	if err := p.Check(); err != nil {
		return err
	}
	g := newGenerator(org.ID(), world, p)
	if err := checkEmpty(ctx, org, g.collections[0].ID); err != nil {
		return err
	}
	// One batch is made while the one before is written.
	making, stop := context.WithCancel(ctx)
	defer stop()
	batches := make(chan backfill.LoadBatch)
	failed := make(chan error, 1)
	go func() {
		defer close(batches)
		failed <- g.make(making, batches)
	}()
	var done Progress
	for b := range batches {
		if err := backfill.Load(ctx, org, b); err != nil {
			return err
		}
		done.Accounts += len(b.Accounts)
		for _, a := range b.Accounts {
			done.Videos += len(a.Videos)
			done.Points += pointsOf(a)
		}
		progress(done)
	}
	return <-failed
}

func pointsOf(a backfill.LoadAccount) int {
	n := 0
	for _, v := range a.Videos {
		n += len(v.Points)
	}
	return n
}

func checkEmpty(ctx context.Context, org *store.Org, first uuid.UUID) error {
	page, err := org.Videos(ctx, store.VideoQuery{IncludeRemoved: true, WithoutTotal: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 1}})
	if err != nil || len(page.Videos) == 0 {
		return err
	}
	_, err = org.Collection(ctx, first, false)
	if errors.Is(err, store.ErrNotFound) {
		return ErrNotEmpty
	}
	return err
}

// generator makes the data of one organisation.
type generator struct {
	org   uuid.UUID
	world *sandbox.World
	Plan
	now  time.Time // the beginning of today, when all of it is seen
	from time.Time // the beginning of the first day
	rand *rand.Rand

	collections                []backfill.LoadCollection
	campaigns, creators, mixed []uuid.UUID
	seen                       map[string]bool // handles by platform
	left                       int             // videos to be made
}

func newGenerator(org uuid.UUID, world *sandbox.World, p Plan) *generator {
	g := &generator{org: org, world: world, Plan: p, now: p.Today.Time(), from: (p.Today - store.Date(p.Days) + 1).Time(),
		seen: map[string]bool{}, left: p.Videos}
	s := g.hash("dice")
	g.rand = rand.New(rand.NewPCG(binary.BigEndian.Uint64(s[:]), binary.BigEndian.Uint64(s[8:]))) //nolint:gosec // chance that can be repeated, not secrecy
	g.makeCollections()
	return g
}

// hash is the only source of chance, and of identifiers.
func (g *generator) hash(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	h.Write(g.org[:])
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// id makes a UUIDv7 of a time and a name.
func (g *generator) id(at time.Time, parts ...string) uuid.UUID {
	return ID(at, g.hash(parts...))
}

// ID makes a UUIDv7 of a time and of chance that the caller has.
func ID(at time.Time, chance [sha256.Size]byte) uuid.UUID {
	id := uuid.UUID(chance[:16])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(at.UnixMilli(), 0)))
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// A batch ends with the account that fills it.
const (
	defaultBatch   = 20_000
	accountsABatch = 500
)

// make sends the data in batches, the collections with the first one.
func (g *generator) make(ctx context.Context, out chan<- backfill.LoadBatch) error {
	b := backfill.LoadBatch{Collections: g.collections, Source: Source}
	points := 0
	send := func() bool {
		select {
		case out <- b:
			b, points = backfill.LoadBatch{Source: Source}, 0
			return true
		case <-ctx.Done():
			return false
		}
	}
	special := g.specials()
	for turn := 0; g.left > 0; turn++ {
		var s *pick
		if turn < len(special) {
			s = special[turn]
		}
		account, err := g.account(g.Platforms[turn%len(g.Platforms)], s)
		if err != nil {
			return err
		}
		if len(account.Videos) == 0 {
			continue
		}
		b.Accounts = append(b.Accounts, account)
		if points += pointsOf(account); points < cmp.Or(g.Batch, defaultBatch) && len(b.Accounts) < accountsABatch {
			continue
		}
		if !send() {
			return ctx.Err()
		}
	}
	if len(b.Accounts) > 0 && !send() {
		return ctx.Err()
	}
	return nil
}

// topics are collections of a hashtag each.
var topics = []string{"recipe", "diy", "travel", "fitness", "music"}

var campaignNames = []string{"Spring launch", "Summer push", "Back to school", "Holiday", "New year", "Partners"}

// makeCollections plans three trees: campaigns of videos and some accounts, groups of creators, and topics by hashtag.
func (g *generator) makeCollections() {
	add := func(name string, parent *uuid.UUID, tags ...string) uuid.UUID {
		n := len(g.collections)
		id := g.id(g.from, "collection", fmt.Sprint(n, g.Videos, g.Days, g.Today))
		at := store.InstantOf(g.from.Add(time.Duration(n) * time.Second))
		g.collections = append(g.collections, backfill.LoadCollection{ID: id, ParentID: parent, Name: name, Hashtags: tags, CreatedAt: at})
		return id
	}
	root := add("Campaigns", nil)
	for i := range min(max(g.Videos/250, 3), 100) {
		name := campaignNames[i%len(campaignNames)]
		if round := i / len(campaignNames); round > 0 {
			name = fmt.Sprintf("%s %d", name, round+1)
		}
		id := add(name, &root)
		g.campaigns, g.mixed = append(g.campaigns, id), append(g.mixed, id)
		if i%3 == 0 {
			g.campaigns = append(g.campaigns, add(name+", first wave", &id))
		}
	}
	root = add("Creators", nil)
	for i := range min(max(g.Videos/1000, 2), 50) {
		g.creators = append(g.creators, add(fmt.Sprintf("Creators %c%s", 'A'+rune(i%26), suffix(i/26)), &root))
	}
	root = add("Topics", nil)
	for _, tag := range topics {
		add("#"+tag, &root, tag)
	}
}

func suffix(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n + 1)
}

// oneOf picks a collection with a chance of one in n, or none.
func (g *generator) oneOf(ids []uuid.UUID, n int) []uuid.UUID {
	if i := g.rand.IntN(n * len(ids)); i < len(ids) {
		return slices.Clone(ids[i : i+1])
	}
	return nil
}
