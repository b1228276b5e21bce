package store

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/reeltally/reeltally/store/link"
)

// Account is whoever posts videos (interface.md 6). An account that is only linked from a video is not tracked:
// nothing is collected for it but what its videos tell.
//
// Handles change hands and are used again, so that a platform's own id wins over a handle: HandleCurrent is true for
// the one account of the organisation that bears it now.
type Account struct {
	OrganisationID uuid.UUID `gorm:"primaryKey"`
	ID             uuid.UUID `gorm:"primaryKey"`
	Platform       link.Platform
	ExternalID     *string // the platform's own id, where it is known
	SourceID       *string // what its source calls it where that is not the platform's own id, as AccountFacts.SourceID
	Username       string
	HandleCurrent  bool
	Name           *string
	Link           string
	CreatedAt      Instant `gorm:"autoCreateTime:false"`

	Tracked      bool
	Removed      bool // was tracked, stopped
	TrackingType *TrackingType
	TrackedAt    *Instant
	DiscoveredAt *Instant // when its older videos were found
	CheckedAt    *Instant // the last fetch of the account that succeeded
	Private      bool
	Empty        bool // it has no videos
	Bio          *string
	ProfileLink  *string // the link in the profile

	LatestFollowersCount *int64
	LatestFollowingCount *int64

	// Over the latest counts of its tracked videos; nil while none has counts.
	MeanViews            *float64
	MedianViews          *float64
	MedianViewsNonZero   *float64
	MostViewed           *int64
	PercentOutperform10x *float64 `gorm:"column:percent_outperform_10x"` // of its videos, with 10 times the median's views
	PercentOutperform25x *float64 `gorm:"column:percent_outperform_25x"`
	TotalVideosTracked   int64
	TotalViews           *int64
	TotalLikes           *int64
	TotalComments        *int64
	TotalBookmarks       *int64
	TotalShares          *int64
	LastUploadedAt       *Date

	// Labels are the collections that the account is in, by name and then id; filled by the reads.
	Labels []Label `gorm:"-"`
}

func accountKey(p link.Platform, handle string) string { return string(p) + "/" + handle }

// upsertAccountsByHandle makes sure that each account's current handle has a row and writes the row's id into ids,
// by accountKey.
func upsertAccountsByHandle(tx *gorm.DB, rows []Account, ids map[string]uuid.UUID) error {
	slices.SortFunc(rows, func(a, b Account) int {
		return cmp.Or(cmp.Compare(a.Platform, b.Platform), cmp.Compare(a.Username, b.Username))
	})
	for chunk := range slices.Chunk(rows, insertChunk) {
		// The update changes nothing: it is what makes RETURNING name the row that was there.
		err := tx.Clauses(
			clause.OnConflict{
				Columns:     []clause.Column{{Name: "organisation_id"}, {Name: "platform"}, {Name: "username"}},
				TargetWhere: clause.Where{Exprs: []clause.Expression{clause.Expr{SQL: "handle_current"}}},
				DoUpdates:   clause.AssignmentColumns([]string{"username"}),
			},
			clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "platform"}, {Name: "username"}}},
		).Create(&chunk).Error
		if err != nil {
			return err
		}
		for _, r := range chunk {
			ids[accountKey(r.Platform, r.Username)] = r.ID
		}
	}
	return nil
}

// author is an account as a source names it.
type author struct {
	platform   link.Platform
	externalID string // "" when the source does not say
	sourceID   string // as AccountFacts.SourceID, "" when the source has none
	username   string // "" when the source does not say
	name       *string
}

