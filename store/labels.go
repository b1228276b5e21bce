package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
)

// A collection contains a video if the video, its account or one of its hashtags was added to the
// collection. Only this file, CollectionSums and videosForTotalsQuery implement this rule.

// videoIsMember is a SQL condition: a video is in at least one collection that matches
// {collections}. The subqueries do not refer to the video, so they run only once.
const videoIsMember = `videos.id IN (
SELECT m.video_id FROM collection_videos m WHERE m.organisation_id = @org AND {collections}
UNION ALL
SELECT v.id FROM videos v WHERE v.organisation_id = @org AND v.linked_account_id IN (
  SELECT m.account_id FROM collection_accounts m WHERE m.organisation_id = @org AND {collections})
UNION ALL
SELECT h.video_id FROM video_hashtags h WHERE h.organisation_id = @org AND h.tag IN (
  SELECT m.tag FROM collection_hashtags m WHERE m.organisation_id = @org AND {collections}))`

// limitVideosToCollections limits a query to videos in at least one of the collections. If inOrder is
// true, the database should read the videos in the requested order.
func (o *Org) limitVideosToCollections(q *gorm.DB, collections []uuid.UUID, inOrder bool) *gorm.DB {
	condition, ids := db.AnyOf(q, "m.collection_id", "@collections", collections)
	where := strings.ReplaceAll(videoIsMember, "{collections}", condition)
	if inOrder { // the suffix "IS TRUE" prevents a query plan that reads the members of the collections first
		// The database reads the videos in the requested order, and skips videos outside of the
		// collections.
		where = "(" + where + ") IS TRUE"
	}
	return q.Where(where, map[string]any{"org": o.id, "collections": ids})
}

// collectionGroups returns groups of collections for a list. The list has only members of at least one collection of each group. There is a
// group for id, unless id is nil, and a group for names, unless names is empty. The error is ErrNotFound if id is unknown.
func (o *Org) collectionGroups(ctx context.Context, id *uuid.UUID, names []string) ([][]uuid.UUID, error) {
	var groups [][]uuid.UUID
	if id != nil {
		if err := o.requireCollection(ctx, *id); err != nil {
			return nil, err
		}
		groups = append(groups, []uuid.UUID{*id})
	}
	if len(names) > 0 {
		named, err := o.collectionsNamed(ctx, names)
		if err != nil {
			return nil, err
		}
		groups = append(groups, named)
	}
	return groups, nil
}

