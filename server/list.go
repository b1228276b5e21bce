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
	// maxRowBytes bounds what a row takes in JSON besides its texts and labels: names of members, numbers, times and ids.
	maxRowBytes = 2 << 10
	// heldBackBytes is how much of a list is held back before the first byte is sent: an error up to there is answered as a problem. It is
	// also how much is sent at a time.
	heldBackBytes = 64 << 10
)

// listAnswer is the answer to a list. It writes row after row, so that its memory does not grow with the list.
type listAnswer struct {
	ctx     context.Context //nolint:containedctx // the generated interface of an answer has no place for it
	logger  *slog.Logger
	rows    iter.Seq2[any, error]
	members any // an object with the members beside data; nil for an answer that is an array
}

// newListAnswer returns the answer of the rows of a list, each converted.
func newListAnswer[R, A any](ctx context.Context, s *Server, list *store.List[R], convert func(R) A, members any) listAnswer {
	return listAnswer{ctx: ctx, logger: s.logger, members: members, rows: func(yield func(any, error) bool) {
		for row, err := range list.Rows(ctx) {
			if !yield(convert(row), err) {
				return
			}
		}
	}}
}

// cutToSize ends the page after as many rows as maxPage allows, at least one, and says whether it did. It is done before the first
// byte is sent, so that headers and pagination are right. Only a page that may be too large is measured, which reads its rows twice.
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

// answerPage answers a list with its page.
func answerPage[R, A any](ctx context.Context, s *Server, found *store.List[R], page pageRequest, convert func(R) A) (listAnswer, error) {
	view := CallerFrom(ctx).View
	if page.beyond(view) {
		found.Cut(0) // the one result is on the first page
	}
	if _, err := cutToSize(ctx, s, found, convert); err != nil {
		return listAnswer{}, err
	}
	pagination, err := s.pagination(ctx, page, view, found.Total, found.Next())
	return newListAnswer(ctx, s, found, convert, struct {
		Pagination api.Pagination `json:"pagination"`
	}{pagination}), err
}

// answerArrayOrPage answers a list with its page or, where pages were not asked for, with an array. An array that ends early names the
// next page in the Link header alone.
func answerArrayOrPage[R, A any](ctx context.Context, s *Server, found *store.List[R], page pageRequest, convert func(R) A, paginated bool) (listAnswer, error) {
	if paginated {
		return answerPage(ctx, s, found, page, convert)
	}
	err := s.cutArray(ctx, page, found.Total, found.Next, func() (bool, error) { return cutToSize(ctx, s, found, convert) })
	return newListAnswer(ctx, s, found, convert, nil), err
}

// cutArray cuts a list that is answered without a pagination object, and names the next page in the Link header if it did.
func (s *Server) cutArray(ctx context.Context, page pageRequest, total int64, next func() *store.Position, cut func() (bool, error)) error {
	if early, err := cut(); err != nil || !early {
		return err
	}
	_, err := s.facts(ctx, page, CallerFrom(ctx).View, total, next())
	return err
}

// VisitListVideosResponse writes the answer.
func (a listAnswer) VisitListVideosResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListAccountsResponse writes the answer.
func (a listAnswer) VisitListAccountsResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListAccountVideosResponse writes the answer.
func (a listAnswer) VisitListAccountVideosResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListCollectionsResponse writes the answer.
func (a listAnswer) VisitListCollectionsResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListCollectionVideosResponse writes the answer.
func (a listAnswer) VisitListCollectionVideosResponse(w http.ResponseWriter) error {
	return a.write(w)
}

// VisitListCollectionAccountsResponse writes the answer.
func (a listAnswer) VisitListCollectionAccountsResponse(w http.ResponseWriter) error {
	return a.write(w)
}

// write sends the answer. An error before the first byte is returned. After it the connection is aborted: a client must not take half a
// list for a whole one.
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

// heldBack collects what is to be sent next.
type heldBack struct {
	bytes.Buffer
	w     http.ResponseWriter
	began bool
}

// send sends what was collected, after the status when it is the first.
func (h *heldBack) send() error {
	if !h.began {
		h.began = true
		h.w.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
		h.w.WriteHeader(http.StatusOK)
	}
	_, err := h.WriteTo(h.w)
	return err
}
