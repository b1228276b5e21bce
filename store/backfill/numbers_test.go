package backfill_test

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/backfill"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
	"github.com/reeltally/reeltally/store/storetest"
)

// operations is a random sequence of operations on an organisation. After each operation, check compares the derived numbers with a computation from
// scratch.
type operations struct {
	t  *testing.T
	rt *rapid.T
	db *storetest.DB
	o  *store.Org
	n  int // number of the sequence; it makes handles and ids unique, so that organisations share no targets
	operationKinds
	videos      []link.Link
	collections []uuid.UUID
	begin       store.Date
	lastVideos  map[uuid.UUID]store.Video // the videos after the previous operation
	mixed       map[uuid.UUID]bool        // accounts that a video left, or that got a video which had views before
	pointToday  bool                      // the organisation had a point on the day of an operation
	log         []string                  // the operations, for the message of a failure
}

// operationKinds says which operations a sequence can have besides those of every sequence.
type operationKinds struct {
	late     bool // answers that are stored late
	rollUp   bool // retention
	inexact  bool // hidden and rounded counts, and points that are old enough for a weekly point
	maxSteps int
}

func (s *operations) logf(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf(format, args...))
}

func (s *operations) handle(account int) string {
	return []string{"ann", "bob", "cat"}[account] + fmt.Sprint(s.n)
}

func (s *operations) accountLink(account int) link.Link {
	return storetest.ParseLink(s.t, "https://www.tiktok.com/@"+s.handle(account))
}

func (s *operations) drawAccount() int { return rapid.IntRange(0, 2).Draw(s.rt, "account") }

// drawBool returns true in one of n cases.
func (s *operations) drawBool(name string, n int) bool {
	return rapid.IntRange(1, n).Draw(s.rt, name) == n
}

// drawVideos returns some of the indexes of s.videos.
func (s *operations) drawVideos() []int {
	return rapid.SliceOfNDistinct(rapid.IntRange(0, len(s.videos)-1), 1, len(s.videos), rapid.ID).Draw(s.rt, "videos")
}

func (s *operations) drawCount(name string, maximum int64) *int64 {
	if s.drawBool(name+" is unknown", 4) {
		return nil
	}
	return new(rapid.Int64Range(0, maximum).Draw(s.rt, name))
}

func (s *operations) drawCounts() store.Counts {
	return store.Counts{Views: s.drawCount("views", 1000), Likes: s.drawCount("likes", 100), Comments: s.drawCount("comments", 50),
		Shares: s.drawCount("shares", 10), Bookmarks: s.drawCount("bookmarks", 10)}
}

// run runs a random operation.
func (s *operations) run() {
	ctx, t, rt := s.t.Context(), s.t, s.rt
	var err error
	switch rapid.IntRange(0, 15).Draw(rt, "operation") {
	case 0, 1:
		var links []link.Link
		for _, i := range s.drawVideos() {
			s.logf("track video %d", i)
			links = append(links, s.videos[i])
		}
		storetest.Track(t, s.o, links...)
	case 2:
		var links []link.Link
		for _, i := range s.drawVideos() {
			s.logf("stop video %d", i)
			links = append(links, s.videos[i])
		}
		var ids []uuid.UUID
		ids, err = s.o.TrackedVideoIDs(ctx, links)
		require.NoError(t, err)
		_, err = s.o.StopVideos(ctx, ids)
	case 3:
		account, kind := s.drawAccount(), rapid.SampledFrom([]store.TrackingType{store.TrackLatest30, store.TrackNewOnly, store.TrackAll}).Draw(rt, "type")
		s.logf("track account %d with %s", account, kind)
		storetest.Follow(t, s.o, kind, s.accountLink(account))
	case 4:
		account := s.drawAccount()
		s.logf("stop account %d", account)
		var ids []uuid.UUID
		ids, err = s.o.TrackedAccountIDs(ctx, []link.Link{s.accountLink(account)})
		require.NoError(t, err)
		_, err = s.o.StopAccounts(ctx, ids)
	case 5, 6:
		s.fetchAccount()
	case 7:
		s.importPoints()
	case 8:
		s.changeMembers()
	case 9:
		if s.rollUp {
			s.logf("roll up")
			_, err = ingest.New(s.db.Store).ApplyRetention(ctx, storetest.NeverStop)
		}
	case 10:
		if s.late {
			s.fetchVideos(time.Duration(rapid.IntRange(0, 40).Draw(rt, "hours late")) * time.Hour)
		}
	default:
		s.fetchVideos(0)
	}
	require.NoError(rt, err)
}

