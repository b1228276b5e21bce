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
	// maxPageBytes is the size from which a page of a list ends early.
	maxPageBytes = 32 << 20
	// maxRowBytes bounds the JSON of a row without its texts and labels: names of members, numbers, times and ids.
	maxRowBytes = 2 << 10
	// heldBackBytes is how much of a list is buffered before the first byte is sent. An error before then is answered as a problem. It is
	// also the size of each later write.
	heldBackBytes = 64 << 10
)

// listAnswer is the answer to a list. It reads and writes a few rows at a time, so that its memory does not grow with the list.
type listAnswer struct {
	ctx     context.Context //nolint:containedctx // the generated method has no context parameter
	logger  *slog.Logger
	rows    iter.Seq2[any, error]
	members any // an object with the members beside data; nil for an answer that is an array
}

// newListAnswer returns an answer with the rows of a list, each converted by convert.
func newListAnswer[R, A any](ctx context.Context, s *Server, list *store.List[R], convert func(R) A, members any) listAnswer {
	return listAnswer{ctx: ctx, logger: s.logger, members: members, rows: func(yield func(any, error) bool) {
		for row, err := range list.Rows(ctx) {
			if !yield(convert(row), err) {
				return
			}
		}
	}}
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

// answerPage returns one page of a list with its pagination object.
func answerPage[R, A any](ctx context.Context, s *Server, found *store.List[R], page pageRequest, convert func(R) A) (listAnswer, error) {
	view := CallerFrom(ctx).View
	if page.beyond(view) {
		found.Cut(0) // a masked tier gets one result, which is on the first page
	}
	if _, err := cutToSize(ctx, s, found, convert); err != nil {
		return listAnswer{}, err
	}
	pagination, err := s.pagination(ctx, page, view, found.Total, found.Next())
	return newListAnswer(ctx, s, found, convert, struct {
		Pagination api.Pagination `json:"pagination"`
	}{pagination}), err
}

// answerArrayOrPage returns a page if paginated is true, and otherwise an array. If an array ends early, only the Link header names the
// next page.
func answerArrayOrPage[R, A any](ctx context.Context, s *Server, found *store.List[R], page pageRequest, convert func(R) A, paginated bool) (listAnswer, error) {
	if paginated {
		return answerPage(ctx, s, found, page, convert)
	}
	err := s.cutArray(ctx, page, found.Total, found.Next, func() (bool, error) { return cutToSize(ctx, s, found, convert) })
	return newListAnswer(ctx, s, found, convert, nil), err
}

// cutArray cuts an answer without a pagination object to the maximum size. If it removed rows, it adds a Link header for the next page.
func (s *Server) cutArray(ctx context.Context, page pageRequest, total int64, next func() *store.Position, cut func() (bool, error)) error {
	if early, err := cut(); err != nil || !early {
		return err
	}
	_, err := s.facts(ctx, page, CallerFrom(ctx).View, total, next())
	return err
}

// VisitListVideosResponse writes the response.
func (a listAnswer) VisitListVideosResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListAccountsResponse writes the response.
func (a listAnswer) VisitListAccountsResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListAccountVideosResponse writes the response.
func (a listAnswer) VisitListAccountVideosResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListCollectionsResponse writes the response.
func (a listAnswer) VisitListCollectionsResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListCollectionVideosResponse writes the response.
func (a listAnswer) VisitListCollectionVideosResponse(w http.ResponseWriter) error {
	return a.write(w)
}

// VisitListCollectionAccountsResponse writes the response.
func (a listAnswer) VisitListCollectionAccountsResponse(w http.ResponseWriter) error {
	return a.write(w)
}

// write sends the answer. It returns an error that occurs before the first byte is sent. After a later error it aborts the connection, so
// that no client takes half a list for a complete one.
func (a listAnswer) write(w http.ResponseWriter) error {
	out := &heldBack{w: w}
	err := a.encode(out)
	if err == nil {
		err = out.send()
	}
	if err == nil || !out.began {
		return err
	}
	if !errors.Is(err, context.Canceled) {
		a.logger.ErrorContext(a.ctx, "a list broke off", "error", err)
	}
	panic(http.ErrAbortHandler)
}

func (a listAnswer) encode(out *heldBack) error {
	begin, end := `{"data":[`, "],"
	members := []byte{}
	if a.members == nil {
		begin, end = "[", "]\n"
	} else {
		object, err := json.Marshal(a.members)
		if err != nil {
			return err
		}
		members = append(object[1:], '\n')
	}
	out.WriteString(begin)
	encoder := json.NewEncoder(out)
	first := true
	for row, err := range a.rows {
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
		if out.Len() >= heldBackBytes {
			if err := out.send(); err != nil {
				return err
			}
		}
	}
	out.WriteString(end)
	out.Write(members)
	return nil
}

// heldBack buffers the bytes that will be sent next.
type heldBack struct {
	bytes.Buffer
	w     http.ResponseWriter
	began bool
}

// send sends the buffered bytes. The first call also sends the status.
func (h *heldBack) send() error {
	if !h.began {
		h.began = true
		h.w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		h.w.WriteHeader(http.StatusOK)
	}
	_, err := h.WriteTo(h.w)
	return err
}
