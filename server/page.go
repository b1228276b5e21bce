package server

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

// defaultLimit is the page size of a list if the parameter limit is not given.
const defaultLimit = 5000

// pageParams are the parameters that select a page of a list. A pointer is nil if the parameter is not given.
type pageParams struct {
	page, limit *int32
	cursor      *string
	paginated   bool // the response has a pagination object: always true for operations without the parameter paginated
}

// pageRequest is a request for a page of a list, after its parameters were checked.
type pageRequest struct {
	number    int             // page number, starting at 1
	limit     int             // maximum number of rows
	after     *store.Position // the last row before the page, from the cursor; nil without a cursor
	paginated bool            // the response has a pagination object
	order     store.Order
	cursor    cursorScope // the scope of the cursors of this list
}

// cursorScope identifies the list that a cursor belongs to. A cursor is invalid for another organisation, operation, filter or order.
type cursorScope struct {
	Organisation string
	Operation    string
	Query        any // filters and order
}

// cursorContent is the part of a cursor that is not the signature. It is not encrypted.
type cursorContent struct {
	After store.Position `json:"a"`
	Page  int            `json:"p"` // number of the page that starts after the row at After
}

// macLength is the length of the signature of a cursor, in bytes.
const macLength = 16

// faultConflict is the code of the fault that two parameters exclude each other.
const faultConflict = "conflict"

// orderOf returns the order of a list. orderBy and direction are nil if the parameters are not given. The default column is standard, and the
// default direction is descending.
func orderOf[O ~string](orderBy *O, standard O, direction *api.OrderDirection) store.Order {
	if orderBy == nil {
		orderBy = &standard
	}
	return store.Order{Column: string(*orderBy), Descending: direction == nil || *direction == api.OrderDirectionDesc}
}

// toAPIDirection returns the direction of an order for a response.
func toAPIDirection(o store.Order) api.OrderDirection {
	if o.Descending {
		return api.OrderDirectionDesc
	}
	return api.OrderDirectionAsc
}

// readPage checks the parameters page, limit and cursor of an operation. The cursor must come from a list with the same filters and order.
// faults are the faults of the operation's other parameters. If there are any faults, the error contains all of them.
func (s *Server) readPage(ctx context.Context, operation string, p pageParams, order store.Order, faults []api.Fault, filters ...any) (pageRequest, error) {
	page := pageRequest{number: 1, limit: defaultLimit, paginated: p.paginated, order: order, cursor: cursorScope{
		CallerFrom(ctx).Organisation.ID.String(), operation, append(filters, order.Column, toAPIDirection(order))}}
	if p.page != nil {
		page.number = int(*p.page)
	}
	if p.limit != nil {
		page.limit = int(*p.limit)
	}
	switch {
	case p.cursor == nil:
	case page.number > 1:
		faults = append(faults, queryFault("page", faultConflict, "page and cursor exclude each other; the cursor already names the page"))
	default:
		content, err := s.openCursor(*p.cursor, page.cursor)
		if err != nil {
			faults = append(faults, queryFault("cursor", "invalid_cursor",
				"cursor was not returned by this list with these filters and this order; start again without a cursor"))
		}
		page.number, page.after = content.Page, &content.After
	}
	if len(faults) > 0 {
		return page, invalid(faults...)
	}
	return page, nil
}

// checkPaginated returns a fault for page and for cursor if they are given without paginated=true. It is for operations with the parameter
// paginated.
func checkPaginated(paginated *bool, page *int32, cursor *string) []api.Fault {
	if isTrue(paginated) {
		return nil
	}
	var faults []api.Fault
	if page != nil && *page > 1 {
		faults = append(faults, queryFault("page", faultConflict, "page %d needs paginated=true; without it there is only page 1", *page))
	}
	if cursor != nil {
		faults = append(faults, queryFault("cursor", faultConflict, "cursor needs paginated=true"))
	}
	return faults
}

// window returns which rows to query. If the view is masked, the list has only one row, which is on page 1.
func (p pageRequest) window(v View) store.Window {
	if v.masked {
		return store.Window{Limit: 1}
	}
	if p.after != nil {
		return store.Window{Limit: p.limit, After: p.after}
	}
	return store.Window{Limit: p.limit, Offset: (p.number - 1) * p.limit}
}

// isBeyond returns true if the view is masked and the page is after page 1, which contains the only row.
func (p pageRequest) isBeyond(v View) bool { return v.masked && p.number > 1 }

// pageFacts are the values in every pagination object: the number of rows, the number of pages and the cursor of the next page.
type pageFacts struct {
	total, totalPages int64
	nextCursor        *string // nil on the last page
}

// pageFacts computes the values of a pagination object and sets the Link header for the next page. total is the number of rows in the list. next
// is the position after which the next page starts, or nil on the last page.
func (s *Server) pageFacts(ctx context.Context, p pageRequest, v View, total int64, next *store.Position) (pageFacts, error) {
	if v.masked {
		total, next = min(total, 1), nil
	}
	f := pageFacts{total: total, totalPages: (total + int64(p.limit) - 1) / int64(p.limit)}
	if next != nil {
		sealed, err := s.sealCursor(cursorContent{After: *next, Page: p.number + 1}, p.cursor)
		if err != nil {
			return f, err
		}
		f.nextCursor = &sealed
		if setLink, ok := ctx.Value(nextLinkKey{}).(func(string)); ok {
			setLink(sealed)
		}
	}
	return f, nil
}

// pagination returns the pagination object for a response. listVideos has a different pagination object and does not use it.
func (p pageRequest) pagination(f pageFacts) api.Pagination {
	return api.Pagination{Total: f.total, Page: int32(p.number), Limit: int32(p.limit), TotalPages: f.totalPages, NextCursor: f.nextCursor} //nolint:gosec // the contract limits page and limit
}

type nextLinkKey struct{}

// linkNextPage is a middleware that stores a function in the request's context. pageFacts calls this function to add a Link header (RFC 8288)
// with the URL of the next page. The URL is relative to the URL of the request, because the server does not know the path prefix that a proxy
// uses.
func (s *Server) linkNextPage(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), nextLinkKey{}, func(cursor string) {
			query := r.URL.Query()
			query.Del("page")
			if op := s.contract.match(c); op != nil && op.query["paginated"] != nil {
				query.Set("paginated", "true") // a cursor is invalid without paginated=true
			}
			query.Set("cursor", cursor)
			c.Response().Header().Set("Link", "<?"+query.Encode()+`>; rel="next"`)
		})))
		return next(c)
	}
}

// sealCursor returns a cursor: the base64 of its signature and its content.
func (s *Server) sealCursor(content cursorContent, scope cursorScope) (string, error) {
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

// errCursor is the error of a cursor that was changed or belongs to another list.
var errCursor = errors.New("the cursor was changed or belongs to another list")

// openCursor checks the signature of a cursor and returns the content. It fails if the cursor was changed or belongs to another scope.
func (s *Server) openCursor(cursor string, scope cursorScope) (cursorContent, error) {
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

// cursorMAC returns the signature of a cursor's content and scope. The cursor contains only the content.
func (s *Server) cursorMAC(payload []byte, scope cursorScope) ([]byte, error) {
	bound, err := json.Marshal(scope)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, s.cursorKey)
	h.Write(bound) // the end of a JSON value is unambiguous, so no other scope and content have the same bytes
	h.Write(payload)
	return h.Sum(nil)[:macLength], nil
}
