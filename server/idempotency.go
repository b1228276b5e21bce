package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/store"
)

// settleWithin bounds the writing down of what became of a key, which goes on when the caller has hung up.
const settleWithin = 5 * time.Second

// settleAfterDeadline is how much of it may lie after the request's deadline.
const settleAfterDeadline = 500 * time.Millisecond

type effectKey struct{}

// effectID is the identifier for what the request makes, the same each time that it is repeated; the zero id without an
// Idempotency-Key.
func effectID(ctx context.Context) uuid.UUID {
	id, _ := ctx.Value(effectKey{}).(uuid.UUID)
	return id
}

// idempotency gives a POST that bears an Idempotency-Key its first answer again (interface 1). An answer of 5xx is not kept:
// whether it had an effect is unknown, so the request goes on under the same effectID.
func (s *Server) idempotency(next echo.HandlerFunc) echo.HandlerFunc {
	answering := s.answering(next)
	return func(c echo.Context) error {
		r, op := c.Request(), s.operations.of(c)
		key := r.Header.Get("Idempotency-Key")
		if op == nil || r.Method != http.MethodPost || key == "" {
			return next(c)
		}
		request, err := fingerprint(c)
		if err != nil {
			return err
		}
		org := CallerFrom(r.Context()).Org
		known, err := org.BeginKey(r.Context(), op.id, key, request)
		if err != nil {
			return err
		}
		switch known.State {
		case store.KeyDone:
			return replay(c, known.Answer)
		case store.KeyRunning:
			return problem(CodeIdempotencyKeyInUse, "The first request with the Idempotency-Key %s is still running. "+
				"Send it again in a moment to get its answer.", quote(key))
		case store.KeyMismatch:
			return problem(CodeIdempotencyKeyReused, "The Idempotency-Key %s was sent within the last 24 hours with another body. "+
				"Use a new key for a new request.", quote(key))
		case store.KeyStoreFull:
			e := problem(CodeIdempotencyStoreFull, "The Idempotency-Keys and answers that your organisation sent and got within the last 24 hours take the %d MiB that "+
				"are kept for it. Try again in %d seconds, or send the request without an Idempotency-Key.", store.IdempotencyLimit>>20, wholeSeconds(known.RoomIn))
			e.RetryAfter = known.RoomIn
			return e
		case store.KeyFresh:
		}
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), effectKey{}, known.EffectID)))
		kept := store.KeptAnswer{Status: http.StatusInternalServerError} // until there is another, and after a panic
		defer func() { s.settleKey(c, org, op.id, key, kept) }()
		answer, err := hold(c, answering)
		if err != nil {
			return err
		}
		kept = store.KeptAnswer{Status: answer.status, ContentType: answer.header.Get(echo.HeaderContentType), Body: answer.body.Bytes()}
		return answer.send(c)
	}
}

// answering writes what a handler fails with, so that a problem is an answer like any other.
func (s *Server) answering(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			s.writeError(err, c)
		}
		return nil
	}
}

// settleKey keeps the answer for the key, or lets the key go when there is none worth keeping.
func (s *Server) settleKey(c echo.Context, org *store.Org, operation, key string, a store.KeptAnswer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), settleWithin)
	defer cancel()
	if deadline, ok := c.Request().Context().Deadline(); ok { // the caller gets the answer only after it is kept
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, deadline.Add(settleAfterDeadline))
		defer stop()
	}
	var err error
	if a.Status >= http.StatusInternalServerError {
		err = org.ReleaseKey(ctx, operation, key)
	} else {
		err = org.FinishKey(ctx, operation, key, a)
	}
	if err != nil { // the key runs out as that of a dead request does
		s.logger.ErrorContext(ctx, "idempotency key not settled", "request_id", requestID(c), "error", err)
	}
}

// fingerprint returns a hash of a request's path and decoded body. Blanks and the order of members in the body do not change the hash.
func fingerprint(c echo.Context) ([]byte, error) {
	sum := sha256.New()
	_, _ = io.WriteString(sum, c.Request().URL.EscapedPath()+"\n")
	if body := c.Get(bodyValue); body != nil {
		if err := json.NewEncoder(sum).Encode(body); err != nil {
			return nil, err
		}
	}
	return sum.Sum(nil), nil
}

func replay(c echo.Context, a store.KeptAnswer) error {
	c.Response().Header().Set("Idempotent-Replayed", "true")
	if len(a.Body) == 0 {
		return c.NoContent(a.Status)
	}
	return c.Blob(a.Status, a.ContentType, a.Body)
}
