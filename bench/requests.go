package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// sendAs sends a request with the token of an organisation to the server of an instance. It treats the response as send does.
func (b *bench) sendAs(ctx context.Context, i *instance, o *organisation, method, path string, body []byte, output io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, method, i.address+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+o.token)
	if len(body) > 0 {
		r.Header.Set("Content-Type", "application/json")
	}
	return b.send(r, output)
}

// errUnavailable is the error of a request that the server answered with status 503. The server does so if no connection to its database
// became free in time.
var errUnavailable = errors.New("503 Service Unavailable")

// send sends a request. It writes the body of a response with status 200 to output. For status 503,
// it returns errUnavailable.
func (b *bench) send(r *http.Request, output io.Writer) error {
	r.Header.Set("Accept-Encoding", "identity")
	answer, err := b.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	switch answer.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		return errUnavailable
	default:
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return fmt.Errorf("%s %s: %s: %s", r.Method, r.URL, answer.Status, text)
	}
	_, err = io.Copy(output, answer.Body)
	return err
}

// getWithoutToken sends a GET request without a token, and writes the body of the response to output. It returns an error if the status is not 200.
func (b *bench) getWithoutToken(ctx context.Context, url string, output io.Writer) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	return b.send(r, output)
}

// newGetStep returns a step that sends a GET request to the server on PostgreSQL, and reads the
// response. The path can differ in each round.
func (b *bench) newGetStep(o *organisation, path func(round int) string) step {
	return timedStep(func(ctx context.Context, round int) error {
		return b.sendAs(ctx, b.pg, o, http.MethodGet, path(round), nil, io.Discard)
	})
}

// The assignments with which newFirstGetStep raises versions of an organisation's data. A collector that stores numbers raises the first version, a
// caller who stops a video raises both.
const (
	newNumbers   = "version = version + 1"
	stoppedVideo = "version = version + 1, labels_version = labels_version + 1"
)

// newFirstGetStep returns a step that sends a GET request after a change of the data, which is newNumbers or stoppedVideo. So the server cannot use
// what it has in memory from the time before the change.
func (b *bench) newFirstGetStep(o *organisation, change, path string) step {
	get := b.newGetStep(o, sameInEachRound(path))
	return func(ctx context.Context, round int) (took time.Duration, err error) {
		if _, err := b.db.Exec(ctx, "UPDATE organisation_totals SET "+change+" WHERE organisation_id = $1", o.id); err != nil {
			return 0, err
		}
		// Only the first GET request is measured. After the second one, the server has the labels in memory again, which other cases need.
		if took, err = get(ctx, round); err != nil {
			return 0, err
		}
		_, err = get(ctx, round)
		return took, err
	}
}

// getJSON sends a GET request for an organisation, and decodes the JSON of the response into the value to which result points.
func (b *bench) getJSON(ctx context.Context, i *instance, o *organisation, path string, result any) error {
	var body bytes.Buffer
	if err := b.sendAs(ctx, i, o, http.MethodGet, path, nil, &body); err != nil {
		return err
	}
	return json.Unmarshal(body.Bytes(), result)
}

// sameInEachRound returns a function that returns the text for every round of the benchmark. The text is a path or an SQL query.
func sameInEachRound(text string) func(int) string { return func(int) string { return text } }
