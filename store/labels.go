package store

import (
	"context"
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
	// kept has the labels of videos that bytesOf has read, by the id of the video, so that they are read only once.
	kept map[uuid.UUID][]Label
	size int // number of labels in kept
}

// maxKeptLabels is the highest number of labels in labels.kept, which take 40 bytes each.
const maxKeptLabels = 100_000

// labels reads the names of all collections of the organisation and returns them as labels.
func (o *Org) labels(ctx context.Context) (*labels, error) {
	l := &labels{o: o, at: map[uuid.UUID]int{}, kept: map[uuid.UUID][]Label{}}
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
	return labelBytes(l.all)
}

// labelBytes returns an upper bound of the number of bytes that labels take in JSON.
func labelBytes(labels []Label) int64 {
	const idAndCommas = 36 + len(`"",`) + len(`,`)
	var n int
	for _, label := range labels {
		n += idAndCommas + jsonBytes(label.Name)
	}
	return int64(n)
}

// bytesOf returns an upper bound of the number of bytes that the labels of the given videos take in JSON.
func (l *labels) bytesOf(ctx context.Context, rows []db.LabelledRow) (int64, error) {
	videos := make([]Video, len(rows))
	for i, r := range rows {
		videos[i].ID, videos[i].LinkedAccountID = r.ID, r.Account
	}
	if err := l.ofVideos(ctx, videos); err != nil {
		return 0, err
	}
	var n int64
	for i := range videos {
		v := &videos[i]
		n += labelBytes(v.Labels)
		if l.size += len(v.Labels); l.size <= maxKeptLabels {
			l.kept[v.ID] = v.Labels
		}
	}
	return n, nil
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

// ownCollections is a query for the videos @ids that were added to a collection or have one of its hashtags in their caption, with the
// id of the collection. A pair can occur more than once.
const ownCollections = `SELECT m.video_id, m.collection_id FROM collection_videos m WHERE m.organisation_id = ? AND {videos}
UNION ALL
SELECT m.video_id, c.collection_id FROM collection_hashtags c JOIN video_hashtags m ON m.tag = c.tag
 WHERE c.organisation_id = ? AND m.organisation_id = ? AND {videos}`

// ofVideos sets the field Labels of each video. Videos that are only in the collections of their account share one slice of labels.
func (l *labels) ofVideos(ctx context.Context, videos []Video) error {
	if len(l.all) == 0 || len(videos) == 0 {
		return nil
	}
	var ids, accounts []uuid.UUID
	for i := range videos {
		v := &videos[i]
		var kept bool
		if v.Labels, kept = l.kept[v.ID]; kept {
			continue
		}
		if ids = append(ids, v.ID); v.LinkedAccountID != nil {
			accounts = append(accounts, *v.LinkedAccountID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	ofAccount, err := l.ofAccountIDs(ctx, accounts)
	if err != nil {
		return err
	}
	own := map[uuid.UUID][]int{}
	condition, arg := db.AnyOf(l.o.q(ctx, "videos"), "m.video_id", ids)
	q := l.o.s.db.Read(ctx).Raw(strings.ReplaceAll(ownCollections, "{videos}", condition), l.o.id, arg, l.o.id, l.o.id, arg)
	if err := pairs(ctx, l, q, own); err != nil {
		return err
	}
	shared := map[uuid.UUID][]Label{}
	for i := range videos {
		v := &videos[i]
		if _, kept := l.kept[v.ID]; kept {
			continue
		}
		var account uuid.UUID // the zero id if the video has no account; no collection contains the zero id
		db.Assign(&account, v.LinkedAccountID)
		if extra := own[v.ID]; len(extra) > 0 {
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

// ofAccountIDs returns, for each account, the indexes in l.all of the collections that contain the account.
func (l *labels) ofAccountIDs(ctx context.Context, accounts []uuid.UUID) (map[uuid.UUID][]int, error) {
	found := map[uuid.UUID][]int{}
	if len(accounts) == 0 || len(l.all) == 0 {
		return found, nil
	}
	condition, arg := db.AnyOf(l.o.q(ctx, "accounts"), "account_id", db.Distinct(accounts))
	return found, pairs(ctx, l, l.o.q(ctx, "collection_accounts").Where(condition, arg).Select("account_id, collection_id"), found)
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

// pairs reads rows with the id of a member and the id of a collection from q. For each row, it appends the collection's index in l.all to
// to[member]. It skips a collection that was created after l had read the names.
func pairs(ctx context.Context, l *labels, q *gorm.DB, to map[uuid.UUID][]int) error {
	return l.o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		member, _ := row.UUID(0)
		collection, _ := row.UUID(1)
		if i, ok := l.at[collection]; ok {
			to[member] = append(to[member], i)
		}
		return nil
	})
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
