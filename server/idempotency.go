package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

const idempotencyKeyHeader = "Idempotency-Key"

// storeResponseTimeout is the time limit for storing the response to a request with an Idempotency-Key. If the caller closes the connection,
// the server still stores the response.
const storeResponseTimeout = 5 * time.Second

// storeResponseGrace is how long the server can still store the response for an Idempotency-Key after the deadline of the request. For a request
// without a deadline, only storeResponseTimeout applies.
const storeResponseGrace = 500 * time.Millisecond

// keyRenewal is the interval at which the server renews the lease of an Idempotency-Key during a request. Two renewals can fail before the
// lease ends.
const keyRenewal = store.KeyLease / 3

// recordIDFrom returns the id for the record that a request creates. Each repetition with the same
// Idempotency-Key gets the same id. Without a key, the id is zero.
func recordIDFrom(ctx context.Context) uuid.UUID { return stateFrom(ctx).recordID }

// idempotency is the middleware for the header Idempotency-Key. It stores the response to the first
// request with a key and sends this response to every repetition. Responses with status 5xx are not
// stored. Operations without this header in openapi.yaml ignore it.
func (s *Server) idempotency(c echo.Context, op *operation, next echo.HandlerFunc) error {
	r := c.Request()
	key := r.Header.Get(idempotencyKeyHeader)
	if key == "" || !slices.Contains(op.headers, idempotencyKeyHeader) {
		return next(c)
	}
	state := stateFrom(r.Context())
	request, err := requestHash(state)
	if err != nil {
		return err
	}
	org := state.Org
	known, err := org.ReserveKey(r.Context(), op.id, key, request)
	if err != nil {
		return err
	}
	switch known.State {
	case store.KeyDone:
		return sendStoredResponse(c, known.Response)
	case store.KeyRunning:
		e := problem(CodeIdempotencyKeyInUse, "The first request with the Idempotency-Key %s is still running, or it was interrupted. "+
			"Send the request again in %s.", words.Quote(key), inSeconds(known.RetryAfter))
		e.RetryAfter = known.RetryAfter
		return e
	case store.KeyMismatch:
		return problem(CodeIdempotencyKeyReused, "The Idempotency-Key %s was sent within the last 24 hours with another body or path. "+
			"Use a new key for a new request.", words.Quote(key))
	case store.KeyStoreFull:
		e := problem(CodeIdempotencyStoreFull, "The Idempotency-Keys and responses of your organisation within the last 24 hours use all of the %d MiB reserved for them. "+
			"Try again in %s, or send the request without an Idempotency-Key.", store.IdempotencyLimit>>20, inSeconds(known.RetryAfter))
		e.RetryAfter = known.RetryAfter
		return e
	case store.KeyFresh:
	}
	// A repetition after a failure gets the same record id, because the failed request may have changed data.
	state.recordID = known.EffectID
	result := store.KeptResponse{Status: http.StatusInternalServerError} // the status stays 500 if the operation panics; then storeResponseForKey releases the key
	stopRenewing := s.renewKey(c, org, op.id, key)
	defer func() {
		stopRenewing()
		s.storeResponseForKey(c, org, op.id, key, result)
	}()
	response := s.bufferResponse(c, next)
	body, err := removeSecret(op, response.body.Bytes())
	if err != nil {
		return err
	}
	result = store.KeptResponse{Status: response.status, ContentType: response.header.Get(echo.HeaderContentType), Body: body}
	return response.send(c)
}

// removeSecret returns the response body to store for repetitions. The secret in the member op.secretMember is replaced by null. A body
// without this member is returned unchanged.
func removeSecret(op *operation, body []byte) ([]byte, error) {
	if op.secretMember == "" {
		return body, nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(body, &members); err != nil {
		return nil, err
	}
	if _, ok := members[op.secretMember]; !ok { // error responses contain no secret, so they are stored unchanged
		return body, nil
	}
	members[op.secretMember] = json.RawMessage("null")
	return json.Marshal(members)
}

// renewKey renews the lease of an Idempotency-Key until the returned function is called. Without
// renewals, a repetition of a long request could run before the first request ends.
func (s *Server) renewKey(c echo.Context, org *store.Org, operation, key string) (stop func()) {
	ctx, cancel := context.WithCancel(c.Request().Context())
	var renewals sync.WaitGroup
	renewals.Go(func() {
		tick := time.NewTicker(keyRenewal)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := org.RenewKey(ctx, operation, key); err != nil && ctx.Err() == nil {
				s.logger.WarnContext(ctx, "cannot renew the lease of an Idempotency-Key", "request_id", requestID(c), "error", err)
			}
		}
	})
	return func() {
		cancel()
		renewals.Wait() // without Wait, a late renewal could reserve the key again after storeResponseForKey has released it
	}
}

// storeResponseForKey stores the response to a request with an Idempotency-Key. If the status is
// 500 or more, it releases the key instead, so that a repetition runs the operation again.
func (s *Server) storeResponseForKey(c echo.Context, org *store.Org, operation, key string, a store.KeptResponse) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request().Context()), storeResponseTimeout)
	defer cancel()
	if deadline, ok := c.Request().Context().Deadline(); ok { // the caller waits, so this function must return soon after the deadline of the request
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, deadline.Add(storeResponseGrace))
		defer stop()
	}
	var err error
	if a.Status >= http.StatusInternalServerError {
		err = org.ReleaseKey(ctx, operation, key)
	} else {
		err = org.FinishKey(ctx, operation, key, a)
	}
	if err != nil { // the error is only logged; until the lease of the key ends, repetitions are refused with status 409
		s.logger.ErrorContext(ctx, "cannot store the response for an Idempotency-Key, or release the key", "request_id", requestID(c), "error", err)
	}
}

// requestHash returns a hash of a request's path and body. White space and the order of members in
// the body do not change the hash.
func requestHash(state *requestState) ([]byte, error) {
	sum := sha256.New()
	_, _ = io.WriteString(sum, state.echo.Request().URL.EscapedPath()+"\n")
	if state.decodedBody != nil {
		if err := json.NewEncoder(sum).Encode(state.decodedBody); err != nil {
			return nil, err
		}
	}
	return sum.Sum(nil), nil
}

// sendStoredResponse answers a repeated request with the response that was stored for the first request with the same Idempotency-Key.
func sendStoredResponse(c echo.Context, a store.KeptResponse) error {
	c.Response().Header().Set("Idempotent-Replayed", "true")
	if len(a.Body) == 0 {
		return c.NoContent(a.Status)
	}
	return c.Blob(a.Status, a.ContentType, a.Body)
}
