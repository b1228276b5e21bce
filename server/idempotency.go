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

// finishKeyTimeout is the time limit for storing the result of a key. The write continues if the caller hangs up.
const finishKeyTimeout = 5 * time.Second

// finishKeyGrace is how long the write may continue after the deadline of the request.
const finishKeyGrace = 500 * time.Millisecond

type effectKey struct{}

// effectID returns the id for the item that the request creates. Repetitions of a request with an Idempotency-Key have the same id.
// Without a key, effectID returns the zero id.
func effectID(ctx context.Context) uuid.UUID {
	id, _ := ctx.Value(effectKey{}).(uuid.UUID)
	return id
}

// idempotency answers a repeated POST with the same Idempotency-Key by the response to the first one (interface.md 1). A response with 5xx
// is not stored, because it is unknown whether it had an effect. The repeated request then runs again with the same effectID.
func (s *Server) idempotency(next echo.HandlerFunc) echo.HandlerFunc {
	next = s.handleErrors(next)
	return func(c echo.Context) error {
		r, op := c.Request(), s.operations.match(c)
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
				"Send the request again in a moment to get its response.", quote(key))
		case store.KeyMismatch:
			return problem(CodeIdempotencyKeyReused, "The Idempotency-Key %s was sent within the last 24 hours with another body. "+
				"Use a new key for a new request.", quote(key))
		case store.KeyStoreFull:
			e := problem(CodeIdempotencyStoreFull, "The Idempotency-Keys and responses of your organisation within the last 24 hours use all of the %d MiB "+
				"reserved for them. Try again in %d seconds, or send the request without an Idempotency-Key.", store.IdempotencyLimit>>20, wholeSeconds(known.RoomIn))
			e.RetryAfter = known.RoomIn
			return e
		case store.KeyFresh:
		}
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), effectKey{}, known.EffectID)))
		result := store.KeptAnswer{Status: http.StatusInternalServerError} // stays so after a panic
		defer func() { s.finishKey(c, org, op.id, key, result) }()
		response, err := bufferResponse(c, next)
		if err != nil {
			return err
		}
		result = store.KeptAnswer{Status: response.status, ContentType: response.header.Get(echo.HeaderContentType), Body: response.body.Bytes()}
		return response.send(c)
	}
}

// handleErrors writes the error of a handler as a problem, so that the problem is stored like any other response.
func (s *Server) handleErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			s.writeError(err, c)
		}
		return nil
	}
}

// finishKey stores the response of the key. If the status is 5xx, it releases the key instead.
func (s *Server) finishKey(c echo.Context, org *store.Org, operation, key string, a store.KeptAnswer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), finishKeyTimeout)
	defer cancel()
	if deadline, ok := c.Request().Context().Deadline(); ok { // the response is sent only after it is stored
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, deadline.Add(finishKeyGrace))
		defer stop()
	}
	var err error
	if a.Status >= http.StatusInternalServerError {
		err = org.ReleaseKey(ctx, operation, key)
	} else {
		err = org.FinishKey(ctx, operation, key, a)
	}
	if err != nil { // the key then expires, like the key of a crashed server
		s.logger.ErrorContext(ctx, "cannot store the result of an idempotency key", "request_id", requestID(c), "error", err)
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

// replay sends a stored response.
func replay(c echo.Context, a store.KeptAnswer) error {
	c.Response().Header().Set("Idempotent-Replayed", "true")
	if len(a.Body) == 0 {
		return c.NoContent(a.Status)
	}
	return c.Blob(a.Status, a.ContentType, a.Body)
}
