package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
)

// slowTransport imitates a server that sends the parts of its response, with the same pause before each part. If hangs is
// true, the response does not end after the last part. For the first `silent` requests, the server sends nothing at all.
type slowTransport struct {
	silent int
	status int
	parts  []string
	pause  time.Duration
	hangs  bool

	requests int // number of requests so far
}

func (s *slowTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.requests++
	if s.requests <= s.silent {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: s.status, Request: r, Body: &slowBody{slowTransport: s, request: r, parts: s.parts},
		Header: http.Header{"Content-Type": {r.Header.Get("Accept")}}}, nil
}

// slowBody is the body of a response of slowTransport.
type slowBody struct {
	*slowTransport
	request *http.Request
	parts   []string // the parts that are not sent yet
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.parts) == 0 && !b.hangs {
		return 0, io.EOF
	}
	var next <-chan time.Time
	if len(b.parts) > 0 {
		next = time.After(b.pause)
	}
	select {
	case <-b.request.Context().Done():
		return 0, b.request.Context().Err()
	case <-next:
		n := copy(p, b.parts[0])
		b.parts = b.parts[1:]
		return n, nil
	}
}

func (*slowBody) Close() error { return nil }

// authenticateParts are the parts of a response to GET /authenticate.
var authenticateParts = []string{`{"organisation": {`, `"name": `, `"North`, `wind"`, `}`, `}`}

// accept is a client option that sets the header Accept, because slowTransport answers with this type.
var accept = client.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
	r.Header.Set("Accept", "application/json")
	return nil
})

func TestGoSDK_timeoutIsTheTimeWithoutAnyData(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		transport     slowTransport
		own           http.Client // the client of the caller, without its Transport
		options       []client.ClientOption
		requests      int
		least, most   time.Duration // least and greatest duration of the call
		failsWithText string        // a part of the error; "" if the call succeeds
	}{
		"repeats an attempt without a response": {transport: slowTransport{silent: 1}, requests: 2, least: 60 * time.Second, most: 61 * time.Second},
		"fails if no attempt gets a response": {transport: slowTransport{silent: 9}, requests: 5, least: 5 * 60 * time.Second, most: 5*60*time.Second + 20*time.Second,
			failsWithText: "the server sent nothing for 1m0s"},
		"allows a slow response":              {transport: slowTransport{pause: 50 * time.Second}, requests: 1, least: 300 * time.Second, most: 300 * time.Second},
		"repeats a response that stops":       {transport: slowTransport{hangs: true}, requests: 5, least: 5 * 60 * time.Second, most: 5*60*time.Second + 20*time.Second, failsWithText: "the server sent nothing for 1m0s"},
		"has an option":                       {transport: slowTransport{silent: 1}, options: []client.ClientOption{client.WithTimeout(5 * time.Second)}, requests: 2, least: 5 * time.Second, most: 6 * time.Second},
		"can be switched off":                 {transport: slowTransport{pause: time.Hour}, options: []client.ClientOption{client.WithTimeout(0)}, requests: 1, least: 6 * time.Hour, most: 6 * time.Hour},
		"keeps the timeout of an http.Client": {transport: slowTransport{silent: 1}, own: http.Client{Timeout: 7 * time.Second}, requests: 2, least: 7 * time.Second, most: 8 * time.Second},
	} {
		for _, ownFirst := range []bool{false, true} { // the order of the options makes no difference
			synctest.Test(t, func(t *testing.T) {
				transport, own := test.transport, test.own
				transport.status, transport.parts = http.StatusOK, authenticateParts
				own.Transport = &transport
				options := append([]client.ClientOption{accept}, test.options...)
				if ownFirst {
					options = append([]client.ClientOption{client.WithHTTPClient(&own)}, options...)
				} else {
					options = append(options, client.WithHTTPClient(&own))
				}
				sdk, err := client.New("https://reeltally.example.com", "rt_x", options...)
				require.NoError(t, err)
				begin := time.Now()
				who, err := sdk.Authenticate(t.Context())
				took := time.Since(begin)
				require.Equal(t, test.requests, transport.requests, name)
				require.GreaterOrEqual(t, took, test.least, name)
				require.LessOrEqual(t, took, test.most, name)
				if test.failsWithText == "" {
					require.NoError(t, err, name)
					require.Equal(t, "Northwind", who.Organisation.Name, name)
					return
				}
				require.ErrorContains(t, err, test.failsWithText, name)
				var failed *url.Error
				require.ErrorAs(t, err, &failed, name)
				require.True(t, failed.Timeout(), name)
			})
		}
	}
}

func TestGoSDK_downloadFailsIfTheServerStopsSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := &slowTransport{status: http.StatusOK, parts: []string{"ad_id\n", "1\n"}, pause: 59 * time.Second, hangs: true}
		sdk, err := client.New("https://reeltally.example.com", "rt_x", client.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(t, err)
		var file bytes.Buffer
		_, err = sdk.Download(t.Context(), &file, "/videos", nil, client.CSV)
		failed, ok := errors.AsType[net.Error](err)
		require.True(t, ok, err)
		require.True(t, failed.Timeout())
		require.Equal(t, "ad_id\n1\n", file.String())
		require.Equal(t, 1, transport.requests)
	})
}

func TestGoSDK_repeatsRequestsThatAnOwnHTTPClientSends(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transport := &slowTransport{status: http.StatusServiceUnavailable, parts: []string{strings.Repeat("x", 100)}}
		sdk, err := client.New("https://reeltally.example.com", "rt_x", client.WithHTTPClient(&http.Client{Transport: transport}))
		require.NoError(t, err)
		_, err = sdk.Authenticate(t.Context())
		var failed *client.Error
		require.ErrorAs(t, err, &failed)
		require.Equal(t, http.StatusServiceUnavailable, failed.StatusCode)
		require.Equal(t, 5, transport.requests)
	})
}