// fetchVideos stores random answers about some videos. The source was called at the present time minus late.
func (s *operations) fetchVideos(late time.Duration) {
	facts := map[link.Link]ingest.VideoFacts{}
	for _, i := range s.drawVideos() {
		c := s.drawCounts()
		f := ingest.VideoFacts{Views: c.Views, Likes: c.Likes, Comments: c.Comments, Shares: c.Shares, Bookmarks: c.Bookmarks}
		if s.drawBool("has an author", 2) {
			author := s.drawAccount()
			f.Username = new(s.handle(author))
			if s.drawBool("author has an id", 2) {
				f.AccountID = new(fmt.Sprint(10*s.n + author))
			}
		}
		if s.drawBool("has a title", 2) {
			f.Title = new(rapid.SampledFrom([]string{"#dog", "#cat #dog", "none"}).Draw(s.rt, "title"))
		}
		if s.drawBool("has an upload date", 2) {
			f.UploadedAt = new(s.db.Clock.Now().AddDate(0, 0, -rapid.IntRange(0, 3).Draw(s.rt, "days since the upload")))
		}
		if s.inexact {
			if s.drawBool("is rounded", 5) {
				f.RoundedFrom.Views = new(int64(10_000))
			}
			if s.drawBool("likes are hidden", 5) {
				f.HiddenStats, f.Likes = new(true), nil
			}
		}
		s.logf("fetch video %d %s late: %s, author %s, id %s", i, late, textOf(c), orUnknown(f.Username), orUnknown(f.AccountID))
		facts[s.videos[i]] = f
	}
	storetest.Measure(s.t, s.db, s.db.Clock.Now().Add(-late), facts)
}

// fetchAccount stores a random answer about one of the tracked accounts. The answer can report an id, another handle, and a list of videos.
func (s *operations) fetchAccount() {
	targets := storetest.Column[string](s.t, s.db, "SELECT external_id FROM fetch_subscriptions WHERE organisation_id = ? AND kind = 'account' ORDER BY external_id", s.o.ID())
	if len(targets) == 0 {
		return
	}
	target := queue.Target{Platform: link.TikTok, Kind: queue.KindAccount, ExternalID: rapid.SampledFrom(targets).Draw(s.rt, "target")}
	target.Handle = storetest.Column[string](s.t, s.db, "SELECT handle FROM fetch_targets WHERE kind = 'account' AND external_id = ?", target.ExternalID)[0]
	facts := ingest.AccountFacts{Followers: s.drawCount("followers", 100), Following: s.drawCount("following", 10)}
	switch known := store.IsAccountID(target.ExternalID); {
	case known && s.drawBool("is renamed", 2):
		facts.Username = new(s.handle(s.drawAccount()))
	case !known:
		facts.Username = new(target.ExternalID[1:])
		if s.drawBool("has an id", 2) {
			facts.ID = new(fmt.Sprint(10*s.n + s.drawAccount()))
		}
	}
	if facts.Listed = s.drawBool("is listed", 2); facts.Listed {
		for _, i := range s.drawVideos() {
			if l := s.videos[i]; l.Platform == link.TikTok {
				facts.Videos = append(facts.Videos, ingest.FoundVideo{ID: l.ID, Link: l.Canonical})
			}
		}
	}
	s.logf("fetch account %s: id %s, handle %s, %d videos", target.ExternalID, orUnknown(facts.ID), orUnknown(facts.Username), len(facts.Videos))
	outcome := storetest.AccountOutcome(s.db, target, facts)
	require.NoError(s.rt, s.db.Acknowledge(s.t.Context(), queue.Claim{}, store.InstantOf(s.db.Clock.Now()), []ingest.Outcome{outcome}))
}