// accounts makes sure that each video whose source named an author has an account record, and returns the records by video.
// What repeats the handles of accounts that have changed theirs is left to follow, for when the videos have been written.
func (w writer) accounts(videos []Video) (of map[rowKey]*Account, follow func() error, err error) {
	authors := map[rowKey]author{}
	for i := range videos {
		if f := w.outcomes[videos[i].key()].Facts; f != nil && (f.AccountID != nil || f.AccountSourceID != nil || f.Username != nil) {
			a := author{platform: videos[i].Platform, name: f.AccountName}
			set(&a.externalID, f.AccountID)
			set(&a.sourceID, f.AccountSourceID)
			set(&a.username, f.Username)
			authors[videos[i].key()] = a
		}
	}
	known, err := w.knownAccounts(authors)
	if err != nil {
		return nil, nil, err
	}
	books := map[uuid.UUID]*accountBook{}
	of = make(map[rowKey]*Account, len(authors))
	for i := range videos { // in the videos' order: the same outcome gives the same records
		v := &videos[i]
		if a, ok := authors[v.key()]; ok {
			if books[v.OrganisationID] == nil {
				books[v.OrganisationID] = &accountBook{org: v.OrganisationID, now: w.fetchedAt, rows: known[v.OrganisationID]}
			}
			of[v.key()] = books[v.OrganisationID].enter(a)
		}
	}
	each := func(do func(*accountBook, *gorm.DB) error) error {
		for _, org := range distinct(slices.Collect(maps.Keys(books))) {
			if err := do(books[org], w.tx); err != nil {
				return err
			}
		}
		return nil
	}
	return of, func() error { return each((*accountBook).follow) }, each((*accountBook).saveRows)
}

// knownAccounts reads and locks the accounts that bear an author's id or handle, by organisation, in the order of their ids.
func (w writer) knownAccounts(authors map[rowKey]author) (map[uuid.UUID][]*Account, error) {
	known, found := map[uuid.UUID][]*Account{}, map[rowKey]bool{}
	for _, by := range []struct {
		column, condition string
		of                func(author) string
	}{
		{"external_id", "", func(a author) string { return a.externalID }},
		{"source_id", "", func(a author) string { return a.sourceID }},
		{"username", " AND accounts.handle_current", func(a author) string { return a.username }},
	} {
		var rows [][]any
		for _, k := range sortedKeys(authors) {
			if a := authors[k]; by.of(a) != "" {
				rows = append(rows, []any{k.Org, a.platform, by.of(a)})
			}
		}
		for chunk := range slices.Chunk(rows, insertChunk) {
			list, args := with(w.tx, "wanted", []string{"organisation_id uuid", "platform text", "name text"}, chunk)
			var accounts []*Account
			err := w.tx.Raw(list+`SELECT accounts.* FROM wanted CROSS JOIN accounts WHERE accounts.organisation_id = wanted.organisation_id
 AND accounts.platform = wanted.platform AND accounts.`+by.column+` = wanted.name`+by.condition+`
 ORDER BY accounts.organisation_id, accounts.id`+forUpdateOf(w.tx, "accounts"), args...).Scan(&accounts).Error
			if err != nil {
				return nil, err
			}
			for _, a := range accounts {
				if key := (rowKey{a.OrganisationID, a.ID}); !found[key] { // several videos may have one author
					found[key], known[a.OrganisationID] = true, append(known[a.OrganisationID], a)
				}
			}
		}
	}
	for _, accounts := range known {
		slices.SortFunc(accounts, func(a, b *Account) int { return slices.Compare(a.ID[:], b.ID[:]) })
	}
	return known, nil
}

// accountBook decides which account an author is. The platform's own id decides, then the source's; a handle counts only for
// an account of which no id is known that says otherwise.
type accountBook struct {
	org     uuid.UUID
	now     Instant
	claimed bool // the authors come from a caller's links; no source has confirmed them
	rows    []*Account
	dirty   []*Account // changed or new
	lost    []*Account // no longer bear their handle
	renamed []rename
}

func (b *accountBook) enter(a author) *Account {
	row := b.find(func(r *Account) bool {
		return a.externalID != "" && r.ExternalID != nil && *r.ExternalID == a.externalID
	}, a.platform)
	if row == nil {
		row = b.find(func(r *Account) bool { return r.is(a) }, a.platform)
	}
	bearer := b.find(func(r *Account) bool { return a.username != "" && r.HandleCurrent && r.Username == a.username }, a.platform)
	if row == nil && bearer != nil && !bearer.isAnother(a) {
		row = bearer
	}
	if row == nil {
		row = &Account{OrganisationID: b.org, ID: NewID(), Platform: a.platform, Username: a.username, CreatedAt: b.now}
		b.rows = append(b.rows, row)
		b.change(row)
	}
	// An answer that is older than the account's own, and written late, brings no former handle or name back.
	late := row.CheckedAt != nil && *row.CheckedAt > b.now
	if a.username != "" && !late && (row.Username != a.username || !row.HandleCurrent) {
		if bearer != nil && bearer != row {
			bearer.HandleCurrent = false
			b.lost = append(b.lost, bearer)
		}
		if row.Username != "" && row.Username != a.username {
			b.renamed = append(b.renamed, rename{account: row, from: row.Username})
		}
		row.Username, row.HandleCurrent = a.username, true
		b.change(row)
	}
	if a.externalID != "" && row.ExternalID == nil {
		row.ExternalID = &a.externalID
		b.change(row)
	}
	if a.sourceID != "" && row.SourceID == nil {
		row.SourceID = &a.sourceID
		b.change(row)
	}
	if a.name != nil && (row.Name == nil || !late && *row.Name != *a.name) {
		row.Name = a.name
		b.change(row)
	}
	if l := accountLink(row); l != row.Link {
		row.Link = l
		b.change(row)
	}
	return row
}

