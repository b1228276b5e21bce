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

// finishKeyTimeout is the time limit for storing the response of an Idempotency-Key. The write continues if the caller closes the connection.
const finishKeyTimeout = 5 * time.Second

// finishKeyGrace is the maximum time for which storing the response can continue after the deadline of the request.
const finishKeyGrace = 500 * time.Millisecond

type effectKey struct{}

// effectID returns the id for the item that the request creates. All repetitions of a request with an Idempotency-Key use the same id, so the
// item is created only once. If the request has no key, effectID returns the zero id.
func effectID(ctx context.Context) uuid.UUID {
	id, _ := ctx.Value(effectKey{}).(uuid.UUID)
	return id
}

// idempotency is the middleware for the header Idempotency-Key (interface.md 1). It stores the response to the first POST with a key and sends it
// again for every repetition. It does not store a response with 5xx, because the request may have had an effect or not. A repetition then runs
// the operation again with the same effectID.
func (s *Server) idempotency(next echo.HandlerFunc) echo.HandlerFunc {
	next = s.handleErrors(next)
	return func(c echo.Context) error {
		r, op := c.Request(), s.contract.match(c)
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
		result := store.KeptAnswer{Status: http.StatusInternalServerError} // a panic leaves this status, so that the key is released
		defer func() { s.finishKey(c, org, op.id, key, result) }()
		response, err := bufferResponse(c, next)
		if err != nil {
			return err
		}
		result = store.KeptAnswer{Status: response.status, ContentType: response.header.Get(echo.HeaderContentType), Body: response.body.Bytes()}
		return response.send(c)
	}
}

// handleErrors answers the error of next with a problem, so that idempotency stores the problem like any other response.
func (s *Server) handleErrors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := next(c); err != nil {
			s.writeError(err, c)
		}
		return nil
	}
}

// finishKey stores the response of an Idempotency-Key. If the status is 5xx, it releases the key instead, so that the request can be repeated.
func (s *Server) finishKey(c echo.Context, org *store.Org, operation, key string, a store.KeptAnswer) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), finishKeyTimeout)
	defer cancel()
	if deadline, ok := c.Request().Context().Deadline(); ok { // the caller waits for this write, because the response is sent after it is stored
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
	if err != nil { // the key then stays in use until it expires
		s.logger.ErrorContext(ctx, "cannot store the response of an Idempotency-Key", "request_id", requestID(c), "error", err)
	}
}

// fingerprint returns a hash of a request's path and body, by which a repetition is recognised. White space and the order of members in the body
// do not change the hash.
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

// replay sends the stored response of an Idempotency-Key.
func replay(c echo.Context, a store.KeptAnswer) error {
	c.Response().Header().Set("Idempotent-Replayed", "true")
	if len(a.Body) == 0 {
		return c.NoContent(a.Status)
	}
	return c.Blob(a.Status, a.ContentType, a.Body)
}
