package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/store"
)

const (
	// maxPageBytes is the maximum size of the JSON of a page. A page that would be larger has fewer rows than requested.
	maxPageBytes = 32 << 20
	// maxRowBytes is an upper bound for the JSON of a row without its texts and labels: names of members, numbers, times and ids.
	maxRowBytes = 2 << 10
	// listBufferBytes is how many bytes of a list are buffered before they are sent. An error before the first bytes are sent is answered with
	// a problem.
	listBufferBytes = 64 << 10
)

// listRequest is a request for a list whose parameters were checked. R is the type of the rows in the store. A is their type in the response.
type listRequest[R, A any] struct {
	page pageRequest
	// tag contains the values from which the ETag is computed: the parameters of the request, and what they were resolved to.
	tag []any
	// find queries the rows of a page.
	find func(store.Window) (*store.List[R], error)
	// convert converts a row for the response. It sets the metrics to null if the view is masked.
	convert func(R, View) A
	// members returns an object with the members of the response other than data. rows is the number of rows in data. If members is nil, a
	// paginated response has the members data and pagination, and any other response is an array.
	members func(facts pageFacts, rows int) any
}

// answerList returns the response to a request for a list. It sets the ETag, queries the rows, limits the size of the page and adds the
// pagination. All list operations call it.
func answerList[R, A any](ctx context.Context, s *Server, l listRequest[R, A]) (listResponse, error) {
	view := CallerFrom(ctx).View
	if err := s.checkNotModified(ctx, l.page.cursor.Operation, l.tag...); err != nil {
		return listResponse{}, err
	}
	found, err := l.find(l.page.window(view))
	if err != nil {
		return listResponse{}, err
	}
	if l.page.isBeyond(view) {
		found.Cut(0)
	}
	convert := func(row R) A { return l.convert(row, view) }
	cut, err := cutToSize(ctx, s, found, convert)
	if err != nil {
		return listResponse{}, err
	}
	var facts pageFacts
	if l.page.paginated || cut { // without pagination, only a page that was cut has a Link header for the next page
		if facts, err = s.pageFacts(ctx, l.page, view, found.Total, found.Next()); err != nil {
			return listResponse{}, err
		}
	}
	response := listResponse{ctx: ctx, logger: s.logger, rows: func(yield func(any, error) bool) {
		for row, err := range found.Rows(ctx) {
			if !yield(convert(row), err) {
				return
			}
		}
	}}
	switch {
	case l.members != nil:
		response.members = l.members(facts, found.Len())
	case l.page.paginated:
		response.members = struct {
			Pagination api.Pagination `json:"pagination"`
		}{l.page.pagination(facts)}
	}
	return response, nil
}

// cutToSize removes the last rows of a page if its JSON is larger than Server.maxPage, but keeps at least one row. It returns true if it removed
// rows. It runs before the first byte is sent, so that headers and pagination are correct. It measures a page only if the page can be too large.
// The rows of such a page are read twice.
func cutToSize[R, A any](ctx context.Context, s *Server, list *store.List[R], convert func(R) A) (bool, error) {
	if list.MaxTextBytes()+maxRowBytes*int64(list.Len()) <= s.maxPage {
		return false, nil
	}
	var size int64
	var buffer bytes.Buffer
	rows := 0
	for row, err := range list.Rows(ctx) {
		if err != nil {
			return false, err
		}
		buffer.Reset()
		if err := json.NewEncoder(&buffer).Encode(convert(row)); err != nil {
			return false, err
		}
		if size += int64(buffer.Len()); size > s.maxPage && rows > 0 {
			list.Cut(rows)
			return true, nil
		}
		rows++
	}
	return false, nil
}

// listResponse is the response to a list operation. It reads and writes a few rows at a time, so that a longer list does not need more memory.
type listResponse struct {
	ctx     context.Context //nolint:containedctx // the generated method has no context parameter
	logger  *slog.Logger
	rows    iter.Seq2[any, error]
	members any // an object with the members other than data; nil if the response is an array
}

// VisitListVideosResponse writes the response of the operation listVideos.
func (l listResponse) VisitListVideosResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListAccountsResponse writes the response of the operation listAccounts.
func (l listResponse) VisitListAccountsResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListAccountVideosResponse writes the response of the operation listAccountVideos.
func (l listResponse) VisitListAccountVideosResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListCollectionsResponse writes the response of the operation listCollections.
func (l listResponse) VisitListCollectionsResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListCollectionVideosResponse writes the response of the operation listCollectionVideos.
func (l listResponse) VisitListCollectionVideosResponse(w http.ResponseWriter) error {
	return l.write(w)
}

// VisitListCollectionAccountsResponse writes the response of the operation listCollectionAccounts.
func (l listResponse) VisitListCollectionAccountsResponse(w http.ResponseWriter) error {
	return l.write(w)
}

// write sends the response. If an error occurs before the first byte is sent, it returns the error. If an error occurs later, it aborts the
// connection, so that no client treats an incomplete list as complete.
func (l listResponse) write(w http.ResponseWriter) error {
	out := &listBuffer{w: w}
	err := l.encode(out)
	if err == nil {
		err = out.send()
	}
	if err == nil || !out.started {
		return err
	}
	if !errors.Is(err, context.Canceled) {
		l.logger.ErrorContext(l.ctx, "sending a list failed after the first byte", "error", err)
	}
	panic(http.ErrAbortHandler)
}

// encode writes the JSON of the response to out.
func (l listResponse) encode(out *listBuffer) error {
	begin, end := `{"data":[`, "],"
	members := []byte{}
	if l.members == nil {
		begin, end = "[", "]\n"
	} else {
		object, err := json.Marshal(l.members)
		if err != nil {
			return err
		}
		members = append(object[1:], '\n')
	}
	out.WriteString(begin)
	encoder := json.NewEncoder(out)
	first := true
	for row, err := range l.rows {
		if err != nil {
			return err
		}
		if !first {
			out.WriteByte(',')
		}
		first = false
		if err := encoder.Encode(row); err != nil {
			return err
		}
		out.Truncate(out.Len() - len("\n"))
		if out.Len() >= listBufferBytes {
			if err := out.send(); err != nil {
				return err
			}
		}
	}
	out.WriteString(end)
	out.Write(members)
	return nil
}

// listBuffer buffers the next bytes of a list response.
type listBuffer struct {
	bytes.Buffer
	w       http.ResponseWriter
	started bool // the status was sent
}

// send sends the buffered bytes. The first call also sends the status.
func (b *listBuffer) send() error {
	if !b.started {
		b.started = true
		b.w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		b.w.WriteHeader(http.StatusOK)
	}
	_, err := b.WriteTo(b.w)
	return err
}
