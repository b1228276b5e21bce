package seed

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
)

// pick is a video that is wanted for what happens to it.
type pick struct {
	truth sandbox.VideoTruth
	gap   bool // leave some days out of its history
}

// specials find what every organisation has one of, so that each can be seen: a viral outlier, a video that was deleted,
// one that turned private, and one with a gap in its history. They are TikTok's, whose ids say when they were
// uploaded, so that they can be chosen to have their turn within the history; none where TikTok is not among the
// platforms or the history is too short.
func (g *generator) specials() []*pick {
	tiktok := false
	for _, p := range g.Platforms {
		tiktok = tiktok || p == link.TikTok
	}
	if !tiktok || g.Days < 30 || g.Videos < 20 {
		return nil
	}
	var found []*pick
	for _, want := range []struct {
		category sandbox.Category
		age      int // days since the upload
		gap      bool
	}{{sandbox.Viral, 60, false}, {sandbox.TurnsDeleted, 45, false}, {sandbox.TurnsPrivate, 45, false}, {sandbox.Normal, 80, true}} {
		if v, ok := g.find(want.category, g.now.AddDate(0, 0, -want.age)); ok {
			found = append(found, &pick{v, want.gap})
		}
	}
	return found
}

// tries bounds the search; the rarest is one in some thousands.
const tries = 200_000

// find returns a video of an ordinary account that is of a category and had its turn between five days ago and 25.
func (g *generator) find(c sandbox.Category, uploaded time.Time) (sandbox.VideoTruth, bool) {
	for range tries {
		id := strconv.FormatUint(uint64(uploaded.Unix())<<32|uint64(g.rand.Uint32()), 10) //nolint:gosec // after 1970
		v, ok := g.world.Video(link.TikTok, id, g.now)
		if !ok || v.Category != c {
			continue
		}
		if v.TurnsAt != nil && (v.TurnsAt.After(g.now.AddDate(0, 0, -5)) || v.TurnsAt.Before(g.now.AddDate(0, 0, -25))) {
			continue
		}
		a, ok := g.world.Account(link.TikTok, v.Account.Handle, g.now)
		if ok && a.Category == sandbox.AccountNormal && !g.seen[string(link.TikTok)+a.Handle] {
			return v, true
		}
	}
	return sandbox.VideoTruth{}, false
}

// account makes the next account of a platform with some of its videos, or that of a special video. It has no videos when
// chance led to one that is empty, gone, private or known.
func (g *generator) account(p link.Platform, special *pick) (backfill.LoadAccount, error) {
	var handle string
	if special != nil {
		p, handle = special.truth.Platform, special.truth.Account.Handle
	} else {
		v, ok := AnyVideo(g.world, p, g.rand, g.now)
		if !ok {
			return backfill.LoadAccount{}, fmt.Errorf("the world has no video of the shape that its ids on %s have", p)
		}
		handle = v.Account.Handle
	}
	a, ok := g.world.Account(p, handle, g.now)
	if !ok || a.State != sandbox.Public || a.Category == sandbox.AccountNoHandle || g.seen[string(p)+a.Handle] {
		return backfill.LoadAccount{}, nil
	}
	g.seen[string(p)+a.Handle] = true
	out := backfill.LoadAccount{Account: g.record(a), Days: g.followers(a)}
	out.Collections = append(g.oneOf(g.creators, 3), g.oneOf(g.mixed, 8)...)
	take := func(v sandbox.VideoTruth, gap bool) error {
		video, err := g.video(v, gap)
		if err == nil && len(video.Points) > 0 {
			out.Videos = append(out.Videos, video)
			g.left--
		}
		return err
	}
	if special != nil {
		if err := take(special.truth, special.gap); err != nil {
			return out, err
		}
	}
	for _, id := range spread(g.world.Uploads(p, a.Handle, g.now), g.PerAccount-len(out.Videos)) {
		if g.left == 0 {
			break
		}
		if special != nil && special.truth.ID == id {
			continue
		}
		v, ok := g.world.Video(p, id, g.now)
		if !ok {
			continue
		}
		if err := take(v, false); err != nil {
			return out, err
		}
	}
	return out, nil
}

// AnyVideo rolls a video of a platform. Every id of the right shape exists in the world and belongs to an account.
func AnyVideo(world *sandbox.World, p link.Platform, dice *rand.Rand, now time.Time) (sandbox.VideoTruth, bool) {
	const decimal, letters = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	roll := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[dice.IntN(len(alphabet))]
		}
		return string(b)
	}
	var id string
	switch p {
	case link.TikTok:
		id = "7" + roll("012345", 1) + roll(decimal, 17) // uploaded from 2021 to 2025
	case link.Instagram:
		id = "C" + roll(letters, 10)
	case link.YouTube:
		id = roll(letters, 10) + roll("048AEIMQUYcgkosw", 1)
	case link.Facebook:
		id = "1" + roll(decimal, 15)
	}
	return world.Video(p, id, now)
}

