package store

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// A collection contains a video if the video or its account was added to the collection, or if the caption has one of the collection's
// hashtags. Only the statements in this file and the query videoCounts implement this rule.

// inAnyCollection is the SQL condition that a video is in a collection of organisation @org whose name or id is in @names. Its subqueries do
// not refer to the video, so the database reads each membership once and not once for each video.
const inAnyCollection = `videos.id IN (
SELECT m.video_id FROM collection_videos m WHERE m.organisation_id = @org AND m.collection_id IN (` + namedCollections + `)
UNION ALL
SELECT v.id FROM videos v WHERE v.organisation_id = @org AND v.linked_account_id IN (
  SELECT m.account_id FROM collection_accounts m WHERE m.organisation_id = @org AND m.collection_id IN (` + namedCollections + `))
UNION ALL
SELECT h.video_id FROM video_hashtags h WHERE h.organisation_id = @org AND h.tag IN (
  SELECT m.tag FROM collection_hashtags m WHERE m.organisation_id = @org AND m.collection_id IN (` + namedCollections + `)))`

// namedCollections is a query for the ids of the collections of organisation @org whose name or id is in @names.
const namedCollections = `SELECT c.id FROM collections c WHERE c.organisation_id = @org AND (c.name IN @names OR CAST(c.id AS text) IN @names)`

// inCollection is the SQL condition that a video is in the collection @collection.
const inCollection = `(
  EXISTS (SELECT 1 FROM collection_videos m WHERE m.organisation_id = videos.organisation_id AND m.collection_id = @collection AND m.video_id = videos.id)
  OR EXISTS (SELECT 1 FROM collection_accounts m WHERE m.organisation_id = videos.organisation_id AND m.collection_id = @collection AND m.account_id = videos.linked_account_id)
  OR EXISTS (SELECT 1 FROM collection_hashtags m JOIN video_hashtags h ON h.organisation_id = m.organisation_id AND h.tag = m.tag
              WHERE m.organisation_id = videos.organisation_id AND m.collection_id = @collection AND h.video_id = videos.id))`

// namesAndIDs returns names and, for each name that is an id, also the id in lower case with hyphens, as the database returns it.
func namesAndIDs(names []string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		if id, err := uuid.Parse(n); err == nil {
			out = append(out, id.String())
		}
	}
	return out
}

// labels finds the labels of videos and accounts. It has the names of all collections of the organisation, which are read once.
type labels struct {
	o   *Org
	all []Label           // all collections of the organisation, ordered by name and id
	at  map[uuid.UUID]int // index of each collection in all, by the id of the collection
}

// labels reads the names of all collections of the organisation and returns them as labels.
func (o *Org) labels(ctx context.Context) (*labels, error) {
	l := &labels{o: o, at: map[uuid.UUID]int{}}
	if err := o.q(ctx, "collections").Select("id, name").Order("name, id").Find(&l.all).Error; err != nil {
		return nil, db.Translate(err)
	}
	for i := range l.all {
		l.at[l.all[i].ID] = i
	}
	return l, nil
}

// bytes returns the number of bytes that the labels of a video or account take in JSON if every collection contains it. No video or account
// needs more.
func (l *labels) bytes() int64 {
	const idAndCommas = 36 + len(`"",`) + len(`,`)
	var n int
	for _, label := range l.all {
		n += idAndCommas + jsonBytes(label.Name)
	}
	return int64(n)
}

// jsonBytes returns an upper bound of the number of bytes that a text takes in JSON.
func jsonBytes(s string) int {
	n := len(`""`)
	for _, r := range s {
		if r < ' ' || r == '"' || r == '\\' || r == '<' || r == '>' || r == '&' || r > 126 {
			n += db.WorstEscape
		} else {
			n++
		}
	}
	return n
}