// importPoints imports random points of some videos.
func (s *operations) importPoints() {
	var videos []backfill.ImportVideo
	oldest := 60
	if s.inexact {
		oldest = 130
	}
	for _, i := range s.drawVideos() {
		v := backfill.ImportVideo{Link: s.videos[i], Stopped: s.drawBool("is stopped", 5)}
		if s.drawBool("has an author", 2) {
			v.Username = s.handle(s.drawAccount())
		}
		for _, ago := range rapid.SliceOfNDistinct(rapid.IntRange(0, oldest), 0, 4, rapid.ID).Draw(s.rt, "days ago") {
			v.Points = append(v.Points, backfill.Point{At: store.InstantOf(s.db.Clock.Now().AddDate(0, 0, -ago)), Counts: s.drawCounts()})
		}
		slices.SortFunc(v.Points, func(a, b backfill.Point) int { return cmp.Compare(a.At, b.At) })
		s.logf("import video %d, stopped %t, author %s", i, v.Stopped, v.Username)
		for _, p := range v.Points {
			s.logf("  point of day %d: %s", p.At.Day()-s.begin, textOf(p.Counts))
		}
		videos = append(videos, v)
	}
	_, err := backfill.Import(s.t.Context(), s.o, videos, false)
	require.NoError(s.rt, err)
}

// changeMembers adds a video or an account to a collection, or removes it.
func (s *operations) changeMembers() {
	ctx, c := s.t.Context(), rapid.SampledFrom(s.collections).Draw(s.rt, "collection")
	var countsFrom *store.Date
	if s.drawBool("with the first day of the gains", 3) {
		countsFrom = new(storetest.Today(s.db) - store.Date(rapid.IntRange(0, 40).Draw(s.rt, "days ago")))
	}
	changeVideos, changeAccounts, verb := func(ctx context.Context, c uuid.UUID, ids []uuid.UUID) (int64, error) {
		return s.o.AddVideos(ctx, c, ids, countsFrom)
	}, s.o.AddAccounts, "add"
	if s.drawBool("remove", 3) {
		changeVideos, changeAccounts, verb = s.o.RemoveVideos, s.o.RemoveAccounts, "remove"
	}
	var err error
	if s.drawBool("account", 3) {
		account := s.drawAccount()
		if a, notFound := s.o.Account(ctx, store.Ref{Link: s.accountLink(account)}); notFound == nil {
			s.logf("%s account %d as a member", verb, account)
			_, err = changeAccounts(ctx, c, []uuid.UUID{a.ID})
		}
	} else {
		video := rapid.IntRange(0, len(s.videos)-1).Draw(s.rt, "video")
		if v, notFound := s.o.Video(ctx, store.Ref{Link: s.videos[video]}); notFound == nil {
			s.logf("%s video %d as a member", verb, video)
			_, err = changeVideos(ctx, c, []uuid.UUID{v.ID})
		}
	}
	require.NoError(s.rt, err)
}

func orUnknown(text *string) string {
	if text == nil {
		return "unknown"
	}
	return *text
}

func textOf(c store.Counts) string {
	text := ""
	for _, n := range c.All() {
		if n == nil {
			text += " -"
		} else {
			text += fmt.Sprintf(" %d", *n)
		}
	}
	return text[1:]
}

// requireEqual fails the test if two values are different. The message has the operations.
func (s *operations) requireEqual(want, got any, what ...any) {
	if !reflect.DeepEqual(want, got) {
		for _, line := range s.log {
			s.rt.Log(line)
		}
		require.Equal(s.rt, want, got, what...)
	}
}