// collectionsNamed returns the ids of the collections whose name or id is one of the names. If no collection has a name exactly, the name is looked
// up without the blanks around it. Unknown names are left out.
func (o *Org) collectionsNamed(ctx context.Context, names []string) ([]uuid.UUID, error) {
	searched := slices.Clone(names)
	for _, n := range names {
		if trimmed := strings.TrimSpace(n); trimmed != n && trimmed != "" {
			searched = append(searched, trimmed)
		}
	}
	found := map[string][]uuid.UUID{} // by name and by id
	q := o.scopedQuery(ctx, "collections").Select("id, name").Where("(name IN ? OR CAST(id AS text) IN ?)", searched, namesAndIDs(searched))
	err := o.s.db.EachRow(ctx, q, func(row *db.Values) error {
		id := row.ID(0)
		name := strings.Clone(row.String(1))
		found[name], found[id.String()] = append(found[name], id), append(found[id.String()], id)
		return nil
	})
	var ids []uuid.UUID
	for _, n := range names {
		exact := collectionsIn(found, n)
		if len(exact) == 0 {
			exact = collectionsIn(found, strings.TrimSpace(n))
		}
		ids = append(ids, exact...)
	}
	slices.SortFunc(ids, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(ids), err
}

// collectionsIn returns the ids of the found collections with the given name or id.
func collectionsIn(found map[string][]uuid.UUID, name string) []uuid.UUID {
	if id, err := uuid.Parse(name); err == nil && id.String() != name {
		return slices.Concat(found[name], found[id.String()])
	}
	return found[name]
}

// namesAndIDs returns the names. If a name is an id, it also returns the id in the form that the database returns: in lower case, with hyphens.
func namesAndIDs(names []string) []string {
	out := slices.Clone(names)
	for _, n := range names {
		if id, err := uuid.Parse(n); err == nil {
			out = append(out, id.String())
		}
	}
	return out
}

// labels has the collections of an organisation. It has either all members of the collections, or
// only the members on one page of a list.
type labels struct {
	all     []Label                // all collections of the organisation, ordered by name and id
	bytes   []int64                // for each collection, the number of bytes that its label takes in JSON
	single  []labelSet             // one labelSet for each collection; all videos and accounts that are only in this collection use it
	tags    map[string][]int       // the key is a hashtag; the value has the indexes of the collections with this hashtag
	members map[uuid.UUID]labelSet // the key is the id of a video or account that was added to collections, and the value has these collections
	count   int                    // number of memberships: a video that was added to two collections counts twice
}

// labelSet has the labels of a video or account, ordered by name and id.
type labelSet struct {
	labels  []*Label
	indexes []int // indexes of the labels in labels.all; nil in a set that labelsOf made for a single row
	bytes   int64 // number of bytes that the labels take in JSON
}

// maxMembers is the maximum number of members of collections that one statement reads, so that a list does not need much memory.
const maxMembers = 100_000

// errTooManyMembers reports that a statement would read more than maxMembers members.
var errTooManyMembers = errors.New("too many members of collections for one statement")

// labelled is a video or account whose labels are to be found.
type labelled struct {
	video   uuid.UUID // id of the video; the zero id if the row is an account
	caption string
	account *uuid.UUID // the account, or the account of the video; nil if it is unknown
}

// labelsOf returns the labels of the row, which is a video or an account.
func (l *labels) labelsOf(row labelled) labelSet {
	if len(l.all) == 0 {
		return labelSet{}
	}
	own, ofAccount := l.members[row.video], labelSet{}
	if row.account != nil {
		ofAccount = l.members[*row.account]
	}
	var indexes []int // indexes of the collections whose hashtags are in the caption
	if len(l.tags) > 0 {
		var few [8]int // this array is large enough for most captions, so most captions need no allocation
		indexes = few[:0]
		forEachHashtag(row.caption, func(tag string) { indexes = append(indexes, l.tags[tag]...) })
	}
	switch {
	case len(indexes) == 0 && len(own.labels) == 0:
		return ofAccount
	case len(indexes) == 0 && len(ofAccount.labels) == 0:
		return own
	}
	return l.labelsAt(append(append(indexes, own.indexes...), ofAccount.indexes...))
}

// rowFields has those fields of a video or account that fillFields reads and sets.
type rowFields struct {
	state     *FetchState
	lastFetch *db.Instant // time of the last successful fetch; nil if no numbers are stored
	labels    *[]*Label
	labelled
}

// fillFields sets those fields of videos or accounts that are not columns of the table: the present fetch status and, unless withoutLabels is true, the
// labels. The parameter v is the version of the rows. If the labels take more than maxBytes in JSON, the last rows may be left out, but never the
// first. If maxBytes is 0, there is no limit. fillFields returns the number of rows that are complete, and the size of their labels in JSON.
func fillFields[R any, P interface {
	*R
	fields() rowFields
}](ctx context.Context, o *Org, v Version, rows []R, withoutLabels bool, maxBytes int64) (completed int, bytes int64, err error) {
	now := o.s.db.Now()
	for i := range rows {
		f := P(&rows[i]).fields()
		f.state.setStatusAt(now, f.lastFetch)
	}
	if withoutLabels {
		return len(rows), 0, nil
	}
	// Stop when the labels exceed maxBytes, and not only after the last row: each row can have its own list of 1,000 labels, and the lists of 5,000 rows
	// take 40 MB.
	isFull := func() bool { return completed > 0 && maxBytes > 0 && bytes > maxBytes }
	for size := len(rows); completed < len(rows) && !isFull(); {
		to := min(len(rows), completed+size)
		var videos, accounts []uuid.UUID
		for i := completed; i < to; i++ {
			f := P(&rows[i]).fields()
			if f.video != uuid.Nil {
				videos = append(videos, f.video)
			}
			if f.account != nil {
				accounts = append(accounts, *f.account)
			}
		}
		l, err := o.readLabels(ctx, v, videos, db.Distinct(accounts))
		if errors.Is(err, errTooManyMembers) && to-completed > 1 {
			size = (size + 1) / 2
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		for ; completed < to && !isFull(); completed++ {
			f := P(&rows[completed]).fields()
			found := l.labelsOf(f.labelled)
			*f.labels = found.labels
			bytes += found.bytes
		}
	}
	return completed, bytes, nil
}

// memberships is a SQL query for the names, hashtags and members of collections. A row has a
// collection's id and one other value.
const memberships = `SELECT c.id, c.name, NULL AS tag, CAST(NULL AS uuid) AS member FROM collections c WHERE c.organisation_id = @org
UNION ALL
SELECT h.collection_id, NULL AS name, h.tag, NULL AS member FROM collection_hashtags h WHERE h.organisation_id = @org
UNION ALL
SELECT m.collection_id, NULL AS name, NULL AS tag, m.video_id FROM collection_videos m WHERE m.organisation_id = @org AND {m.video_id}
UNION ALL
SELECT m.collection_id, NULL AS name, NULL AS tag, m.account_id FROM collection_accounts m WHERE m.organisation_id = @org AND {m.account_id}`

// readLabels returns the organisation's collections and at least the memberships of the given
// videos and accounts. It can return errTooManyMembers. The version v must have been read before, so that the labels are never older than v.
func (o *Org) readLabels(ctx context.Context, v Version, videos, accounts []uuid.UUID) (*labels, error) {
	cached, load := o.s.labels.get(o.id, v.labels)
	if cached != nil {
		return cached, nil
	}
	if load {
		all, err := o.readMemberships(ctx, memberFilter{videos: "TRUE", accounts: "TRUE", limit: maxCachedMembers})
		if !errors.Is(err, errTooManyMembers) {
			if err == nil {
				o.s.labels.put(o.id, v.labels, all)
			}
			return all, err
		}
		o.s.labels.put(o.id, v.labels, nil)
	}
	q := o.s.db.Read(ctx)
	videoCondition, videoIDs := db.AnyOf(q, "m.video_id", "@videos", videos)
	accountCondition, accountIDs := db.AnyOf(q, "m.account_id", "@accounts", accounts)
	return o.readMemberships(ctx, memberFilter{videos: videoCondition, accounts: accountCondition,
		args: map[string]any{"videos": videoIDs, "accounts": accountIDs}, limit: maxMembers})
}

// memberFilter selects members of collections.
type memberFilter struct {
	videos, accounts string         // SQL conditions for m.video_id and m.account_id
	args             map[string]any // the named arguments of both conditions
	limit            int            // maximum number of members
}

// readMemberships reads the organisation's collections and the members that the filter selects. If there are more members than the limit, it returns
// errTooManyMembers.
func (o *Org) readMemberships(ctx context.Context, f memberFilter) (*labels, error) {
	args := map[string]any{"org": o.id}
	maps.Copy(args, f.args)
	// One statement reads all rows, because three statements would take longer.
	query := strings.NewReplacer("{m.video_id}", f.videos, "{m.account_id}", f.accounts).Replace(memberships)
	var r membershipRows
	err := o.s.db.EachRow(ctx, o.s.db.Read(ctx).Raw(query, args), func(row *db.Values) error {
		r.add(row)
		// A single video has at most two members in each collection: the video and its account. So with at most maxMembers/2 collections, the
		// members of a single video never exceed the limit.
		if len(r.members) > f.limit {
			return errTooManyMembers
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.toLabels(), nil
}

// membershipRows has the rows of the query memberships.
type membershipRows struct {
	collections []Label
	tags        []taggedCollection
	members     []memberOfCollection
}

// taggedCollection is a pair: a hashtag, and a collection that contains all videos with this hashtag.
type taggedCollection struct {
	tag        string
	collection uuid.UUID
}

// memberOfCollection is a video or account that was added to a collection.
type memberOfCollection struct{ id, collection uuid.UUID }

// add adds a row of the query.
func (r *membershipRows) add(row *db.Values) {
	collection := row.ID(0)
	if name, ok := row.Text(1); ok {
		r.collections = append(r.collections, Label{ID: collection, Name: name})
	} else if tag, ok := row.Text(2); ok {
		r.tags = append(r.tags, taggedCollection{tag, collection})
	} else {
		r.members = append(r.members, memberOfCollection{row.ID(3), collection})
	}
}

// toLabels returns the labels of the members. It sorts r.collections, and the result keeps them.
func (r *membershipRows) toLabels() *labels {
	slices.SortFunc(r.collections, func(a, b Label) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), bytes.Compare(a.ID[:], b.ID[:]))
	})
	l := &labels{all: r.collections, bytes: make([]int64, len(r.collections)), single: make([]labelSet, len(r.collections)),
		tags: map[string][]int{}, count: len(r.members)}
	at := make(map[uuid.UUID]int, len(l.all)) // the index of each collection in l.all
	for i, label := range l.all {
		at[label.ID] = i
		l.bytes[i] = idBytes + jsonBytes(label.Name)
		l.single[i] = labelSet{[]*Label{&l.all[i]}, []int{i}, l.bytes[i]}
	}
	for _, t := range r.tags {
		l.tags[t.tag] = append(l.tags[t.tag], at[t.collection])
	}
	collectionsOf := make(map[uuid.UUID][]int, len(r.members)) // for each member, the indexes of its collections
	for _, m := range r.members {
		collectionsOf[m.id] = append(collectionsOf[m.id], at[m.collection])
	}
	l.members = make(map[uuid.UUID]labelSet, len(collectionsOf))
	for id, indexes := range collectionsOf {
		set := l.labelsAt(indexes)
		if set.indexes == nil {
			// Clone removes unused capacity. indexes has no duplicates, because a collection has each member only once.
			set.indexes = slices.Clone(indexes)
		}
		l.members[id] = set
	}
	return l
}

// labelsAt returns the labels at the given indexes of l.all, ordered by name and id and without duplicates. It sorts the given slice. A
// result with several labels has no indexes.
func (l *labels) labelsAt(indexes []int) labelSet {
	if len(indexes) == 0 {
		return labelSet{}
	}
	slices.Sort(indexes)
	indexes = slices.Compact(indexes)
	if len(indexes) == 1 {
		return l.single[indexes[0]]
	}
	set := labelSet{labels: make([]*Label, len(indexes))}
	for i, at := range indexes {
		set.labels[i] = &l.all[at]
		set.bytes += l.bytes[at]
	}
	return set
}

// idBytes is the number of bytes that an id takes in an array in JSON.
const idBytes = int64(36 + len(`"",`))

// jsonBytes returns the number of bytes that a text takes in an array in JSON.
func jsonBytes(s string) int64 {
	encoded, err := json.Marshal(s)
	if err != nil {
		panic(err) // Marshal cannot fail for a string
	}
	return int64(len(encoded) + len(","))
}
