package store

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/link"
)

// AccountRef names an account by our id or, when ID is the zero id, by a link of kind account.
type AccountRef struct {
	ID   uuid.UUID
	Link link.Link
}

func (r AccountRef) String() string {
	if r.ID != uuid.Nil {
		return r.ID.String()
	}
	return r.Link.Canonical
}

// AccountQuery says which accounts are wanted; zero values ask for nothing. All conditions hold together.
type AccountQuery struct {
	Platform       *link.Platform
	Username       *string    // folded with link.FoldUsername
	Link           *link.Link // of kind account
	Collections    []string   // names or ids; a member of any of them
	CollectionID   *uuid.UUID // a member of this one; ErrNotFound when there is no such collection
	IncludeLinked  bool       // also accounts that are only linked from videos
	IncludeRemoved bool
	Order          Order // one of AccountOrders
	Window         Window
}

// AccountOrders are the columns by which accounts can be ordered.
var AccountOrders = map[string]bool{"created_at": true, "username": true, "latest_followers_count": true, "total_views": true,
	"median_views": true, "last_uploaded_at": true}

func accountColumnKind(column string) columnKind {
	switch column {
	case "username":
		return textColumn
	case "last_uploaded_at":
		return dateColumn
	case "median_views":
		return floatColumn
	}
	return integerColumn
}

// AccountPage is a part of a list of accounts.
type AccountPage struct {
	Accounts []Account
	Total    int64
	Next     *Position
}

const accountInAnyCollection = `EXISTS (
SELECT 1 FROM collection_accounts m JOIN collections c ON c.organisation_id = m.organisation_id AND c.id = m.collection_id
 WHERE m.organisation_id = accounts.organisation_id AND m.account_id = accounts.id AND (c.name IN @names OR CAST(c.id AS text) IN @names))`

// Accounts lists accounts.
func (o *Org) Accounts(ctx context.Context, query AccountQuery) (AccountPage, error) {
	var page AccountPage
	q := o.q(ctx, "accounts")
	if query.CollectionID != nil {
		if err := o.hasCollection(ctx, *query.CollectionID); err != nil {
			return page, err
		}
		q = q.Where("EXISTS (SELECT 1 FROM collection_accounts m WHERE m.organisation_id = accounts.organisation_id AND m.collection_id = ? AND m.account_id = accounts.id)",
			*query.CollectionID)
	} else if !query.IncludeLinked {
		q = q.Where("accounts.tracked OR accounts.removed")
	}
	if !query.IncludeRemoved {
		q = q.Where("NOT accounts.removed")
	}
	if query.Platform != nil {
		q = q.Where("accounts.platform = ?", query.Platform)
	}
	if query.Username != nil {
		q = q.Where("accounts.username = ?", query.Username)
	}
	if query.Link != nil {
		q = accountWhere(q, AccountRef{Link: *query.Link})
	}
	if len(query.Collections) > 0 {
		q = q.Where(accountInAnyCollection, map[string]any{"names": namesAndIDs(query.Collections)})
	}
	if err := q.Session(&gorm.Session{}).Count(&page.Total).Error; err != nil {
		return page, translate(err)
	}
	window := query.Window
	window.Limit++
	rows, err := ordered(q.Session(&gorm.Session{}), "accounts", accountColumnKind(query.Order.Column), query.Order, window)
	if err != nil {
		return page, err
	}
	if err := rows.Find(&page.Accounts).Error; err != nil {
		return page, translate(err)
	}
	if len(page.Accounts) > query.Window.Limit {
		page.Accounts = page.Accounts[:query.Window.Limit]
		page.Next = page.Accounts[len(page.Accounts)-1].position(query.Order.Column)
	}
	return page, o.labelAccounts(ctx, page.Accounts)
}

func (a *Account) position(column string) *Position {
	p := Position{ID: a.ID}
	integer := func(n *int64) {
		if p.Null = n == nil; !p.Null {
			p.Value = strconv.FormatInt(*n, 10)
		}
	}
	switch column {
	case "username":
		p.Value = a.Username
	case "latest_followers_count":
		integer(a.LatestFollowersCount)
	case "total_views":
		integer(a.TotalViews)
	case "median_views":
		if p.Null = a.MedianViews == nil; !p.Null {
			// Exact: a rounded value would lie beside the row it stands for.
			p.Value = strconv.FormatUint(math.Float64bits(*a.MedianViews), 16)
		}
	case "last_uploaded_at":
		if p.Null = a.LastUploadedAt == nil; !p.Null {
			p.Value = a.LastUploadedAt.String()
		}
	default:
		integer((*int64)(&a.CreatedAt))
	}
	return &p
}

// Account returns one account, also a stopped or only linked one, or ErrNotFound.
func (o *Org) Account(ctx context.Context, ref AccountRef) (Account, error) {
	found := make([]Account, 0, 1)
	if err := accountWhere(o.q(ctx, "accounts"), ref).Limit(1).Find(&found).Error; err != nil {
		return Account{}, translate(err)
	}
	if len(found) == 0 {
		return Account{}, notFound("account", ref.String())
	}
	err := o.labelAccounts(ctx, found)
	return found[0], err
}

// accountWhere adds the condition that the account is the one that ref names. A link names it by the platform's own
// id, or else by the handle that it bears now.
func accountWhere(q *gorm.DB, ref AccountRef) *gorm.DB {
	switch l := ref.Link; {
	case ref.ID != uuid.Nil:
		return q.Where("accounts.id = ?", ref.ID)
	case l.ID != "":
		return q.Where("accounts.platform = ? AND (accounts.external_id = ? OR (accounts.external_id IS NULL AND accounts.handle_current AND accounts.username = ?))",
			l.Platform, l.ID, link.FoldUsername(l.ID))
	default:
		return q.Where("accounts.platform = ? AND accounts.handle_current AND accounts.username = ?", l.Platform, l.Handle)
	}
}

// labelAccounts fills the Labels of accounts.
func (o *Org) labelAccounts(ctx context.Context, accounts []Account) error {
	at := make(map[uuid.UUID]int, len(accounts))
	for i := range accounts {
		at[accounts[i].ID] = i
	}
	for chunk := range slices.Chunk(accounts, labelChunk) {
		ids := make([]uuid.UUID, len(chunk))
		for i := range chunk {
			ids[i] = chunk[i].ID
		}
		var pairs []struct {
			AccountID uuid.UUID
			ID        uuid.UUID
			Name      string
		}
		err := o.s.read.WithContext(ctx).Raw(`SELECT m.account_id, c.id, c.name FROM collection_accounts m
  JOIN collections c ON c.organisation_id = m.organisation_id AND c.id = m.collection_id
 WHERE m.organisation_id = ? AND m.account_id IN ? ORDER BY c.name, c.id`, o.id, ids).Scan(&pairs).Error
		if err != nil {
			return translate(err)
		}
		for _, p := range pairs {
			a := &accounts[at[p.AccountID]]
			a.Labels = append(a.Labels, Label{ID: p.ID, Name: p.Name})
		}
	}
	return nil
}

// AccountVideos lists an account's videos in the order and window of the query, whose LinkedAccountID is set to the account that ref
// names. ErrNotFound for an unknown account.
func (o *Org) AccountVideos(ctx context.Context, ref AccountRef, query VideoQuery) (VideoPage, error) {
	a, err := o.Account(ctx, ref)
	if err != nil {
		return VideoPage{}, err
	}
	query.LinkedAccountID = &a.ID
	return o.Videos(ctx, query)
}