// column returns the values of a query with the parameter organisation_id.
func (s *operations) column(query string) []int64 {
	return storetest.Column[int64](s.t, s.db, query, s.o.ID())
}

// check compares all derived numbers of the organisation with a computation from its videos, accounts and points.
func (s *operations) check() {
	storetest.RequireConsistent(s.t, s.db, s.o)
	videos := storetest.ListVideos(s.t, s.o, store.VideoQuery{IncludeRemoved: true}).Rows
	for i := range videos {
		s.checkVideo(&videos[i])
	}
	s.checkTotals(videos)
	s.findMixedAccounts(videos)
	s.checkAccounts(videos)
	s.checkCollections()
}

// checkVideo compares the latest counts, the first views and the growth of a video with its stored points.
func (s *operations) checkVideo(v *store.Video) {
	points, err := s.o.History(s.t.Context(), store.Ref{ID: v.ID}, s.begin-200, storetest.Today(s.db))
	require.NoError(s.rt, err)
	points = slices.DeleteFunc(points, func(p store.Point) bool { return p.Quality == store.QualityInterpolated })
	if s.inexact {
		return // hidden and rounded counts are not copied from the points
	}
	var latest store.Counts
	views, first := map[store.Date]int64{}, int64(-1)
	for _, p := range slices.Backward(points) {
		latest.Update(p.Counts)
		if p.Views != nil {
			if views[p.Day] = *p.Views; len(views) == 1 {
				first = *p.Views
			}
		}
	}
	s.requireEqual(latest, v.Latest, "latest counts")
	s.requireEqual(latest.Engagement(), v.LatestEngagement, "latest engagement")
	s.requireEqual(len(points) == 0, v.LatestUpdatedAt == nil, "the video has an update time if it has points")
	if len(points) == 0 {
		return
	}
	day := v.LatestUpdatedAt.Day()
	s.requireEqual(points[0].Day, day, "day of the last point")
	if s.rollUp {
		return // the points of some days have been deleted
	}
	s.requireEqual([]int64{first}, storetest.Column[int64](s.t, s.db, "SELECT COALESCE(first_views, -1) FROM videos WHERE organisation_id = ? AND id = ?", s.o.ID(), v.ID), "first views")
	viewsBefore := func(days store.Date) *int64 {
		// The growth is unknown if no point in the period has views.
		known := false
		for d := day; d > day-days; d-- {
			_, ok := views[d]
			known = known || ok
		}
		for d := day - days; known && d >= s.begin-200; d-- {
			if n, ok := views[d]; ok {
				return &n
			}
		}
		return nil
	}
	want := store.Growth{Increase1d: ingest.Increase(v.Latest.Views, viewsBefore(1)), Increase7d: ingest.Increase(v.Latest.Views, viewsBefore(7)),
		Increase14d: ingest.Increase(v.Latest.Views, viewsBefore(14)), Increase30d: ingest.Increase(v.Latest.Views, viewsBefore(30))}
	if n := viewsBefore(7); n != nil {
		want.ViewsGained7d = new(*v.Latest.Views - *n)
	}
	s.requireEqual(want, v.Growth, "growth")
}

