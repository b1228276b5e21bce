// Package seed fills organisations with made-up videos, accounts and histories, as if they had been tracked for some time. The data is that
// of the sandbox, the server with made-up data. Run is the entry point. Its parameter Plan says how much data to create.
//
// The data depends only on the organisation's id, the Plan and the day. The same input gives the same data, including ids. The points have
// the sandbox's counts at midnight, so that they match the counts that a collector fetches from the sandbox later.
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

// Source is the name of the source that the created points have in the database.
const Source = store.SandboxSource

// Plan says how much data to create for an organisation.
type Plan struct {
	Videos int
	// Days is the length of the histories, including today. The last 90 days have daily points, and earlier days have weekly points.
	Days int32
	// PerAccount is the maximum number of videos of an account.
	PerAccount int
	Platforms  []link.Platform
	Today      store.Date
	// Batch is the approximate number of points that one transaction writes; 0 means 20,000. It has no effect on the created data.
	Batch int
}

// MaxDays is the largest allowed value of Plan.Days.
const MaxDays = 730

// Check returns an error if the plan has a number outside its limits, or no platform. The text of the error names the allowed values.
func (p Plan) Check() error {
	switch {
	case p.Videos < 1:
		return fmt.Errorf("the number of videos is %d; it must be 1 or more", p.Videos)
	case p.Days < 1 || p.Days > MaxDays:
		return fmt.Errorf("the number of days is %d; it must be 1 to %d", p.Days, MaxDays)
	case p.PerAccount < 1 || len(p.Platforms) == 0:
		return errors.New("the plan needs at least one video per account and at least one platform")
	}
	return nil
}

// Progress says how many accounts, videos and points Run has written so far.
type Progress struct{ Accounts, Videos, Points int }

// ErrNotEmpty reports that the organisation already has other videos. Run did not create these videos, or it created them with another plan or on
// another day.
var ErrNotEmpty = errors.New("the organisation has other videos: use an empty organisation, or repeat an interrupted seed with the same arguments on the same day")

// Run fills an organisation with made-up data. To continue an interrupted run, call it again with the same plan on
// the same day.
func Run(ctx context.Context, org *store.Org, world *sandbox.World, p Plan, progress func(Progress)) error {
	if err := p.Check(); err != nil {
		return err
	}
	g := newGenerator(org.ID(), world, p)
	if err := checkNoOtherVideos(ctx, org, g.collections[0].ID); err != nil {
		return err
	}
	// Another goroutine generates the next batch while this goroutine writes a batch.
	generateCtx, stop := context.WithCancel(ctx)
	defer stop()
	batches := make(chan backfill.SeedBatch)
	generateErr := make(chan error, 1)
	go func() {
		defer close(batches)
		generateErr <- g.generateAll(generateCtx, batches)
	}()
	var done Progress
	for b := range batches {
		if err := backfill.Seed(ctx, org, b); err != nil {
			return err
		}
		done.Accounts += len(b.Accounts)
		for _, a := range b.Accounts {
			done.Videos += len(a.Videos)
			done.Points += countPoints(a)
		}
		progress(done)
	}
	return <-generateErr
}

// countPoints returns the total number of history points of an account's videos.
func countPoints(a backfill.SeedAccount) int {
	n := 0
	for _, v := range a.Videos {
		n += len(v.Points)
	}
	return n
}

// checkNoOtherVideos returns ErrNotEmpty if the organisation has videos that Run did not create with this plan.
func checkNoOtherVideos(ctx context.Context, org *store.Org, firstCollection uuid.UUID) error {
	list, err := org.ListVideos(ctx, store.VideoQuery{IncludeRemoved: true, WithoutTotal: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 1}})
	if err != nil || len(list.Rows) == 0 {
		return err
	}
	// If the first collection that Run creates exists, assume that Run created the videos.
	_, err = org.Collection(ctx, firstCollection, false)
	if errors.Is(err, store.ErrNotFound) {
		return ErrNotEmpty
	}
	return err
}

// generator generates the data of one organisation.
type generator struct {
	org   uuid.UUID
	world *sandbox.World
	Plan
	now  time.Time // the beginning of today, which is the time of the newest points
	from time.Time // the beginning of the first day of the histories
	rand *rand.Rand

	collections        []backfill.SeedCollection
	videoCollections   []uuid.UUID           // ids of the collections to which videos are added
	mixedCollections   []uuid.UUID           // ids of the collections to which videos and accounts are added; the field videoCollections has these ids too
	accountCollections []uuid.UUID           // ids of the collections to which accounts are added, but no videos
	usedAccounts       map[string]bool       // accounts generated so far; the key is platform and handle
	videosLeft         int                   // number of videos still to generate
	videos             map[link.Platform]int // number of videos generated so far
}

// newGenerator creates a generator for the organisation and returns it. Before it returns, it also generates the organisation's collections.
func newGenerator(org uuid.UUID, world *sandbox.World, p Plan) *generator {
	g := &generator{org: org, world: world, Plan: p, now: p.Today.Time(), from: (p.Today - store.Date(p.Days) + 1).Time(),
		usedAccounts: map[string]bool{}, videosLeft: p.Videos, videos: map[link.Platform]int{}}
	s := g.hash("dice")
	g.rand = rand.New(rand.NewPCG(binary.BigEndian.Uint64(s[:]), binary.BigEndian.Uint64(s[8:]))) //nolint:gosec // deterministic numbers, not for security
	g.generateCollections()
	return g
}