// ofVideos sets the field Labels of each video. Videos that are only in the collections of their account share one slice of labels.
func (l *labels) ofVideos(ctx context.Context, videos []Video) error {
	if len(l.all) == 0 || len(videos) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(videos))
	var accounts []uuid.UUID
	for i := range videos {
		if ids[i] = videos[i].ID; videos[i].LinkedAccountID != nil {
			accounts = append(accounts, *videos[i].LinkedAccountID)
		}
	}
	ofAccount, err := l.ofAccountIDs(ctx, accounts)
	if err != nil {
		return err
	}
	own := map[uuid.UUID][]int{}
	if err := pairs(ctx, l, db.AnyOf(l.o.q(ctx, "collection_videos"), "video_id", ids).Select("video_id, collection_id"), firstID, own); err != nil {
		return err
	}
	tagsOf, byTag, err := l.hashtags(ctx, ids)
	if err != nil {
		return err
	}
	shared := map[uuid.UUID][]Label{}
	for i := range videos {
		v := &videos[i]
		var account uuid.UUID // the zero id if the video has no account; no collection contains the zero id
		db.Assign(&account, v.LinkedAccountID)
		extra := own[v.ID]
		for _, tag := range tagsOf[v.ID] {
			extra = append(extra, byTag[tag]...)
		}
		if len(extra) > 0 {
			v.Labels = l.named(append(extra, ofAccount[account]...))
			continue
		}
		if _, ok := shared[account]; !ok {
			shared[account] = l.named(ofAccount[account])
		}
		v.Labels = shared[account]
	}
	return nil
}

// hashtags returns the hashtags in the caption of each video. It also returns, for each hashtag, the indexes in l.all of the collections
// that have the hashtag.
func (l *labels) hashtags(ctx context.Context, videos []uuid.UUID) (tagsOf map[uuid.UUID][]string, byTag map[string][]int, err error) {
	tagsOf, byTag = map[uuid.UUID][]string{}, map[string][]int{}
	tags := map[string]bool{}
	err = l.o.s.db.EachRow(ctx, db.AnyOf(l.o.q(ctx, "video_hashtags"), "video_id", videos).Select("video_id, tag"), func(row *db.Values) error {
		video, _ := row.UUID(0)
		tag, _ := row.Text(1)
		tagsOf[video], tags[tag] = append(tagsOf[video], tag), true
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	for chunk := range slices.Chunk(slices.Sorted(maps.Keys(tags)), db.InsertChunk) {
		q := l.o.q(ctx, "collection_hashtags").Where("tag IN ?", chunk).Select("tag, collection_id")
		if err := pairs(ctx, l, q, func(row *db.Values) string { return text(row, 0) }, byTag); err != nil {
			return nil, nil, err
		}
	}
	return tagsOf, byTag, nil
}

// ofAccountIDs returns, for each account, the indexes in l.all of the collections that contain the account.
func (l *labels) ofAccountIDs(ctx context.Context, accounts []uuid.UUID) (map[uuid.UUID][]int, error) {
	found := map[uuid.UUID][]int{}
	if len(accounts) == 0 || len(l.all) == 0 {
		return found, nil
	}
	q := db.AnyOf(l.o.q(ctx, "collection_accounts"), "account_id", db.Distinct(accounts)).Select("account_id, collection_id")
	return found, pairs(ctx, l, q, firstID, found)
}

// ofAccounts sets the field Labels of each account.
func (l *labels) ofAccounts(ctx context.Context, accounts []Account) error {
	ids := make([]uuid.UUID, len(accounts))
	for i := range accounts {
		ids[i] = accounts[i].ID
	}
	found, err := l.ofAccountIDs(ctx, ids)
	for i := range accounts {
		accounts[i].Labels = l.named(found[accounts[i].ID])
	}
	return err
}

// pairs reads rows from q. The function member returns the member of a row, and the second column is a collection id. For each row, pairs
// appends the collection's index in l.all to to[member]. It skips a collection that was created after l had read the names.
func pairs[M comparable](ctx context.Context, l *labels, q *gorm.DB, member func(*db.Values) M, to map[M][]int) error {
	return l.o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		collection, _ := row.UUID(1)
		if i, ok := l.at[collection]; ok {
			m := member(row)
			to[m] = append(to[m], i)
		}
		return nil
	})
}

// firstID returns the id in the first column of a row.
func firstID(row *db.Values) uuid.UUID {
	id, _ := row.UUID(0)
	return id
}

// named returns the labels at the given indexes of l.all, ordered by name and id and without duplicates. It sorts the slice indexes in
// place.
func (l *labels) named(indexes []int) []Label {
	if len(indexes) == 0 {
		return nil
	}
	slices.Sort(indexes)
	indexes = slices.Compact(indexes)
	out := make([]Label, len(indexes))
	for i, at := range indexes {
		out[i] = l.all[at]
	}
	return out
}

// FoldTag returns a hashtag in the form in which hashtags are stored and compared: in lower case, without a leading "#" or full-width "＃".
func FoldTag(s string) string {
	return strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(s), "#"), "＃"))
}

// VideoHashtag is a row of video_hashtags: a hashtag in a video's caption.
type VideoHashtag struct {
	OrganisationID uuid.UUID
	Tag            string
	VideoID        uuid.UUID
}
