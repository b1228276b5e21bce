package seed

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/reeltally/reeltally/collector/sandbox"
	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// firstVideo is the video that the generator adds to a new account before all other videos of the account.
type firstVideo struct {
	truth sandbox.VideoTruth
	gap   bool // if true, some days in the history of the video have no points
}

// specialVideos returns up to five TikTok videos with unusual histories, or nil if the plan is too small or has no
// TikTok videos.
func (g *generator) specialVideos() []*firstVideo {
	tiktok := false
	for _, p := range g.Platforms {
		tiktok = tiktok || p == link.TikTok
	}
	if !tiktok || g.Days < 30 || g.Videos < 20 {
		return nil
	}
	var found []*firstVideo
	for _, want := range []struct {
		category sandbox.Category
		age      int // age of the video in days
		gap      bool
	}{{sandbox.Normal, int(g.Days), false}, {sandbox.Viral, 60, false}, {sandbox.BecomesDeleted, 45, false}, {sandbox.BecomesPrivate, 45, false}, {sandbox.Normal, 80, true}} {
		// A TikTok id contains the upload time, so a video of a given age can be found.
		if v, ok := g.findVideo(want.category, g.now.AddDate(0, 0, -want.age)); ok {
			found = append(found, &firstVideo{v, want.gap})
		}
	}
	return found
}

// maxTries is the maximum number of random ids that findVideo tries. It is large because only one in several thousand videos is in
// the rarest category.
const maxTries = 200_000

// findVideo returns a random TikTok video with the given category and upload time. It returns false if maxTries random
// ids gave no suitable video.
func (g *generator) findVideo(c sandbox.Category, uploaded time.Time) (sandbox.VideoTruth, bool) {
	for range maxTries {
		id := strconv.FormatUint(uint64(uploaded.Unix())<<32|uint64(g.rand.Uint32()), 10) //nolint:gosec // not negative, because the time is after 1970
		v, ok := g.world.Video(link.TikTok, id, g.now)
		if !ok || v.Category != c {
			continue
		}
		// Skip a video that changes its state (deleted or private) at another time than 5 to 25 days ago.
		if v.ChangesAt != nil && (v.ChangesAt.After(g.now.AddDate(0, 0, -5)) || v.ChangesAt.Before(g.now.AddDate(0, 0, -25))) {
			continue
		}
		a, ok := g.world.Account(link.TikTok, v.Account.Handle, g.now)
		if !ok || a.Category != sandbox.AccountNormal || g.usedAccounts[string(link.TikTok)+a.Handle] || (c == sandbox.Viral && !g.isOutlier(v)) {
			continue
		}
		return v, true
	}
	return sandbox.VideoTruth{}, false
}

// minOutlier is the smallest outlier multiplier of a viral video. The multiplier is the video's views divided by the
// median views of the account's other videos.
const minOutlier = 5

// isOutlier returns true if the outlier multiplier of v is at least minOutlier. It returns false if the account
// of v gets no other video.
func (g *generator) isOutlier(v sandbox.VideoTruth) bool {
	var views []int64
	for _, id := range g.accountVideos(v.Platform, v.Account.Handle, g.PerAccount-1) {
		if other, ok := g.world.Video(v.Platform, id, g.now); ok && id != v.ID {
			views = append(views, other.Views)
		}
	}
	slices.Sort(views)
	return len(views) > 0 && v.Views >= minOutlier*views[len(views)/2]
}

// accountVideos returns the ids of up to n uploads of an account, evenly distributed over the time of its uploads.
func (g *generator) accountVideos(p link.Platform, handle string, n int) []string {
	// The even distribution includes old videos, which have long histories.
	return pickEvenly(g.world.Uploads(p, handle, g.now), n)
}