// is says whether an id tells the account to be an author.
func (a *Account) is(an author) bool {
	return a.ExternalID != nil && *a.ExternalID == an.externalID || a.SourceID != nil && *a.SourceID == an.sourceID && !a.isAnother(an)
}

// isAnother says whether an id tells the account from an author. Where the two have no id of one kind in common, nothing does.
func (a *Account) isAnother(than author) bool {
	var id, sourceID string
	set(&id, a.ExternalID)
	set(&sourceID, a.SourceID)
	return DifferentAccounts(id, sourceID, than.externalID, than.sourceID)
}

// accountLink goes by the account's id where it has no handle: sources then give the id for one, and there is no page of that
// name.
func accountLink(a *Account) string {
	if a.ExternalID != nil && (a.Username == "" || a.Username == *a.ExternalID) {
		return link.AccountIDURL(a.Platform, *a.ExternalID)
	}
	return link.AccountURL(a.Platform, a.Username)
}

func (b *accountBook) find(is func(*Account) bool, p link.Platform) *Account {
	for _, r := range b.rows {
		if r.Platform == p && is(r) {
			return r
		}
	}
	return nil
}

func (b *accountBook) change(a *Account) {
	if !slices.Contains(b.dirty, a) {
		b.dirty = append(b.dirty, a)
	}
}

// save writes what changed, and what follows from it.
func (b *accountBook) save(tx *gorm.DB) error {
	if err := b.saveRows(tx); err != nil {
		return err
	}
	return b.follow(tx)
}

// saveRows writes the accounts that changed. Those that lost their handle go first, since two cannot bear one at a time.
func (b *accountBook) saveRows(tx *gorm.DB) error {
	if len(b.lost) > 0 {
		ids := make([]uuid.UUID, len(b.lost))
		for i, a := range b.lost {
			ids[i] = a.ID
		}
		if err := scoped(tx, "accounts", b.org).Where("accounts.id IN ?", ids).Update("handle_current", false).Error; err != nil {
			return err
		}
	}
	if len(b.dirty) == 0 {
		return nil
	}
	return tx.Clauses(clause.OnConflict{
		Columns:   columns([]string{"organisation_id", "id"}),
		DoUpdates: clause.AssignmentColumns([]string{"external_id", "source_id", "username", "handle_current", "name", "link"}),
	}).CreateInBatches(b.dirty, insertChunk).Error
}

// follow brings what repeats the handles of renamed accounts up to date.
func (b *accountBook) follow(tx *gorm.DB) error {
	for _, r := range b.renamed {
		if err := r.follow(tx, b.org, b.now, !b.claimed); err != nil {
			return err
		}
	}
	return nil
}

// TrackingType says which of an account's videos are tracked with it.
type TrackingType string

// The tracking types of interface.md 6. All of them go on with what is uploaded later.
const (
	TrackLatest30  TrackingType = "latest_30"
	TrackLatest200 TrackingType = "latest_200"
	TrackNewOnly   TrackingType = "new_only"
	TrackAll       TrackingType = "all"
)

// ParseTrackingType returns the tracking type of that name.
func ParseTrackingType(s string) (TrackingType, error) {
	switch t := TrackingType(s); t {
	case TrackLatest30, TrackLatest200, TrackNewOnly, TrackAll:
		return t, nil
	}
	return "", fmt.Errorf("tracking_type %q is not one of latest_30, latest_200, new_only, all", s)
}
