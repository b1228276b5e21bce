package server

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"net/http"
	"sync"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

const (
	// maxPageBytes is the maximum size of a list page as JSON, in bytes. A page that would be larger has fewer rows than requested.
	maxPageBytes = 32 << 20
	// maxRowBytes is the maximum size of a row as JSON, in bytes, without its stored texts and its
	// collections. It includes the computed text display_username.
	maxRowBytes = 3 << 10
	// listBufferBytes is how many bytes of a list response are buffered before sending begins.
	// Until then, the server can still send an error response.
	listBufferBytes = 64 << 10
)

// listRequest is a request for a list, after its parameters were checked. The type parameter R is the database type of a row.
type listRequest[R any] struct {
	page pageRequest
	// notInURL contains the values for the ETag that are not in the URL: the target of a short link, or the end of an export.
	notInURL []any
	// versionInFirstQuery is true if the first query of find also reads the version for the ETag. Otherwise, answerList reads the version before it
	// calls find. Only GET /videos sets it. In the other lists, find reads other data first, never reads the version, or must know the number of
	// rows before it collects the rows in memory.
	versionInFirstQuery bool
	// find reads the rows of one page. It returns the rows, or it passes each row to the function each and returns no rows.
	find func(o *store.Org, w store.Window, each func(*R) error) (*store.List[R], error)
	// encode appends a row as one list entry, as several entries separated by commas, or as no
	// entry. If view masks metrics, the metrics are null.
	encode func(out []byte, row *R, view View) ([]byte, error)
	// otherMembers returns an object with all members except "data". If otherMembers is nil, a
	// paginated response has "data" and "pagination", and any other response is a JSON array.
	otherMembers func(page *store.List[R], pagination api.Pagination) (any, error)
	// allRows is for callers whose tier does not show metrics. If allRows is true, they get all
	// rows. If it is false, they get only the first row.
	allRows bool
}

// answerList returns the response to a request for a list. It sets the ETag, queries the rows,
// limits the size of the page and adds the pagination.
func answerList[R any](ctx context.Context, s *Server, l listRequest[R]) (listResponse, error) {
	view := callerFrom(ctx).View
	orgAtVersion := s.orgAtVersion
	if l.versionInFirstQuery {
		orgAtVersion = s.orgAtVersionOfFirstQuery
	}
	org, err := orgAtVersion(ctx, l.notInURL...)
	if err != nil {
		return listResponse{}, err
	}
	pageView := view
	if l.allRows {
		pageView = FullView
	}
	out := &listBuffer{}
	encode := func(encoded []byte, row *R) ([]byte, error) { return l.encode(encoded, row, view) }
	each := func(row *R) error { return addRow(out, row, encode, s.maxPage) }
	found, err := store.FromReplica(ctx, org, func(org *store.Org) (*store.List[R], error) {
		out.beginResponse(l.otherMembers != nil || l.page.paginated) // if a replica fails, FromReplica calls this function again, and beginResponse drops the rows of the first call
		return l.find(org, l.page.window(pageView, s.maxPage), each)
	})
	if err != nil {
		return listResponse{}, err
	}
	// Headers and pagination depend on the number of rows, so the page is cut before the response begins.
	if err := cutPageToSize(s, found, encode); err != nil {
		return listResponse{}, err
	}
	pagination, err := s.computePagination(ctx, l.page, pageView, found.Total, found.Next())
	if err != nil {
		return listResponse{}, err
	}
	response := listResponse{ctx: ctx, logger: s.logger, buffer: out, addRows: func() error {
		for i := range found.Rows {
			if err := addRow(out, &found.Rows[i], encode, math.MaxInt64); err != nil {
				return err
			}
		}
		return nil
	}}
	switch {
	case l.otherMembers != nil:
		if response.members, err = l.otherMembers(found, pagination); err != nil {
			return listResponse{}, err
		}
	case l.page.paginated:
		response.members = struct {
			Pagination api.Pagination `json:"pagination"`
		}{pagination}
	}
	return response, nil
}

// cutPageToSize removes the last rows of a page if the page's JSON is larger than Server.maxPage.
// It keeps at least one row.
func cutPageToSize[R any](s *Server, page *store.List[R], encode func([]byte, *R) ([]byte, error)) error {
	const worstEscape = 6 // number of bytes of an escaped character in JSON: \u and four digits
	if maxRowBytes*int64(len(page.Rows))+worstEscape*page.TextBytes+page.ExtraBytes <= s.maxPage {
		return nil
	}
	var size int64
	var encoded []byte
	for i := range page.Rows {
		var err error
		if encoded, err = encode(encoded[:0], &page.Rows[i]); err != nil {
			return err
		}
		if size += int64(len(encoded)) + int64(len(",")); size > s.maxPage && i > 0 {
			page.Cut(i)
			return nil
		}
	}
	return nil
}

// listResponse is the response of an operation that returns a list. To save memory, addRows encodes
// rows only while the response is sent.
type listResponse struct {
	ctx     context.Context //nolint:containedctx // a field, because the generated methods that write the response have no context parameter
	logger  *slog.Logger
	buffer  *listBuffer  // can already contain the JSON of some rows
	addRows func() error // encodes the remaining rows and adds their JSON to buffer
	members any          // object with the members of the response except "data"; nil if the response is a JSON array
}

