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
	// maxPageBytes is the size of the JSON at which a page of a list ends early.
	maxPageBytes = 32 << 20
	// maxRowBytes bounds the JSON of a row without its texts and labels: names of members, numbers, times and ids.
	maxRowBytes = 2 << 10
	// listBufferBytes is how much of a list is buffered before the first byte is sent. An error before then is answered as a problem. It is
	// also the size of each later write.
	listBufferBytes = 64 << 10
)

// listRequest is a request for a list of rows R, each answered as A, after its parameters were checked.
type listRequest[R, A any] struct {
	page pageRequest
	// tag contains all that the answer depends on besides the page's operation and the organisation's data, for its ETag.
	tag []any
	// find queries the rows of a window.
	find func(store.Window) (*store.List[R], error)
	// convert converts a row and masks what the view hides.
	convert func(R, View) A
	// members returns an object with the members of the answer beside data. If members is nil, a paginated answer has the member
	// pagination, and any other answer is an array.
	members func(facts pageFacts, rows int) any
}

// answerList answers a request for a list: ETag, query, masking, limit of size, pagination. All lists are answered here.
func answerList[R, A any](ctx context.Context, s *Server, l listRequest[R, A]) (listResponse, error) {
	view := CallerFrom(ctx).View
	if err := s.unlessUnchanged(ctx, l.page.cursor.Operation, l.tag...); err != nil {
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
	if l.page.paginated || cut { // an answer without pagination names the next page, in the Link header, only if it was cut
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

// cutToSize ends the page after as many rows as fit into maxPage, but at least one. It returns true if it removed rows. It runs before the
// first byte is sent, so that headers and pagination are correct. Only a page that may be too large is measured; its rows are read twice.
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

// listResponse is the answer to a list. It reads and writes a few rows at a time, so that its memory does not grow with the list.
type listResponse struct {
	ctx     context.Context //nolint:containedctx // the generated method has no context parameter
	logger  *slog.Logger
	rows    iter.Seq2[any, error]
	members any // an object with the members beside data; nil if the answer is an array
}

// VisitListVideosResponse writes the response.
func (l listResponse) VisitListVideosResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListAccountsResponse writes the response.
func (l listResponse) VisitListAccountsResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListAccountVideosResponse writes the response.
func (l listResponse) VisitListAccountVideosResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListCollectionsResponse writes the response.
func (l listResponse) VisitListCollectionsResponse(w http.ResponseWriter) error { return l.write(w) }

// VisitListCollectionVideosResponse writes the response.
func (l listResponse) VisitListCollectionVideosResponse(w http.ResponseWriter) error {
	return l.write(w)
}

// VisitListCollectionAccountsResponse writes the response.
func (l listResponse) VisitListCollectionAccountsResponse(w http.ResponseWriter) error {
	return l.write(w)
}

// write sends the answer. It returns an error that occurs before the first byte is sent. After a later error it aborts the connection, so
// that no client takes half a list for a complete one.
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

// encode writes the JSON of the answer.
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

// listBuffer buffers the bytes to send next.
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
