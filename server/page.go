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

// defaultLimit is the page size of a list whose limit is not given.
const defaultLimit = 5000

// pageRequest is the part of a list that was asked for.
type pageRequest struct {
	page   int
	limit  int
	after  *store.Position // where a cursor points to
	cursor cursorScope
}

// cursorScope is what a cursor is bound to: it leads nowhere for another organisation, operation, filter or order.
type cursorScope struct {
	Organisation string
	Operation    string
	Query        any // filters and order
}

// cursorContent travels in a cursor.
type cursorContent struct {
	After store.Position `json:"a"`
	Page  int            `json:"p"` // the page that begins there
}

const macLength = 16

// faultConflict is a parameter that does not go with another.
const faultConflict = "conflict"

// readPage reads page, limit and cursor.
func (s *Server) readPage(page, limit *int32, cursor *string, scope cursorScope) (pageRequest, []api.Fault) {
	p := pageRequest{page: 1, limit: defaultLimit, cursor: scope}
	if page != nil {
		p.page = int(*page)
	}
	if limit != nil {
		p.limit = int(*limit)
	}
	if cursor == nil {
		return p, nil
	}
	if page != nil && *page > 1 {
		return p, []api.Fault{queryFault("page", faultConflict, "page and cursor exclude each other; the cursor says where to go on")}
	}
	content, err := s.openCursor(*cursor, scope)
	if err != nil {
		return p, []api.Fault{queryFault("cursor", "invalid_cursor",
			"cursor is not one that this list gave out for these filters and this order; begin again without it")}
	}
	p.page, p.after = content.Page, &content.After
	return p, nil
}

// pagesAsked refuses what makes no sense in a list that has pages only when they are asked for.
func pagesAsked(paginated *bool, page *int32, cursor *string) []api.Fault {
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

// window is the part as the store takes it. A masked list has one result, on its first page.
func (p pageRequest) window(v View) store.Window {
	if v.masked {
		return store.Window{Limit: 1}
	}
	if p.after != nil {
		return store.Window{Limit: p.limit, After: p.after}
	}
	return store.Window{Limit: p.limit, Offset: (p.page - 1) * p.limit}
}

// pageFacts are what every pagination object says.
type pageFacts struct {
	total, totalPages int64
	hasMore           bool
	nextCursor        *string
}

// facts counts the pages, and notes the next one for the Link header. next is where it begins, nil on the last.
func (s *Server) facts(ctx context.Context, p pageRequest, v View, total int64, next *store.Position) (pageFacts, error) {
	if v.masked {
		total, next = min(total, 1), nil
	}
	f := pageFacts{total: total, totalPages: (total + int64(p.limit) - 1) / int64(p.limit), hasMore: next != nil}
	if next != nil {
		sealed, err := s.sealCursor(cursorContent{After: *next, Page: p.page + 1}, p.cursor)
		if err != nil {
			return f, err
		}
		f.nextCursor = &sealed
		if link, ok := ctx.Value(nextLinkKey{}).(func(string)); ok {
			link(sealed)
		}
	}
	return f, nil
}

// pagination is the facts as lists of less than all videos give them.
func (s *Server) pagination(ctx context.Context, p pageRequest, v View, total int64, next *store.Position) (api.Pagination, error) {
	f, err := s.facts(ctx, p, v, total, next)
	return api.Pagination{Total: f.total, Page: int32(p.page), Limit: int32(p.limit), TotalPages: f.totalPages, NextCursor: f.nextCursor}, err //nolint:gosec // the contract bounds both
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
			if op := s.operations.of(c); op != nil && op.query["paginated"] != nil {
				query.Set("paginated", "true") // a cursor requires it
			}
			query.Set("cursor", cursor)
			c.Response().Header().Set("Link", "<?"+query.Encode()+`>; rel="next"`)
		})))
		return next(c)
	}
}

// beyond says that the page is behind the one result of a masked list.
func (p pageRequest) beyond(v View) bool { return v.masked && p.page > 1 }

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

// cursorMAC signs a cursor together with what it is bound to, which need not travel in it.
func (s *Server) cursorMAC(payload []byte, scope cursorScope) ([]byte, error) {
	bound, err := json.Marshal(scope)
	if err != nil {
		return nil, err
	}
	h := hmac.New(sha256.New, s.cursorKey)
	h.Write(bound) // JSON ends where it ends: no text of one part can pass for the other's
	h.Write(payload)
	return h.Sum(nil)[:macLength], nil
}

// direction reads order_direction, descending by default.
func direction(d *api.OrderDirection) api.OrderDirection {
	if d == nil {
		return api.OrderDirectionDesc
	}
	return *d
}

// scopeOf names what a cursor of an operation's list is bound to.
func scopeOf(ctx context.Context, operation string, query any) cursorScope {
	return cursorScope{CallerFrom(ctx).Organisation.ID.String(), operation, query}
}
