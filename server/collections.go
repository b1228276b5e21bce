package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/google/uuid"
	"github.com/oapi-codegen/nullable"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

// ListCollections answers GET /collections with the collections of the caller's organisation. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) ListCollections(ctx context.Context, r api.ListCollectionsRequestObject) (api.ListCollectionsResponseObject, error) {
	p := r.Params
	query, err := readCollectionFilters(p)
	if err != nil {
		return nil, err
	}
	faults := checkPaginated(p.Paginated, p.Page, p.Cursor)
	page, err := s.readPage(ctx, pageParams{page: p.Page, limit: p.Limit, cursor: p.Cursor, paginated: p.Paginated}, query.Order, faults,
		query.Roots, query.ParentID, query.ParentID != nil && query.Subtree)
	if err != nil {
		return nil, err
	}
	list := listRequest[store.Collection]{page: page,
		encode: newRowEncoder(func(c store.Collection, view View) api.Collection { return toAPICollection(c, view, false) }),
		find: func(o *store.Org, w store.Window, _ func(*store.Collection) error) (*store.List[store.Collection], error) {
			query.Window = w
			return o.ListCollections(ctx, query)
		}}
	if !page.paginated {
		list.otherMembers = func(found *store.List[store.Collection], _ api.Pagination) (any, error) {
			return struct {
				Count int `json:"count"`
			}{found.Count()}, nil
		}
	}
	return answerList(ctx, s, list)
}

// rootParent is a special value of the query parameter parent_id. It selects the collections without a parent.
const rootParent = "null"

// readCollectionFilters converts the query parameters of GET /collections to a database query with filters and order.
func readCollectionFilters(p api.ListCollectionsParams) (store.CollectionQuery, error) {
	query := store.CollectionQuery{Subtree: isTrue(p.IncludeChildren), Order: orderOf(p.OrderBy, api.CollectionOrderCreatedAt, p.OrderDirection)}
	switch {
	case p.ParentID == nil:
	case *p.ParentID == rootParent:
		query.Roots = !query.Subtree // with include_children=true, the list contains every collection, so no filter is needed
	default:
		id, err := uuid.Parse(*p.ParentID)
		if err != nil {
			return query, invalidRequest(queryFault("parent_id", faultFormat, "parent_id must be a UUID or null, not %s", words.Quote(*p.ParentID)))
		}
		query.ParentID = &id
	}
	return query, nil
}

// CreateCollection answers POST /collections: it creates a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) CreateCollection(ctx context.Context, r api.CreateCollectionRequestObject) (api.CreateCollectionResponseObject, error) {
	caller := callerFrom(ctx)
	collection := store.NewCollection{ID: recordIDFrom(ctx), Name: r.Body.Name, ParentID: r.Body.ParentID, Access: store.AccessPrivate, Hashtags: r.Body.Hashtags,
		CreatedBy: caller.Token.ID}
	if r.Body.Access != nil {
		collection.Access = store.Access(*r.Body.Access)
	}
	created, err := caller.Org.CreateCollection(ctx, collection)
	if err != nil {
		return nil, collectionProblem(err, uuid.Nil, r.Body.ParentID)
	}
	return api.CreateCollection201JSONResponse(api.CreatedCollection{ID: created.ID, Name: created.Name, OrganisationID: created.OrganisationID,
		Access: api.Access(created.Access), CreatedAt: toAPITime(created.CreatedAt)}), nil
}

// GetCollection answers GET /collections/{collection_id} with one collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) GetCollection(ctx context.Context, r api.GetCollectionRequestObject) (api.GetCollectionResponseObject, error) {
	caller := callerFrom(ctx)
	withCounts := isTrue(r.Params.IncludeCounts)
	c, err := caller.Org.Collection(ctx, r.CollectionID, withCounts)
	if err != nil {
		return nil, err
	}
	return api.GetCollection200JSONResponse(toAPICollection(c, caller.View, withCounts)), nil
}