// generateAccount generates the account that uploaded startVideo, and some of the account's videos. If
// startVideo is nil, a random video of the platform p takes its place.
func (g *generator) generateAccount(p link.Platform, startVideo *firstVideo) (backfill.SeedAccount, error) {
	if startVideo == nil {
		// On TikTok and Instagram, a random video is usually years old, so its history usually has Plan.Days days.
		v, ok := AnyVideo(g.world, p, g.rand, g.now)
		if !ok {
			return backfill.SeedAccount{}, fmt.Errorf("the sandbox has no video for a random id of platform %s", p)
		}
		startVideo = &firstVideo{truth: v}
	}
	p, handle := startVideo.truth.Platform, startVideo.truth.Account.Handle
	a, ok := g.world.Account(p, handle, g.now)
	if !ok || a.State != sandbox.Public || a.Category == sandbox.AccountNoHandle || g.usedAccounts[string(p)+a.Handle] {
		// The result has no videos, not even startVideo.
		return backfill.SeedAccount{}, nil
	}
	g.usedAccounts[string(p)+a.Handle] = true
	out := backfill.SeedAccount{Account: g.accountRecord(a), Days: g.followerCounts(a)}
	out.Collections = append(g.randomOrNil(g.accountCollections, 3), g.randomOrNil(g.mixedCollections, 8)...)
	add := func(v sandbox.VideoTruth, gap bool) error {
		video, err := g.generateVideo(v, gap)
		// Leave out a video without history points.
		if err == nil && len(video.Points) > 0 {
			out.Videos = append(out.Videos, video)
			g.videosLeft--
			g.videos[p]++
		}
		return err
	}
	if err := add(startVideo.truth, startVideo.gap); err != nil {
		return out, err
	}
	for _, id := range g.accountVideos(p, a.Handle, g.PerAccount-len(out.Videos)) {
		if g.videosLeft == 0 {
			break
		}
		if startVideo.truth.ID == id {
			continue
		}
		v, ok := g.world.Video(p, id, g.now)
		if !ok {
			continue
		}
		if err := add(v, false); err != nil {
			return out, err
		}
	}
	return out, nil
}

// AnyVideo returns the video that the sandbox has for a random id of a platform. It returns false if the sandbox has none.
func AnyVideo(world *sandbox.World, p link.Platform, random *rand.Rand, now time.Time) (sandbox.VideoTruth, bool) {
	const decimal, letters = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	randomText := func(alphabet string, n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		return string(b)
	}
	var id string
	switch p {
	case link.TikTok:
		id = "7" + randomText("012345", 1) + randomText(decimal, 17) // TikTok ids contain the upload time; those that begin with 70 to 75 are from 2021 to 2025
	case link.Instagram:
		id = "C" + randomText(letters, 10)
	case link.YouTube:
		id = randomText(letters, 10) + randomText("048AEIMQUYcgkosw", 1)
	case link.Facebook:
		id = "1" + randomText(decimal, 15)
	}
	return world.Video(p, id, now)
}

// pickEvenly returns n ids at equal distances in the list. If the list has at most n ids, it returns all of them.
func pickEvenly(ids []string, n int) []string {
	if n >= len(ids) {
		return ids
	}
	chosen := make([]string, max(n, 0))
	for i := range chosen {
		chosen[i] = ids[i*len(ids)/n]
	}
	return chosen
}

// accountRecord returns the row of a tracked account that a collector has just checked. The tracking type is latest_30.
func (g *generator) accountRecord(a sandbox.AccountTruth) store.Account {
	now := store.InstantOf(g.now)
	kind := store.TrackLatest30
	r := store.Account{
		ID: g.idFor(a.JoinedAt, "account", string(a.Platform), a.ID), Platform: a.Platform, ExternalID: &a.ID, Username: a.Handle, HandleCurrent: true,
		Name: &a.Name, Link: link.AccountURL(a.Platform, a.Handle), CreatedAt: store.InstantOf(g.from),
		// Because TrackedAt is today, collectors do not track the earlier uploads of the account.
		Tracked: true, TrackingType: &kind, TrackedAt: &now, DiscoveredAt: &now, CheckedAt: &now, Bio: &a.Bio,
	}
	if a.BioLink != "" {
		r.ProfileLink = &a.BioLink
	}
	return r
}

