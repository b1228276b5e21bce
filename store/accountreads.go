package store

import (
	"context"
	"unicode/utf8"

	"github.com/google/uuid"
	"gorm.io/gorm"

	"github.com/reeltally/reeltally/store/internal/db"
	"github.com/reeltally/reeltally/store/link"
)

// AccountQuery selects accounts. An account must match all conditions that are set.
type AccountQuery struct {
	Platform *link.Platform
	Username *string // the account's handle in the form that link.FoldUsername returns: in lower case and without "@"
	// UsernamePrefix is the beginning of the account's handle, in the form of Username; "" selects all handles. It is left out of the JSON if it is
	// empty, so that the cursors of servers without this field stay valid.
	UsernamePrefix string       `json:",omitempty"`
	Link           *link.Link   // the link of the account
	Collections    []string     // names or ids of collections; the account is in at least one of them
	CollectionID   *uuid.UUID   // the account is in this collection; if the collection is unknown, the query fails with ErrNotFound
	IncludeLinked  bool         // include untracked accounts to which videos are linked
	IncludeRemoved bool         // include accounts whose tracking was stopped
	Status         *FetchStatus // select only accounts with this fetch status; for queue.FetchStopped, IncludeRemoved need not be set
	Order          db.Order     // the column is one of AccountOrders
	Window         db.Window
	WithoutLabels  bool // do not set Account.Labels
}

// AccountOrders are the columns by which accounts can be ordered. Each column has an index.
var AccountOrders = db.SortColumns{
	"created_at":             db.SortBy("accounts", "created_at", db.IntegerColumn),
	"username":               db.SortBy("accounts", "username", db.TextColumn),
	"latest_followers_count": db.SortByNullable("accounts", "latest_followers_count", db.IntegerColumn),
	"total_views":            db.SortByNullable("accounts", "total_views", db.IntegerColumn),
	"median_views":           db.SortByNullable("accounts", "median_views", db.FloatColumn),
	"last_uploaded_at":       db.SortByNullable("accounts", "last_uploaded_at", db.DateColumn),
	"views_gained_7d":        db.SortByNullable("accounts", "views_gained_7d", db.IntegerColumn),
}

// ListAccounts returns one page of the accounts that match the query.
func (o *Org) ListAccounts(ctx context.Context, query AccountQuery) (*db.List[Account], error) {
	l := &listReader[Account]{org: o, rows: o.matchingAccounts(ctx, query).Session(&gorm.Session{}), order: query.Order, window: query.Window,
		collectionID: query.CollectionID, collections: query.Collections, limitTo: o.limitAccountsToCollections,
		spec: db.ListSpec[Account]{Sort: AccountOrders, Table: "accounts", Columns: accountColumns, ID: func(a *Account) uuid.UUID { return a.ID }}}
	l.spec.Complete = func(ctx context.Context, accounts []Account, maxBytes int64) (completed int, bytes int64, err error) {
		return fillFields(ctx, o, l.version, accounts, query.WithoutLabels, maxBytes)
	}
	list, err := l.read(ctx)
	return list, db.Translate(err)
}

// matchingAccounts returns a database query for the accounts that match an AccountQuery. It leaves out the
// conditions on collections, the order and the limit.
func (o *Org) matchingAccounts(ctx context.Context, query AccountQuery) *gorm.DB {
	q := o.scopedQuery(ctx, "accounts")
	if query.CollectionID == nil && !query.IncludeLinked {
		q = q.Where("(accounts.tracked OR accounts.removed)")
	}
	if !query.IncludeRemoved && !isStopped(query.Status) {
		q = q.Where("NOT accounts.removed")
	}
	if query.Status != nil {
		q = filterByStatus(q, "accounts", *query.Status, o.s.db.Now())
	}
	if query.Platform != nil {
		q = q.Where("accounts.platform = ?", query.Platform)
	}
	if query.Username != nil {
		q = q.Where("accounts.username = ?", query.Username)
	}
	if query.UsernamePrefix != "" {
		// The index of the usernames serves a range, but not LIKE. The column is compared byte by byte on both engines.
		q = q.Where("accounts.username >= ? AND accounts.username < ?", query.UsernamePrefix, query.UsernamePrefix+string(utf8.MaxRune))
	}
	if query.Link != nil {
		q = addAccountCondition(q, Ref{Link: *query.Link})
	}
	return q
}

// limitAccountsToCollections limits a query to accounts in at least one of the collections.
func (o *Org) limitAccountsToCollections(q *gorm.DB, collections []uuid.UUID, _ bool) *gorm.DB {
	condition, ids := db.AnyOf(q, "m.collection_id", "?", collections)
	return q.Where("accounts.id IN (SELECT m.account_id FROM collection_accounts m WHERE m.organisation_id = ? AND "+condition+")", o.id, ids)
}

// fields returns the fields of the account that fillFields reads and sets.
func (a *Account) fields() rowFields {
	return rowFields{&a.FetchState, a.CheckedAt, &a.Labels, labelled{account: &a.ID}}
}

// Account returns the account that ref identifies, or ErrNotFound. It also finds stopped accounts,
// and untracked accounts to which videos are linked.
func (o *Org) Account(ctx context.Context, ref Ref) (Account, error) {
	var v Version
	found, err := db.ReadRows(ctx, o.s.db, addAccountCondition(o.scopedQuery(ctx, "accounts"), ref).Limit(1), "accounts", accountColumns, o.readVersion(&v))
	if err != nil {
		return Account{}, err
	}
	if len(found) == 0 {
		return Account{}, db.NotFound("account", ref.String())
	}
	_, _, err = fillFields(ctx, o, v, found, false, 0)
	return found[0], db.Translate(err)
}

// addAccountCondition limits a query to the account that ref identifies. It uses the first known one of ref.ID, ref.Link.ID and ref.Link.Handle.
// ref.Link.ID also finds an account without a known id, if the account's current handle equals ref.Link.ID.
func addAccountCondition(q *gorm.DB, ref Ref) *gorm.DB {
	user := userNameID(ref.Link.Platform, ref.Link.Handle)
	switch l := ref.Link; {
	case ref.ID != uuid.Nil:
		return q.Where("accounts.id = ?", ref.ID)
	case l.ID != "":
		return q.Where("accounts.platform = ? AND (accounts.external_id = ? OR (accounts.external_id IS NULL AND accounts.handle_current AND accounts.username = ?))",
			l.Platform, l.ID, link.FoldUsername(l.ID))
	case user != "":
		return q.Where("accounts.platform = ? AND accounts.source_id = ?", l.Platform, user)
	default:
		return q.Where("accounts.platform = ? AND accounts.handle_current AND accounts.username = ?", l.Platform, l.Handle)
	}
}

// ListAccountVideos returns one page of the account's videos, or ErrNotFound if the account is unknown. It overwrites query.LinkedAccountID.
func (o *Org) ListAccountVideos(ctx context.Context, ref Ref, query VideoQuery) (*db.List[Video], error) {
	a, err := o.Account(ctx, ref)
	if err != nil {
		return nil, err
	}
	query.LinkedAccountID = &a.ID
	return o.ListVideos(ctx, query)
}