// checkTotals compares the organisation's totals, uploads and last point with its videos and accounts.
func (s *operations) checkTotals(videos []store.Video) {
	var sums store.Counts
	uploads := map[store.Date]int64{}
	tracked := int64(0)
	for i := range videos {
		sums.Add(videos[i].Latest)
		if !videos[i].Removed {
			tracked++
		}
		if day := videos[i].UploadedAt; day != nil {
			uploads[*day]++
		}
	}
	want := []int64{tracked, int64(len(videos)) - tracked}
	for _, n := range sums.All() {
		want = append(want, zeroIfNil(n))
	}
	ofAccounts := s.column(`SELECT COALESCE(SUM(CASE WHEN tracked THEN 1 ELSE 0 END), 0) FROM accounts WHERE organisation_id = ?`)
	ofAccounts = append(ofAccounts, s.column("SELECT COUNT(*) FROM accounts WHERE organisation_id = ? AND removed")...)
	for _, column := range []string{"latest_followers_count", "latest_following_count"} {
		ofAccounts = append(ofAccounts, s.column("SELECT CAST(COALESCE(SUM("+column+"), 0) AS bigint) FROM accounts WHERE organisation_id = ?")...)
	}
	var got []int64
	for _, column := range slices.Concat([]string{"videos", "videos_removed"}, db.MetricNames(""), []string{"accounts", "accounts_removed", "followers", "following"}) {
		got = append(got, s.column("SELECT "+column+" FROM organisation_totals WHERE organisation_id = ?")...)
	}
	s.requireEqual(append(want, ofAccounts...), got, "organisation_totals")

	points, err := s.o.OrganisationHistory(s.t.Context(), s.begin-200, storetest.Today(s.db))
	require.NoError(s.rt, err)
	stored := map[store.Date]int64{}
	for _, p := range points {
		if p.Uploads > 0 {
			stored[p.Day] = p.Uploads
		}
	}
	s.requireEqual(uploads, stored, "uploads")
	points = slices.DeleteFunc(points, func(p store.OrganisationPoint) bool { return p.UploadsOnly })
	if len(points) == 0 {
		return
	}
	last := points[0]
	s.requireEqual(sums, last.Counts, "sums of the organisation's last point")
	// An import can make the first point for a day before the tracking of other videos began.
	s.pointToday = s.pointToday || last.Day == storetest.Today(s.db)
	if s.pointToday {
		s.requireEqual([]int64{tracked, ofAccounts[0], ofAccounts[2], ofAccounts[3]},
			[]int64{last.Videos, last.Accounts, zeroIfNil(last.Followers), zeroIfNil(last.Following)}, "numbers of the organisation's last point")
	}
}

