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

// defaultLimit is the page size of a list if limit is not given.
const defaultLimit = 5000

// pageParams are the parameters that select a page of a list.
type pageParams struct {
	page, limit *int32
	cursor      *string
	paginated   bool // false only for the lists whose parameter paginated is not true
}

// pageRequest is a page of a list, after its parameters were checked.
type pageRequest struct {
	number    int
	limit     int
	after     *store.Position // the position of the cursor; nil without a cursor
	paginated bool
	order     store.Order
	cursor    cursorScope
}

// cursorScope is the list that a cursor belongs to. A cursor is invalid for any other organisation, operation, filter or order.
type cursorScope struct {
	Organisation string
	Operation    string
	Query        any // filters and order
}

// cursorContent is the readable part of a cursor.
type cursorContent struct {
	After store.Position `json:"a"`
	Page  int            `json:"p"` // the number of the page that begins there
}

const macLength = 16

// faultConflict is the code of two parameters that exclude each other.
const faultConflict = "conflict"

// orderOf returns the order of a list: by standard if order_by is not given, and descending if order_direction is not given.
func orderOf[O ~string](orderBy *O, standard O, direction *api.OrderDirection) store.Order {
	if orderBy == nil {
		orderBy = &standard
	}
	return store.Order{Column: string(*orderBy), Descending: direction == nil || *direction == api.OrderDirectionDesc}
}

func toAPIDirection(o store.Order) api.OrderDirection {
	if o.Descending {
		return api.OrderDirectionDesc
	}
	return api.OrderDirectionAsc
}

// readPage checks page, limit and cursor of an operation's list. A cursor belongs to the list with these filters and this order. faults
// are the faults of the other parameters. If there are any faults, the error lists all of them.
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

// checkPaginated returns the faults of page and cursor in a list that has pages only if paginated is true.
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

// window returns the rows to query. A masked list has one row, which is on its first page.
func (p pageRequest) window(v View) store.Window {
	if v.masked {
		return store.Window{Limit: 1}
	}
	if p.after != nil {
		return store.Window{Limit: p.limit, After: p.after}
	}
	return store.Window{Limit: p.limit, Offset: (p.number - 1) * p.limit}
}

// isBeyond returns true if the page lies after the only row of a masked list.
func (p pageRequest) isBeyond(v View) bool { return v.masked && p.number > 1 }

// pageFacts are the facts that every pagination object contains.
type pageFacts struct {
	total, totalPages int64
	nextCursor        *string // nil on the last page
}

// pageFacts counts the pages and sets the Link header for the next page. next is the start of the next page, or nil on the last page.
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

// pagination returns the pagination object of every list but the list of all videos.
func (p pageRequest) pagination(f pageFacts) api.Pagination {
	return api.Pagination{Total: f.total, Page: int32(p.number), Limit: int32(p.limit), TotalPages: f.totalPages, NextCursor: f.nextCursor} //nolint:gosec // the contract bounds both
}

type nextLinkKey struct{}

// linkNextPage lets an operation add a Link header (RFC 8288) that names the next page of a list. The address is relative to the
// request's URL, because the server does not know the prefix under which a proxy serves it.
func (s *Server) linkNextPage(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), nextLinkKey{}, func(cursor string) {
			query := r.URL.Query()
			query.Del("page")
			if op := s.operations.match(c); op != nil && op.query["paginated"] != nil {
				query.Set("paginated", "true") // a cursor requires it
			}
			query.Set("cursor", cursor)
			c.Response().Header().Set("Link", "<?"+query.Encode()+`>; rel="next"`)
		})))
		return next(c)
	}
}

// sealCursor returns a cursor: the signature and the content, in base64.
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

var errCursor = errors.New("not a cursor of this list")

// openCursor returns the content of a cursor. It fails if the cursor was changed or belongs to another scope.
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

// cursorMAC signs the content of a cursor together with its scope. The cursor does not contain the scope.
func (s *Server) cursorMAC(payload []byte, scope cursorScope) ([]byte, error) {
	bound, err := json.Marshal(scope)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, s.cursorKey)
	h.Write(bound) // a JSON value shows its own end, so no other pair of scope and content has the same bytes
	h.Write(payload)
	return h.Sum(nil)[:macLength], nil
}
