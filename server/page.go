package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// pageParams are the query parameters that select a page of a list. The pointer to a parameter is nil if the request lacks the parameter.
type pageParams struct {
	page, limit *int32
	cursor      *string
	paginated   *bool
}

// pageRequest is a request for a page of a list. Its parameters have been checked.
type pageRequest struct {
	number    int             // page number, starting at 1
	limit     int             // maximum number of rows on the page
	after     *store.Position // position of the last row before the page; nil if the request has no cursor
	paginated bool            // true if the response has a pagination object
	order     store.Order
	until     store.Instant // time of the last point that an export can contain; zero if the list is not an export or the request has no cursor
	cursor    cursorScope   // identifies the list; a cursor from a different list is not valid
}

// cursorScope identifies the list that a cursor belongs to. A cursor is valid only for the list
// that returned it.
type cursorScope struct {
	Organisation string
	Operation    string
	Query        any // filters and order of the list
}

// cursorContent contains the position after which the next page of a list starts. In a cursor, this
// content is signed but not encrypted.
type cursorContent struct {
	After store.Position `json:"a"`
	Page  int            `json:"p"`           // number of the page that begins after this position
	Until store.Instant  `json:"u,omitempty"` // time of the last point that an export can contain; zero if the list is not an export
}

// macLength is the length, in bytes, of the signature at the start of a cursor.
const macLength = 16

// faultConflict is the fault code for two parameters that cannot be sent together.
const faultConflict = "conflict"

// orderOf returns the order of a list. If orderBy is nil, the list is ordered by defaultColumn. If direction is nil, the order is
// descending. For a list with a single order, orderBy is nil.
func orderOf[O ~string](orderBy *O, defaultColumn O, direction *api.OrderDirection) store.Order {
	if orderBy == nil {
		orderBy = &defaultColumn
	}
	return store.Order{Column: string(*orderBy), Descending: direction == nil || *direction == api.OrderDirectionDesc}
}

func toAPIDirection(o store.Order) api.OrderDirection {
	if o.Descending {
		return api.OrderDirectionDesc
	}
	return api.OrderDirectionAsc
}

// readPage checks the query parameters "page" and "cursor". The error contains the faults of these
// parameters, and also the faults that the caller passes to readPage.
func (s *Server) readPage(ctx context.Context, p pageParams, order store.Order, faults []api.Fault, filters ...any) (pageRequest, error) {
	state := stateFrom(ctx)
	op := state.operation
	page := pageRequest{number: 1, limit: op.defaultLimit, paginated: op.query["paginated"] == nil || isTrue(p.paginated), order: order,
		cursor: cursorScope{state.Organisation.ID.String(), op.id, append(filters, order.Column, toAPIDirection(order))}}
	if p.page != nil {
		page.number = int(*p.page)
	}
	if p.limit != nil {
		page.limit = int(*p.limit)
	}
	switch {
	case p.cursor == nil:
	case page.number > 1:
		faults = append(faults, queryFault("page", faultConflict, "page and cursor cannot be sent together; the cursor already contains the page number"))
	default:
		content, err := s.verifyCursor(*p.cursor, page.cursor)
		if err != nil {
			faults = append(faults, queryFault("cursor", "invalid_cursor",
				"cursor was not returned by this list with these filters and this order; start again without a cursor"))
		}
		page.number, page.after, page.until = content.Page, &content.After, content.Until
	}
	if len(faults) > 0 {
		return page, invalidRequest(faults...)
	}
	return page, nil
}

// checkPaginated returns faults for the query parameters "page" and "cursor" if a request has them without
// paginated=true. It must be called only for operations that have the parameter "paginated".
func checkPaginated(paginated *bool, page *int32, cursor *string) []api.Fault {
	if isTrue(paginated) {
		return nil
	}
	var faults []api.Fault
	if page != nil && *page > 1 {
		faults = append(faults, queryFault("page", faultConflict, "page %d needs paginated=true; without paginated=true, the list has only page 1", *page))
	}
	if cursor != nil {
		faults = append(faults, queryFault("cursor", faultConflict, "cursor needs paginated=true"))
	}
	return faults
}

