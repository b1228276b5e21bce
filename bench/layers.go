package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// layerCases returns the cases that compare small requests with the least work that could give the same response: net/http alone, or one SQL
// query.
func layerCases(b *bench) []benchCase {
	o := b.pg.large
	var bare string // address of the server that uses only net/http
	return []benchCase{
		{group: "Layers", name: "GET /authenticate, compared with net/http alone", goal: 1.4, onlyHTTP: true,
			measured: repeatedStep(200, b.newGetStep(o, sameInEachRound("/authenticate"))),
			limit: repeatedStep(200, timedStep(func(ctx context.Context, _ int) error {
				return b.getWithoutToken(ctx, bare, io.Discard)
			})),
			prepare: []func(context.Context) error{func(ctx context.Context) (err error) {
				bare, err = b.startBareServer(ctx, "/authenticate")
				return err
			}}},
		{group: "Layers", name: "GET /videos/{ad_id}, compared with a prepared SQL query", goal: 2.5, withoutHTTP: true, measured: repeatedStep(50, b.newGetStep(o, oneVideoPath(o))),
			limit: repeatedStep(50, b.newSelectStep(1, "SELECT "+videoColumns+" FROM videos WHERE organisation_id = $1 AND id = $2", func(round int) []any {
				return []any{o.id, o.old[round%len(o.old)]}
			}))},
	}
}

// oneVideoPath returns a function. In each round of the benchmark, the function returns the path of a request for a different video of the
// organisation.
func oneVideoPath(o *organisation) func(round int) string {
	return func(round int) string { return "/videos/" + o.old[round%len(o.old)] }
}

// startBareServer starts the program bench/peers/bare and returns the program's address. The program
// answers every request with ReelTally's response for the given path.
func (b *bench) startBareServer(ctx context.Context, path string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, b.pg.address+path, http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set("Authorization", "Bearer "+b.pg.large.token)
	answer, err := b.client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	input, err := json.Marshal(map[string]any{"Header": answer.Header, "Body": body})
	if err != nil {
		return "", err
	}
	c := b.pg.newCommand(ctx, "bare")
	c.Stdin = bytes.NewReader(input)
	address, err := b.startPeer(c)
	if err != nil {
		return "", err
	}
	var got bytes.Buffer
	if err := b.getWithoutToken(ctx, address, &got); err != nil {
		return "", err
	}
	if !bytes.Equal(got.Bytes(), body) {
		return "", fmt.Errorf("the program bench/peers/bare answers with %d bytes instead of %d", got.Len(), len(body))
	}
	return address, nil
}
