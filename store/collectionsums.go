package store

import (
	"context"
	"math/bits"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store/internal/db"
)

// These limits bound the work for the sums of all collections, and for the sums of a collection by day. A hashtag of a video counts if a
// collection has this hashtag.
const (
	MaxSumMembers     = 500_000 // highest number of added videos and accounts in all collections of an organisation
	MaxSumHashtags    = 300_000 // highest number of hashtags of videos
	MaxTotalsMembers  = 100_000 // highest number of added videos and accounts in the collections of a CollectionTotalsQuery
	MaxTotalsHashtags = 200_000 // highest number of hashtags of videos
)

// memberCounts is a SQL query that returns two numbers. The first is the number of videos and accounts that were added to the collections. The
// second is the number of hashtags of videos that are also hashtags of the collections. The query stops counting at @added and @tagged.
// {collections} is a condition that selects the collections.
const memberCounts = `SELECT (SELECT COUNT(*) FROM (
 SELECT 1 AS one FROM collection_videos m WHERE m.organisation_id = @org AND {collections}
 UNION ALL SELECT 1 AS one FROM collection_accounts m WHERE m.organisation_id = @org AND {collections} LIMIT @added) AS a),
 (SELECT COUNT(*) FROM (SELECT 1 AS one FROM video_hashtags h WHERE h.organisation_id = @org AND h.tag IN (
  SELECT m.tag FROM collection_hashtags m WHERE m.organisation_id = @org AND {collections}) LIMIT @tagged) AS t)`

// checkMembers returns a *LimitError if the collections have more added members or more hashtags of videos than allowed. If the
// parameter `in` is nil, it counts the members of all collections.
func (o *Org) checkMembers(ctx context.Context, in []uuid.UUID, maxAdded, maxTagged int) error {
	condition := "m.collection_id IN @in"
	if in == nil {
		condition = "TRUE"
	}
	q := o.s.db.Read(ctx).Raw(strings.ReplaceAll(memberCounts, "{collections}", condition), map[string]any{"org": o.id, "in": in, "added": maxAdded + 1, "tagged": maxTagged + 1})
	return o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		switch {
		case row.Count(0) > int64(maxAdded):
			return tooManyMembers(maxAdded, "added videos and accounts")
		case row.Count(1) > int64(maxTagged):
			return tooManyMembers(maxTagged, "videos with their hashtags")
		}
		return nil
	})
}

// tooManyMembers returns the error for collections with more than limit members. "what" names these members.
func tooManyMembers(limit int, what string) error {
	return limitError(LimitTotals, "the collections have more than %d %s in total; the counts of at most %[1]d can be added up", limit, what)
}

// accountCounts is a SQL query for the number of accounts by collection. It leaves out accounts
// whose tracking was stopped. {m} is a condition for the collections.
const accountCounts = `
SELECT m.collection_id, COUNT(*) AS n FROM collection_accounts m
  JOIN accounts a ON a.organisation_id = m.organisation_id AND a.id = m.account_id
 WHERE m.organisation_id = @org AND {m} AND NOT a.removed GROUP BY m.collection_id`

// CollectionSum has the sums over the tracked videos of a collection, without the videos of the collections below it.
type CollectionSum struct {
	Videos int64  // number of tracked videos; equal to Collection.VideoCount
	Views  *int64 // sum of the known latest views; nil if the views of no video are known
}