// spread takes so many of a list, evenly from its first to its last, so that old videos are among them, whose history
// fills the days.
func spread(ids []string, n int) []string {
	if n >= len(ids) {
		return ids
	}
	taken := make([]string, max(n, 0))
	for i := range taken {
		taken[i] = ids[i*len(ids)/n]
	}
	return taken
}

func (g *generator) record(a sandbox.AccountTruth) store.Account {
	seen := store.InstantOf(g.now)
	kind := store.TrackLatest30
	r := store.Account{
		ID: g.id(a.JoinedAt, "account", string(a.Platform), a.ID), Platform: a.Platform, ExternalID: &a.ID, Username: a.Handle, HandleCurrent: true,
		Name: &a.Name, Link: link.AccountURL(a.Platform, a.Handle), CreatedAt: store.InstantOf(g.from),
		// Tracked from today on: what was uploaded before and is not among the videos stays out.
		Tracked: true, TrackingType: &kind, TrackedAt: &seen, DiscoveredAt: &seen, CheckedAt: &seen, Bio: &a.Bio,
	}
	if a.BioLink != "" {
		r.ProfileLink = &a.BioLink
	}
	return r
}

// followers are even growth since the account joined: the world tells no more than today's.
func (g *generator) followers(a sandbox.AccountTruth) []backfill.LoadFollowers {
	joined, today := store.DateOf(a.JoinedAt), g.Today
	var days []backfill.LoadFollowers
	for day := max(store.DateOf(g.from), joined); day <= today; day++ {
		d := backfill.LoadFollowers{Day: day, Following: &a.Following}
		if a.Followers != nil {
			n := *a.Followers
			if day < today {
				n = int64(float64(n) * float64(day-joined) / float64(today-joined))
			}
			if a.Platform == link.YouTube {
				n = threeFigures(n)
			}
			d.Followers = &n
		}
		days = append(days, d)
	}
	return days
}

// threeFigures is how YouTube tells subscribers.
func threeFigures(n int64) int64 {
	unit := int64(1)
	for n/unit >= 1000 {
		unit *= 10
	}
	return n / unit * unit
}

// The gap in a history, in days before today.
const gapFrom, gapTo = 20, 14

func (g *generator) video(t sandbox.VideoTruth, gap bool) (backfill.LoadVideo, error) {
	l, err := link.Parse(t.Link)
	if err != nil || l.Kind != link.Video {
		return backfill.LoadVideo{}, fmt.Errorf("link of the world's video %s of %s: %w", t.ID, t.Platform, err)
	}
	uploaded := store.DateOf(t.UploadedAt)
	v := backfill.LoadVideo{Video: store.Video{
		ID: g.id(t.UploadedAt, "video", string(t.Platform), t.ID), Platform: t.Platform, ExternalID: t.ID, Link: l.Canonical, Username: t.Account.Handle,
		Direct: true, UploadedAt: &uploaded, Title: t.Title, NotSafe: t.NotSafe, Private: t.State == sandbox.Private, HiddenStats: t.HiddenStats,
		AdInfoShop: t.ShopAd, AdIsAd: t.ShopAd,
	}}
	if t.LengthSeconds > 0 {
		length := strconv.FormatFloat(t.LengthSeconds, 'f', -1, 64)
		v.VideoLength = &length
	}
	if t.Song != nil {
		v.SongName = &t.Song.Title
		if t.Song.Link != "" {
			v.SongLink = &t.Song.Link
		}
	}
	if t.ShopProductID != "" {
		v.AdProductIDShop = &t.ShopProductID
	}
	v.Collections = g.oneOf(g.campaigns, 3)
	// The last second of a day is the next midnight's point.
	for _, truth := range g.world.HistoryTruth(t.Platform, t.ID, g.from.AddDate(0, 0, -1), g.now.Add(-time.Second)) {
		at := truth.At.Add(time.Second)
		if ago := g.Today - store.DateOf(at); gap && ago <= gapFrom && ago >= gapTo {
			continue
		}
		v.Points = append(v.Points, backfill.LoadPoint{At: store.InstantOf(at), Counts: store.Counts{Views: &truth.Views,
			Likes: truth.Likes, Comments: truth.Comments, Shares: truth.Shares, Bookmarks: truth.Bookmarks}})
	}
	if len(v.Points) > 0 {
		// Tracked some time in the day before its first point, and not before it was uploaded.
		first := v.Points[0].At.Time()
		earliest := first.AddDate(0, 0, -1)
		if t.UploadedAt.After(earliest) {
			earliest = t.UploadedAt
		}
		v.CreatedAt = store.InstantOf(earliest.Add(time.Duration(g.rand.Float64() * float64(first.Sub(earliest)))))
	}
	return v, nil
}