func zeroIfNil(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// checkAccounts compares the statistics and the last points of the accounts with their videos.
func (s *operations) checkAccounts(videos []store.Video) {
	page, err := s.o.ListAccounts(s.t.Context(), store.AccountQuery{IncludeRemoved: true, IncludeLinked: true, Order: store.Order{Column: "created_at"}, Window: store.Window{Limit: 100}})
	require.NoError(s.rt, err)
	linked := 0
	for i := range page.Rows {
		a := &page.Rows[i]
		var own []store.AccountVideo
		var ownVideos []store.Video
		for _, v := range videos {
			if v.LinkedAccountID == nil || *v.LinkedAccountID != a.ID {
				continue
			}
			linked++
			if !v.Removed {
				s.requireEqual(a.Username, v.Username, "handle of the video")
				own = append(own, store.AccountVideo{Counts: v.Latest, UploadedAt: v.UploadedAt})
				ownVideos = append(ownVideos, v)
			}
		}
		want := store.StatsOf(own)
		s.requireEqual(want, store.AccountStats{Videos: a.TotalVideosTracked, MeanViews: a.MeanViews, MedianViews: a.MedianViews, MedianViewsNonZero: a.MedianViewsNonZero,
			MostViewed: a.MostViewed, PercentOutperform10x: a.PercentOutperform10x, PercentOutperform25x: a.PercentOutperform25x, LastUploadedAt: a.LastUploadedAt,
			Counts: a.Total}, "statistics of the account")
		for _, v := range videos {
			if v.LinkedAccountID != nil && *v.LinkedAccountID == a.ID && !v.Removed {
				s.requireEqual(want.OutlierMultiplier(v.Latest.Views), v.OutlierMultiplier, "outlier multiplier")
			}
		}
		points, err := s.o.AccountHistory(s.t.Context(), store.Ref{ID: a.ID}, s.begin-200, storetest.Today(s.db))
		require.NoError(s.rt, err)
		if len(points) > 0 {
			s.requireEqual(want.Counts, points[0].Counts, "sums of the account's last point")
			s.requireEqual([]*int64{a.LatestFollowersCount, a.LatestFollowingCount}, []*int64{points[0].Followers, points[0].Following}, "followers of the account's last point")
		}
		s.checkGains(a, points, ownVideos)
	}
	for i := range videos {
		if videos[i].LinkedAccountID != nil {
			linked--
		}
	}
	s.requireEqual(0, linked, "each linked account must exist")
}

// checkCollections compares the sums of the collections with the lists of their videos.
func (s *operations) checkCollections() {
	ctx, today := s.t.Context(), storetest.Today(s.db)
	sums, err := s.o.CollectionSums(ctx)
	require.NoError(s.rt, err)
	for _, c := range s.collections {
		var want store.CollectionSum
		var latest store.Counts
		members := storetest.ListVideos(s.t, s.o, store.VideoQuery{CollectionID: &c, IncludeRemoved: true}).Rows
		for i := range members {
			latest.Add(members[i].Latest)
			if v := members[i]; !v.Removed {
				want.Videos++
				if v.Latest.Views != nil {
					want.Views = new(zeroIfNil(want.Views) + *v.Latest.Views)
				}
			}
		}
		s.requireEqual(want, sums[c], "sums of the tracked videos of the collection")
		from := today - store.Date(rapid.IntRange(0, 20).Draw(s.rt, "days of the period"))
		totals, err := s.o.CollectionTotals(ctx, store.CollectionTotalsQuery{Collection: c, From: from, To: today})
		require.NoError(s.rt, err)
		s.requireEqual(len(members), len(totals.Videos), "videos of the collection")
		if len(members) > 0 && !s.inexact {
			s.requireEqual(latest, totals.Days[len(totals.Days)-1].KnownSums(), "sums of the collection on the last day of the period")
		}
	}
}

func TestNumbers_areThoseOfAComputationFromScratch(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, db *storetest.DB) {
		n := 0
		for _, kinds := range []operationKinds{{maxSteps: 14}, {maxSteps: 10, late: true}, {maxSteps: 10, rollUp: true}, {maxSteps: 10, late: true, rollUp: true, inexact: true}} {
			rapid.Check(t, func(rt *rapid.T) {
				n++
				s := &operations{t: t, rt: rt, db: db, o: storetest.NewOrg(t, db), n: n, begin: storetest.Today(db), operationKinds: kinds, mixed: map[uuid.UUID]bool{}}
				for i := range 4 {
					s.videos = append(s.videos, storetest.ParseLink(t, fmt.Sprintf("https://www.tiktok.com/@%s/video/7301234%04d%08d", s.handle(i%3), n, i)))
				}
				s.videos[3].Handle = ""
				s.videos = append(s.videos, storetest.ParseLink(t, fmt.Sprintf("https://www.youtube.com/shorts/dQw4w9%04dQ", n)))
				for _, tag := range []string{"dog", "cat"} {
					c, err := s.o.CreateCollection(t.Context(), store.NewCollection{Name: tag, Access: store.AccessPrivate, Hashtags: []string{tag}})
					require.NoError(t, err)
					s.collections = append(s.collections, c.ID)
				}
				for range rapid.IntRange(2, kinds.maxSteps).Draw(rt, "steps") {
					hours := rapid.IntRange(0, 40).Draw(rt, "hours")
					if s.drawBool("pause", 6) {
						hours += 24 * rapid.IntRange(3, 40).Draw(rt, "days")
					}
					db.Clock.Advance(time.Duration(hours) * time.Hour)
					s.logf("day %d, %s:", storetest.Today(db)-s.begin, db.Clock.Now().Format("15:04"))
					s.run()
					s.check()
				}
			})
		}
	})
}