// hash returns a SHA-256 hash of the organisation's id and the given texts. Ids and random numbers that are derived
// from hashes are reproducible.
func (g *generator) hash(parts ...string) [sha256.Size]byte {
	h := sha256.New()
	h.Write(g.org[:])
	for _, part := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// idFor returns a UUIDv7 for a time and a name. The same organisation, time and name always give the same id.
func (g *generator) idFor(at time.Time, parts ...string) uuid.UUID {
	return ID(at, g.hash(parts...))
}

// ID returns a UUIDv7 with the given time as its timestamp. All other bits come from the given random bytes.
func ID(timestamp time.Time, random [sha256.Size]byte) uuid.UUID {
	id := uuid.UUID(random[:16])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(timestamp.UnixMilli(), 0)))
	copy(id[:6], ms[2:])
	id[6] = id[6]&0x0f | 0x70
	id[8] = id[8]&0x3f | 0x80
	return id
}

// smallestPlatform returns the platform that has the fewest videos so far.
func (g *generator) smallestPlatform() link.Platform {
	return slices.MinFunc(g.Platforms, func(a, b link.Platform) int { return cmp.Compare(g.videos[a], g.videos[b]) })
}

// These are the limits of a batch. A batch is complete when it has at least defaultBatchPoints history points (Plan.Batch can set another
// number), or maxAccountsPerBatch accounts.
const (
	defaultBatchPoints  = 20_000
	maxAccountsPerBatch = 500
)

// generateAll generates the data of the organisation in batches, and sends each batch to the channel. The first batch includes all
// collections.
func (g *generator) generateAll(ctx context.Context, batches chan<- backfill.SeedBatch) error {
	b := backfill.SeedBatch{Collections: g.collections, Source: Source}
	points := 0
	send := func() bool {
		select {
		case batches <- b:
			b, points = backfill.SeedBatch{Source: Source}, 0
			return true
		case <-ctx.Done():
			return false
		}
	}
	special := g.specialVideos()
	for i := 0; g.videosLeft > 0; i++ {
		var first *firstVideo
		if i < len(special) {
			first = special[i]
		}
		account, err := g.generateAccount(g.smallestPlatform(), first)
		if err != nil {
			return err
		}
		if len(account.Videos) == 0 {
			continue
		}
		b.Accounts = append(b.Accounts, account)
		if points += countPoints(account); points < cmp.Or(g.Batch, defaultBatchPoints) && len(b.Accounts) < maxAccountsPerBatch {
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

// topics are hashtags. Each of them gets a collection under the collection "Topics".
var topics = []string{"recipe", "diy", "travel", "fitness", "music"}

var campaignNames = []string{"Spring launch", "Summer push", "Back to school", "Holiday", "New year", "Partners"}

// generateCollections generates three trees of collections. Their roots are the collections "Campaigns", "Creators" and
// "Topics".
func (g *generator) generateCollections() {
	add := func(name string, parent *uuid.UUID, tags ...string) uuid.UUID {
		if parent != nil {
			parent = new(*parent) // copy the id, because the caller later changes the variable to which parent points
		}
		n := len(g.collections)
		id := g.idFor(g.from, "collection", fmt.Sprint(n, g.Videos, g.Days, g.Today))
		at := store.InstantOf(g.from.Add(time.Duration(n) * time.Second))
		g.collections = append(g.collections, backfill.SeedCollection{ID: id, ParentID: parent, Name: name, Hashtags: tags, CreatedAt: at})
		return id
	}
	root := add("Campaigns", nil)
	for i := range min(max(g.Videos/250, 3), 100) {
		name := campaignNames[i%len(campaignNames)]
		if round := i / len(campaignNames); round > 0 {
			name = fmt.Sprintf("%s %d", name, round+1)
		}
		id := add(name, &root)
		g.videoCollections, g.mixedCollections = append(g.videoCollections, id), append(g.mixedCollections, id)
		if i%3 == 0 {
			g.videoCollections = append(g.videoCollections, add(name+", first wave", &id))
		}
	}
	root = add("Creators", nil)
	for i := range min(max(g.Videos/1000, 2), 50) {
		g.accountCollections = append(g.accountCollections, add(fmt.Sprintf("Creators %c%s", 'A'+rune(i%26), numberSuffix(i/26)), &root))
	}
	root = add("Topics", nil)
	for _, tag := range topics {
		// The collection contains all videos with this hashtag.
		add("#"+tag, &root, tag)
	}
}

// numberSuffix returns a suffix for a name that was already used n times, so that each name is unique: "" if n is 0, and n+1 otherwise.
func numberSuffix(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n + 1)
}

// randomOrNil returns nil, or a slice with one random element of ids. On average, one call in n returns an element. All elements are equally likely.
func (g *generator) randomOrNil(ids []uuid.UUID, n int) []uuid.UUID {
	if i := g.rand.IntN(n * len(ids)); i < len(ids) {
		return slices.Clone(ids[i : i+1])
	}
	return nil
}