// VisitListVideosResponse implements the generated response interface of listVideos.
func (l listResponse) VisitListVideosResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListAccountsResponse implements the generated response interface of listAccounts.
func (l listResponse) VisitListAccountsResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListAccountVideosResponse implements the generated response interface of listAccountVideos.
func (l listResponse) VisitListAccountVideosResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListCollectionsResponse implements the generated response interface of listCollections.
func (l listResponse) VisitListCollectionsResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListReportsResponse implements the generated response interface of listReports.
func (l listResponse) VisitListReportsResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListEventsResponse implements the generated response interface of listEvents.
func (l listResponse) VisitListEventsResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListWebhookDeliveriesResponse implements the generated response interface of listWebhookDeliveries.
func (l listResponse) VisitListWebhookDeliveriesResponse(w http.ResponseWriter) error {
	return l.write(w)
}

// VisitListCollectionVideosResponse implements the generated response interface of listCollectionVideos.
func (l listResponse) VisitListCollectionVideosResponse(w http.ResponseWriter) error {
	return l.write(w)
}

// VisitListCollectionAccountsResponse implements the generated response interface of listCollectionAccounts.
func (l listResponse) VisitListCollectionAccountsResponse(w http.ResponseWriter) error {
	return l.write(w)
}

// write sends the list response. If an error occurs before the first byte is sent, write returns
// the error. A later error aborts the connection.
func (l listResponse) write(w http.ResponseWriter) error {
	l.buffer.w = w
	defer l.buffer.releaseBlocks()
	err := l.addRows()
	if err == nil {
		err = l.buffer.endResponse(l.members)
	}
	if err == nil {
		err = l.buffer.sendBlocks()
	}
	if err == nil || !l.buffer.started {
		return err
	}
	l.logger.Log(l.ctx, failureLevel(l.ctx), "sending a list failed after the first byte", "error", err)
	// Abort the connection, so that no client treats an incomplete list as complete.
	panic(http.ErrAbortHandler)
}

// listBuffer has the part of a list response that is not sent yet: JSON, in blocks of about
// listBufferBytes.
type listBuffer struct {
	blocks  []*bytes.Buffer
	rows    int                 // number of rows that were added
	bytes   int64               // size of the JSON of all added rows, in bytes
	w       http.ResponseWriter // gets each block when the block is full; if it is nil, listBuffer keeps all blocks
	started bool                // true if the status of the response was sent
}

// listBlocks is a pool of empty blocks for listBuffer. Without the pool, a request for a short list
// would take about 10% longer.
var listBlocks = sync.Pool{New: func() any {
	return bytes.NewBuffer(make([]byte, 0, listBufferBytes+maxRowBytes))
}}

// beginResponse drops all rows and begins a new response. The response is an object if isObject is true, and an array if not.
func (b *listBuffer) beginResponse(isObject bool) {
	b.releaseBlocks()
	*b = listBuffer{}
	if begin := b.currentBlock(); isObject {
		begin.WriteString(`{"data":[`)
	} else {
		begin.WriteByte('[')
	}
}

// endResponse completes the response after its last row. otherMembers is an object with the members except "data", or nil if the response
// is an array.
func (b *listBuffer) endResponse(otherMembers any) error {
	last := b.currentBlock()
	if otherMembers == nil {
		last.WriteString("]\n")
		return nil
	}
	object, err := json.Marshal(otherMembers)
	if err != nil {
		return err
	}
	last.WriteString("],")
	last.Write(object[1:])
	last.WriteByte('\n')
	return nil
}

// currentBlock returns the block to which the next row is added.
func (b *listBuffer) currentBlock() *bytes.Buffer {
	if n := len(b.blocks); n > 0 && b.blocks[n-1].Len() < listBufferBytes {
		return b.blocks[n-1]
	}
	block := listBlocks.Get().(*bytes.Buffer)
	b.blocks = append(b.blocks, block)
	return block
}

// addRow encodes a row and adds its JSON to b. If b would then have more than maxBytes bytes,
// addRow returns store.ErrEnough instead. The first row is always added.
func addRow[R any](b *listBuffer, row *R, encode func([]byte, *R) ([]byte, error), maxBytes int64) error {
	block, separator := b.currentBlock(), ""
	if b.rows > 0 {
		separator = ","
	}
	encoded, err := encode(append(block.AvailableBuffer(), separator...), row)
	if err != nil || len(encoded) == len(separator) {
		return err
	}
	if b.bytes += int64(len(encoded)); b.rows > 0 && b.bytes > maxBytes {
		return store.ErrEnough
	}
	b.rows++
	block.Write(encoded)
	if b.w != nil && block.Len() >= listBufferBytes {
		return b.sendBlocks()
	}
	return nil
}

// sendBlocks sends all blocks and then drops them. The first call also sends the status 200.
func (b *listBuffer) sendBlocks() error {
	if !b.started {
		b.started = true
		b.w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		b.w.WriteHeader(http.StatusOK)
	}
	for _, block := range b.blocks {
		if _, err := b.w.Write(block.Bytes()); err != nil {
			return err
		}
	}
	b.releaseBlocks()
	return nil
}

// releaseBlocks drops all blocks. It returns them to the pool, except a block that a long row has made too large.
func (b *listBuffer) releaseBlocks() {
	for _, block := range b.blocks {
		if block.Cap() <= 2*listBufferBytes {
			block.Reset()
			listBlocks.Put(block)
		}
	}
	b.blocks = b.blocks[:0]
}

// newRowEncoder returns a function for listRequest.encode. The function converts a row to its JSON type and encodes it with encoding/json.
func newRowEncoder[R, A any](convert func(R, View) A) func([]byte, *R, View) ([]byte, error) {
	return func(out []byte, row *R, view View) ([]byte, error) {
		encoded, err := json.Marshal(convert(*row, view))
		return append(out, encoded...), err
	}
}