// CollectionSums returns the sums of all collections of the organisation by their ids. Collections without tracked videos are not in the map. The
// error can be a *LimitError.
func (o *Org) CollectionSums(ctx context.Context) (map[uuid.UUID]CollectionSum, error) {
	// A join of collections, hashtags and videos can have tens of millions of rows. So the members of collections, accounts and hashtags are
	// read separately, and this function joins them as sets of bits.
	if err := o.checkMembers(ctx, nil, MaxSumMembers, MaxSumHashtags); err != nil {
		return nil, err
	}
	v, err := o.readNumberedVideos(ctx)
	if err != nil {
		return nil, err
	}
	members, err := o.readVideoGroups(ctx, v)
	if err != nil {
		return nil, err
	}
	sums := map[uuid.UUID]CollectionSum{}
	union := make(videoSet, v.words())
	for id, groups := range members {
		clear(union)
		for _, g := range groups {
			g.addTo(union)
		}
		if sum := v.sum(union); sum.Videos > 0 {
			sums[id] = sum
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// videoSet is a set of tracked videos. The bit with the number n says whether the video with the number n is in the set.
type videoSet []uint64

func (s videoSet) add(n int32) { s[n/64] |= 1 << (n % 64) }

// numberedVideos has the tracked videos of an organisation. Each video has a number, which begins at 0.
type numberedVideos struct {
	numbers  map[uuid.UUID]int32
	views    []int64               // latest views by number; 0 if unknown
	known    videoSet              // the videos whose latest views are known
	accounts map[uuid.UUID][]int32 // numbers of the videos of each account
}

// words returns the length of a videoSet that can have every video.
func (v *numberedVideos) words() int { return (len(v.views) + 63) / 64 }

// sum returns the number of videos in the set s and the sum of their known views. Views is nil if no views are known.
func (v *numberedVideos) sum(s videoSet) CollectionSum {
	var sum CollectionSum
	var views int64
	for i, word := range s {
		sum.Videos += int64(bits.OnesCount64(word))
		for known := word & v.known[i]; known != 0; known &= known - 1 {
			views += v.views[64*i+bits.TrailingZeros64(known)]
			sum.Views = &views
		}
	}
	return sum
}

// readNumberedVideos reads the tracked videos of the organisation.
func (o *Org) readNumberedVideos(ctx context.Context) (*numberedVideos, error) {
	v := &numberedVideos{numbers: map[uuid.UUID]int32{}, accounts: map[uuid.UUID][]int32{}}
	q := o.scopedQuery(ctx, "videos").Select("videos.id, videos.linked_account_id, videos.latest_views").Where("NOT videos.removed")
	err := o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		n := int32(len(v.views)) //nolint:gosec // an organisation has far fewer than 2^31 videos
		v.numbers[row.ID(0)] = n
		if account, ok := row.UUID(1); ok {
			v.accounts[account] = append(v.accounts[account], n)
		}
		if n%64 == 0 {
			v.known = append(v.known, 0)
		}
		views, known := row.Int(2)
		if v.views = append(v.views, views); known {
			v.known.add(n)
		}
		return nil
	})
	return v, err
}

// videoGroup is a group of videos that belongs to collections as a whole. These are the videos of an account, the videos of a hashtag, or the videos
// that were added to one collection. A group has the numbers of its videos or, for many videos, a videoSet, because the set is then smaller and
// faster.
type videoGroup struct {
	numbers []int32
	set     videoSet
}

// newGroup returns the group of the videos with the given numbers. If there are more numbers than words of a videoSet, the group has a videoSet.
func (v *numberedVideos) newGroup(numbers []int32) *videoGroup {
	if len(numbers) <= v.words() {
		return &videoGroup{numbers: numbers}
	}
	g := &videoGroup{set: make(videoSet, v.words())}
	for _, n := range numbers {
		g.set.add(n)
	}
	return g
}

// addTo adds the videos of the group to the set s.
func (g *videoGroup) addTo(s videoSet) {
	for i, word := range g.set {
		s[i] |= word
	}
	for _, n := range g.numbers {
		s.add(n)
	}
}

// readVideoGroups returns the groups of videos in each collection. Groups can have common videos.
func (o *Org) readVideoGroups(ctx context.Context, v *numberedVideos) (map[uuid.UUID][]*videoGroup, error) {
	members := map[uuid.UUID][]*videoGroup{}
	// numbersOf returns the numbers of the videos with the given ids. It leaves out stopped videos.
	numbersOf := func(ids []uuid.UUID) []int32 {
		numbers := make([]int32, 0, len(ids))
		for _, id := range ids {
			if n, ok := v.numbers[id]; ok {
				numbers = append(numbers, n)
			}
		}
		return numbers
	}
	accounts, tags := map[uuid.UUID]*videoGroup{}, map[string]*videoGroup{}
	for id, numbers := range v.accounts {
		accounts[id] = v.newGroup(numbers)
	}
	// Each list of ids is read as one text, because this takes a fraction of the time for reading a row for each id.
	for _, read := range []struct {
		query string
		each  func(row *db.Values) error
	}{
		{`SELECT m.collection_id, string_agg(CAST(m.video_id AS text), '') FROM collection_videos m WHERE m.organisation_id = @org GROUP BY m.collection_id`, func(row *db.Values) error {
			ids, err := parseIDs(row.String(1))
			members[row.ID(0)] = append(members[row.ID(0)], v.newGroup(numbersOf(ids)))
			return err
		}},
		{`SELECT m.collection_id, string_agg(CAST(m.account_id AS text), '') FROM collection_accounts m WHERE m.organisation_id = @org GROUP BY m.collection_id`, func(row *db.Values) error {
			ids, err := parseIDs(row.String(1))
			for _, id := range ids {
				if g := accounts[id]; g != nil {
					members[row.ID(0)] = append(members[row.ID(0)], g)
				}
			}
			return err
		}},
		{`SELECT h.tag, string_agg(CAST(h.video_id AS text), '') FROM video_hashtags h
 WHERE h.organisation_id = @org AND h.tag IN (SELECT m.tag FROM collection_hashtags m WHERE m.organisation_id = @org) GROUP BY h.tag`, func(row *db.Values) error {
			ids, err := parseIDs(row.String(1))
			tags[row.String(0)] = v.newGroup(numbersOf(ids))
			return err
		}},
		{`SELECT m.collection_id, m.tag FROM collection_hashtags m WHERE m.organisation_id = @org`, func(row *db.Values) error {
			if g := tags[row.String(1)]; g != nil {
				members[row.ID(0)] = append(members[row.ID(0)], g)
			}
			return nil
		}},
	} {
		if err := o.s.db.EachRow(ctx, o.s.db.Read(ctx).Raw(read.query, map[string]any{"org": o.id}), read.each); err != nil {
			return nil, err
		}
	}
	return members, nil
}

// parseIDs returns the ids in a text. Between the ids are no other characters.
func parseIDs(text string) ([]uuid.UUID, error) {
	const length = 36 // number of characters of an id
	ids := make([]uuid.UUID, 0, len(text)/length)
	for ; len(text) >= length; text = text[length:] {
		id, err := uuid.Parse(text[:length])
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}