// followerCounts returns the number of followers on each day. The numbers before today are made up, because the sandbox
// knows only today's number.
func (g *generator) followerCounts(a sandbox.AccountTruth) []backfill.FollowerCounts {
	joined, today := store.DateOf(a.JoinedAt), g.Today
	var days []backfill.FollowerCounts
	for day := max(store.DateOf(g.from), joined); day <= today; day++ {
		d := backfill.FollowerCounts{Day: day, Following: &a.Following}
		if a.Followers != nil {
			n := *a.Followers
			if day < today {
				// The numbers grow linearly from 0, on the day of the account's creation, to today's number.
				n = int64(float64(n) * float64(day-joined) / float64(today-joined))
			}
			if a.Platform == link.YouTube {
				n = roundToThreeDigits(n)
			}
			d.Followers = &n
		}
		days = append(days, d)
	}
	return days
}

// roundToThreeDigits rounds n down to three significant digits, as YouTube does with subscriber counts.
func roundToThreeDigits(n int64) int64 {
	unit := int64(1)
	for n/unit >= 1000 {
		unit *= 10
	}
	return n / unit * unit
}

// refusal returns why the latest fetches of a video failed, or nil if they did not fail. Only fetches of deleted and
// private videos fail.
func (g *generator) refusal(t sandbox.VideoTruth, points []backfill.Point) *backfill.FetchRefusal {
	// If the video has a point of today, its latest fetch succeeded.
	if len(points) == 0 || points[len(points)-1].At.Day() == g.Today {
		return nil
	}
	switch t.State {
	case sandbox.Private:
		return &backfill.FetchRefusal{Status: queue.FetchPrivate, At: store.InstantOf(g.now), State: queue.StateParked, RefusedAs: "refused",
			Refusals: schedule.RefusalsUntilParked, Detail: "the sandbox says that the video is private"}
	case sandbox.Deleted:
		return &backfill.FetchRefusal{Status: queue.FetchGone, At: store.InstantOf(g.now), State: queue.StateGone, RefusedAs: queue.StateGone,
			Refusals: schedule.AnswersUntilGone, Detail: "the sandbox did not find the video"}
	}
	return nil
}

// gapFrom and gapTo say when the gap in a history begins and ends, in days before today.
const gapFrom, gapTo = 20, 14

// generateVideo returns the database records of a sandbox video and its history. If gap is true, the points from
// gapFrom to gapTo are missing.
func (g *generator) generateVideo(t sandbox.VideoTruth, gap bool) (backfill.SeedVideo, error) {
	l, err := link.Parse(t.Link)
	if err != nil || l.Kind != link.Video {
		return backfill.SeedVideo{}, fmt.Errorf("the link of the sandbox's %s video %s is invalid: %w", t.Platform, t.ID, err)
	}
	uploaded := store.DateOf(t.UploadedAt)
	v := backfill.SeedVideo{Video: store.Video{
		ID: g.idFor(t.UploadedAt, "video", string(t.Platform), t.ID), Platform: t.Platform, ExternalID: t.ID, Link: l.Canonical, Username: t.Account.Handle,
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
	picture := t.ThumbnailURL()
	v.ThumbnailURL = &picture
	if t.ShopProductID != "" {
		v.AdProductIDShop = &t.ShopProductID
	}
	v.Collections = g.randomOrNil(g.videoCollections, 3)
	// The time of each point is midnight, but the point has the counts that the sandbox had one second earlier.
	for _, truth := range g.world.DailyCounts(t.Platform, t.ID, g.from.AddDate(0, 0, -1), g.now.Add(-time.Second)) {
		at := truth.At.Add(time.Second)
		if daysAgo := g.Today - store.DateOf(at); gap && daysAgo <= gapFrom && daysAgo >= gapTo {
			continue
		}
		v.Points = append(v.Points, backfill.Point{At: store.InstantOf(at), Counts: store.Counts{Views: &truth.Views,
			Likes: truth.Likes, Comments: truth.Comments, Shares: truth.Shares, Bookmarks: truth.Bookmarks}})
	}
	v.Refused = g.refusal(t, v.Points)
	if len(v.Points) > 0 {
		// Let the tracking of the video begin at a random time in the 24 hours before its first point, but not before its upload.
		first := v.Points[0].At.Time()
		earliest := first.AddDate(0, 0, -1)
		if t.UploadedAt.After(earliest) {
			earliest = t.UploadedAt
		}
		v.CreatedAt = store.InstantOf(earliest.Add(time.Duration(g.rand.Float64() * float64(first.Sub(earliest)))))
	}
	return v, nil
}