// window returns the range of rows that the database query reads for the page. maxBytes is the
// value of Window.MaxBytes.
func (p pageRequest) window(v View, maxBytes int64) store.Window {
	// If metrics are masked, the whole list has only one row.
	if v.masked && p.number > 1 {
		return store.Window{}
	}
	if v.masked {
		return store.Window{Limit: 1}
	}
	if p.after != nil {
		return store.Window{Limit: p.limit, After: p.after, MaxBytes: maxBytes}
	}
	return store.Window{Limit: p.limit, Offset: (p.number - 1) * p.limit, MaxBytes: maxBytes}
}

// computePagination returns the pagination object of a page and sets the Link header. The next page starts after nextPosition, which is nil on the last
// page.
func (s *Server) computePagination(ctx context.Context, p pageRequest, v View, totalRows int64, nextPosition *store.Position) (api.Pagination, error) {
	if v.masked {
		totalRows, nextPosition = min(totalRows, 1), nil
	}
	f := api.Pagination{Total: totalRows, Page: int32(p.number), Limit: int32(p.limit), TotalPages: (totalRows + int64(p.limit) - 1) / int64(p.limit)} //nolint:gosec // no overflow, because the contract limits the parameters page and limit
	if nextPosition != nil {
		cursor, err := s.signCursor(cursorContent{After: *nextPosition, Page: p.number + 1, Until: p.until}, p.cursor)
		if err != nil {
			return f, err
		}
		f.NextCursor = &cursor
		setNextPageLink(stateFrom(ctx), cursor)
	}
	return f, nil
}

// setNextPageLink sets the Link header of the response: the request's URL with the cursor of the next page.
func setNextPageLink(state *requestState, cursor string) {
	query := state.echo.Request().URL.Query()
	query.Del("page")
	if state.operation.query["paginated"] != nil {
		query.Set("paginated", "true") // the server refuses a cursor without paginated=true
	}
	query.Set("cursor", cursor)
	// The URL is relative, because a proxy can add a path prefix that the server does not know.
	state.echo.Response().Header().Set("Link", "<?"+query.Encode()+`>; rel="next"`)
}

// signCursor returns a cursor: the signature and the content, together in base64. The signature is valid only for the list that scope
// identifies.
func (s *Server) signCursor(content cursorContent, scope cursorScope) (string, error) {
	payload, err := json.Marshal(content)
	if err != nil {
		return "", err
	}
	mac, err := s.cursorMAC(payload, scope)
	if err != nil {
		return "", err
	}
	return base64.RawURLEncoding.EncodeToString(append(mac, payload...)), nil
}

// errCursor is the error for a cursor that was changed or that belongs to another list.
var errCursor = errors.New("the cursor was changed or belongs to another list")

// verifyCursor checks the signature of a cursor and returns the cursor's content. It fails if the cursor was changed, or if scope identifies
// another list.
func (s *Server) verifyCursor(cursor string, scope cursorScope) (cursorContent, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(raw) < macLength {
		return cursorContent{}, errCursor
	}
	mac, err := s.cursorMAC(raw[macLength:], scope)
	if err != nil {
		return cursorContent{}, err
	}
	if !hmac.Equal(mac, raw[:macLength]) {
		return cursorContent{}, errCursor
	}
	var content cursorContent
	err = json.Unmarshal(raw[macLength:], &content)
	return content, err
}

// cursorMAC returns the signature of a cursor: a keyed hash (HMAC) of scope and payload. payload is
// the JSON of a cursorContent.
func (s *Server) cursorMAC(payload []byte, scope cursorScope) ([]byte, error) {
	bound, err := json.Marshal(scope)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, s.cursorKey)
	h.Write(bound) // no separator is needed between scope and payload, because the end of a JSON value is unambiguous
	h.Write(payload)
	return h.Sum(nil)[:macLength], nil
}