// UpdateCollection answers PATCH /collections/{collection_id}: it changes a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) UpdateCollection(ctx context.Context, r api.UpdateCollectionRequestObject) (api.UpdateCollectionResponseObject, error) {
	patch, err := readCollectionPatch(*r.Body)
	if err != nil {
		return nil, err
	}
	if patch.ExpectedUpdatedAt, err = checkIfMatchHeader(ctx, r.CollectionID, r.Params.IfMatch); err != nil {
		return nil, err
	}
	org := callerFrom(ctx).Org
	patch.PasswordHash, err = hashPassword(ctx, r.Body.Password, func() error {
		_, err := org.Collection(ctx, r.CollectionID, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := org.UpdateCollection(ctx, r.CollectionID, patch); err != nil {
		var parent *uuid.UUID
		if patch.Parent != nil {
			parent = patch.Parent.To
		}
		return nil, collectionProblem(err, r.CollectionID, parent)
	}
	return api.UpdateCollection204Response{}, nil
}

// readCollectionPatch converts the body of PATCH /collections/{collection_id} to the changes for the database. It leaves out the password,
// which UpdateCollection hashes and adds later.
func readCollectionPatch(b api.UpdateCollectionRequest) (store.CollectionPatch, error) {
	sharing, err := readSharing(b.Access, b.ShareExpiresAt, b.DisplaySettings)
	patch := store.CollectionPatch{SharingPatch: sharing, Name: b.Name}
	if b.ParentID.IsSpecified() {
		patch.Parent = &store.Change[uuid.UUID]{}
		if !b.ParentID.IsNull() {
			patch.Parent.To = new(b.ParentID.MustGet())
		}
	}
	if b.Hashtags.IsSpecified() {
		patch.Hashtags = new(b.Hashtags.MustGet())
	}
	return patch, err
}

// DeleteCollection answers DELETE /collections/{collection_id}: it deletes a collection. Its requirements are in section 4.1 of docs/coverage.md.
func (s *Server) DeleteCollection(ctx context.Context, r api.DeleteCollectionRequestObject) (api.DeleteCollectionResponseObject, error) {
	unchanged, err := checkIfMatchHeader(ctx, r.CollectionID, r.Params.IfMatch)
	if err != nil {
		return nil, err
	}
	if err := callerFrom(ctx).Org.DeleteCollection(ctx, r.CollectionID, unchanged); err != nil {
		return nil, collectionProblem(err, r.CollectionID, nil)
	}
	return api.DeleteCollection200JSONResponse(api.DeletedCollection{Success: true, DeletedID: r.CollectionID}), nil
}

// checkIfMatchHeader returns the time of the collection's last change, or nil if the header If-Match
// is missing. It returns an error if the header lacks the current ETag.
func checkIfMatchHeader(ctx context.Context, id uuid.UUID, ifMatch *string) (*store.Instant, error) {
	if ifMatch == nil {
		return nil, nil //nolint:nilnil // a request without If-Match changes any version of the collection
	}
	caller := callerFrom(ctx)
	c, err := caller.Org.Collection(ctx, id, true)
	if err != nil {
		return nil, err
	}
	var tags []string
	for _, withCounts := range []bool{false, true} {
		shown := &bufferedResponse{header: http.Header{}}
		if err := (api.GetCollection200JSONResponse(toAPICollection(c, caller.View, withCounts))).VisitGetCollectionResponse(shown); err != nil {
			return nil, err
		}
		tags = append(tags, bodyETag(shown.body.Bytes()))
	}
	if _, ok := findETag([]string{*ifMatch}, tags...); !ok {
		return nil, collectionChangedError()
	}
	// The database write of the operation fails if the collection has changed since this time.
	return &c.UpdatedAt, nil
}

// collectionChangedError returns an error response with status 412. It says that the header If-Match lacks the ETag of the collection's
// current version.
func collectionChangedError() *Error {
	return problem(CodePreconditionFailed, "If-Match is not the ETag of the current version of the collection: the collection was changed after it was read, or it never had this ETag. Read it again.")
}

// collectionProblem converts errors of writing a collection into error responses. Other errors are
// returned unchanged. collectionID is uuid.Nil for a new collection.
func collectionProblem(err error, collectionID uuid.UUID, requestedParent *uuid.UUID) error {
	// The response names the member of the request body that caused the error.
	at := func(e *Error, pointer string) *Error {
		e.Faults = []api.Fault{bodyFault(pointer, string(e.Code), "%s", e.Detail)}
		return e
	}
	missing, isMissing := errors.AsType[*store.NotFoundError](err)
	switch {
	case isMissing && requestedParent != nil && *requestedParent != collectionID && slices.Contains(missing.Names, requestedParent.String()):
		return at(toError(err), "/parent_id")
	case errors.Is(err, store.ErrCycle):
		return at(problem(CodeCollectionCycle, "Collection %s cannot be moved below %s, which is the same collection or a collection below it.", collectionID, requestedParent), "/parent_id")
	case errors.Is(err, store.ErrTooDeep):
		return at(problem(CodeCollectionTooDeep, "A collection cannot be put below %s: collections can be nested at most %d levels deep.", requestedParent, store.MaxCollectionDepth), "/parent_id")
	case errors.Is(err, store.ErrPasswordRequired):
		if collectionID == uuid.Nil {
			return at(problem(CodePasswordRequired, "A protected collection needs a password: first create the collection with the access private; then set access and password in one PATCH request."), "/access")
		}
		return passwordRequiredError("collection")
	case errors.Is(err, store.ErrStale):
		return collectionChangedError()
	}
	return err
}

// toAPICollection converts a collection to the JSON type of the API. If withCounts is true, the result
// contains the numbers of videos and accounts.
func toAPICollection(c store.Collection, view View, withCounts bool) api.Collection {
	out := api.Collection{
		ID: c.ID, Name: c.Name, OrganisationID: c.OrganisationID, ParentID: c.ParentID, Access: api.Access(c.Access), Hash: c.Hash, ShareExpiresAt: toAPITimePtr(c.ShareExpiresAt),
		CreatedBy: c.CreatedBy, CreatedAt: toAPITime(c.CreatedAt), Hashtags: c.Hashtags, MetricsMasked: view.MetricsMasked(),
	}
	if out.Hashtags == nil {
		out.Hashtags = []string{}
	}
	if c.DisplaySettings != nil {
		out.DisplaySettings = json.RawMessage(*c.DisplaySettings)
	}
	if withCounts {
		out.VideoCount, out.AccountCount = toAPINullable(view.Count(&c.VideoCount)), toAPINullable(view.Count(&c.AccountCount))
	}
	return out
}

// toAPINullable returns *v as a JSON member that can be absent or null. If v is nil, the member is null.
func toAPINullable[T any](v *T) nullable.Nullable[T] {
	if v == nil {
		return nullable.NewNullNullable[T]()
	}
	return nullable.NewNullableWithValue(*v)
}
