package server_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

// startRestartingServer starts an HTTP server that imitates a restart: the first six requests fail,
// and all later requests succeed. The result `requests` counts all requests.
func startRestartingServer(t *testing.T) (address string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	restarting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		status, contentType, body := http.StatusCreated, "application/json", `{"success": true, "id": "01938c33-1c9e-7b54-a0d2-7f6e5d4c3b2a"}`
		switch n := requests.Add(1); {
		case n <= 4:
			status, contentType, body = http.StatusServiceUnavailable, "text/plain", "the proxy cannot reach the server"
		case n <= 6:
			status, contentType, body = http.StatusConflict, "application/problem+json", `{"code": "`+string(server.CodeIdempotencyKeyInUse)+`"}`
		}
		if status != http.StatusCreated {
			w.Header().Set("Retry-After", "1")
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(restarting.Close)
	return restarting.URL, requests
}

// unreachableAddress returns the URL of a port on which no server listens.
func unreachableAddress(t *testing.T) string {
	t.Helper()
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, closed.Close())
	return "http://" + closed.Addr().String()
}

// networkOutput is the JSON that the programs network.mjs and network.py in testdata/sdk print.
type networkOutput struct {
	Created, Refused, Cause bool
	Status                  *int
	Code, Message           string
	Address                 string // the error of the library for an address without a scheme
}

func (s sdk) runNetworkProgram(t *testing.T, address string) (got networkOutput) {
	t.Helper()
	// Address and token end with a line break, as values that were read from a file.
	require.NoError(t, json.Unmarshal([]byte(s.runProgram(t, address+"\n", "rt_x\n", "testdata/sdk/network"+s.extension)), &got))
	return got
}

func TestSDKs_retryUntilTheIdempotencyKeyIsFree(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			address, requests := startRestartingServer(t)
			require.True(t, s.runNetworkProgram(t, address).Created)
			require.EqualValues(t, 7, requests.Load())
		})
	}
}

func TestGoSDK_retriesUntilTheIdempotencyKeyIsFree(t *testing.T) {
	t.Parallel()
	address, requests := startRestartingServer(t)
	sdk, err := client.New(address, "rt_x")
	require.NoError(t, err)
	_, err = sdk.CreateCollection(t.Context(), client.CreateCollectionOptions{Name: "Launch"})
	require.NoError(t, err)
	require.EqualValues(t, 7, requests.Load())
}

func TestGoSDK_refusesAnAddressWithoutASchemeAndAcceptsATokenWithALineBreak(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"127.0.0.1:8080", "localhost:8080", "ftp://localhost", "reeltally.example.com", "https://"} {
		_, err := client.New(address, "rt_x")
		require.EqualError(t, err, fmt.Sprintf("the address of the server is %q: it must begin with https:// or http://, such as https://reeltally.example.com", address))
	}
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	sdk, err := client.New(strings.Replace(a.http.URL, "http://", "HTTP://", 1)+"\n", c.token+"\n")
	require.NoError(t, err)
	_, err = sdk.GetVideoStatistics(t.Context())
	require.NoError(t, err)
}

func TestSDKs_reportAnUnreachableServerAnEmptyTokenAndAnInvalidAddress(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			got := s.runNetworkProgram(t, unreachableAddress(t))
			require.True(t, got.Refused, "an empty token must be refused although REELTALLY_TOKEN is set")
			require.Regexp(t, `^(TypeError: baseUrl|ValueError: base_url) is ['"]localhost:8080['"]: it must begin with https:// or http://, such as https://reeltally.example.com$`, got.Address)
			require.NotNil(t, got.Status)
			require.Zero(t, *got.Status)
			require.Empty(t, got.Code)
			require.True(t, got.Cause)
			require.Contains(t, got.Message, "the server sent no complete response: ")
			require.Contains(t, strings.ToLower(got.Message), "refused")
		})
	}
}

// timeoutSeconds is the timeout that the programs timeout.mjs and timeout.py in testdata/sdk get.
const timeoutSeconds = 2

func TestSDKs_timeoutIsTheTimeWithoutAnyData(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for path, want := range map[string]string{"/slow": "12345\n", "/hanging": "the server sent no complete response: "} {
				var requests atomic.Int64
				slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					requests.Add(1)
					w.Header().Set("Content-Type", "application/json")
					parts := []string{`{"organisation": "`, "1", "2", "3", "4", `5"}`}
					for _, part := range parts {
						_, _ = w.Write([]byte(part))
						_ = http.NewResponseController(w).Flush()
						if strings.HasPrefix(r.URL.Path, "/hanging") {
							<-r.Context().Done()
							return
						}
						<-time.After(timeoutSeconds * time.Second * 2 / time.Duration(len(parts)))
					}
				}))
				t.Cleanup(slow.Close)
				out := s.runProgram(t, slow.URL+path, "rt_x", "testdata/sdk/timeout"+s.extension, strconv.Itoa(timeoutSeconds))
				require.Contains(t, out, want)
				require.Equal(t, 1, strings.Count(out, "\n"), out)
				require.LessOrEqual(t, strings.Count(out, "complete response"), 1, out)
				require.EqualValues(t, 1, requests.Load())
			}
		})
	}
}

func TestGoSDK_reportsAnUnreachableServer(t *testing.T) {
	t.Parallel()
	sdk, err := client.New(unreachableAddress(t), "rt_x")
	require.NoError(t, err)
	_, err = sdk.CreateCollection(t.Context(), client.CreateCollectionOptions{Name: "Launch"})
	var failed *url.Error
	require.ErrorAs(t, err, &failed)
}

func TestGoSDK_newReturnsNoClientIfAnOptionFails(t *testing.T) {
	t.Parallel()
	failed := errors.New("the option failed")
	c, err := client.New("https://reeltally.example.test", "rt_token", func(*client.Client) error { return failed })
	require.ErrorIs(t, err, failed)
	require.Nil(t, c)
}

const loginPage = "<!DOCTYPE html><title>Sign in</title>\n"

// startLoginProxy starts a server that imitates a proxy with a login page: it answers each request with status 200 and HTML. Below the path /broken,
// it answers with JSON that is cut off. Below the path /empty, it answers with status 204 and no content.
func startLoginProxy(t *testing.T) (address string, requests *atomic.Int64) {
	t.Helper()
	requests = &atomic.Int64{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		switch {
		case strings.HasPrefix(r.URL.Path, "/broken/"):
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"data": [`)
		case strings.HasPrefix(r.URL.Path, "/empty/"):
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, loginPage+strings.Repeat("x", 1_000))
		}
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL, requests
}

// unexpectedOutput describes an error. The programs unexpected.mjs and unexpected.py in testdata/sdk print it as JSON.
type unexpectedOutput struct {
	Status                           int
	Code, ContentType, Body, Message string
}

// requireUnexpectedAnswers checks the errors of five calls through the proxy of startLoginProxy. path is the path of the API on the proxy: "", "/broken" or
// "/empty". The last call was a download.
func requireUnexpectedAnswers(t *testing.T, path string, got []unexpectedOutput) {
	t.Helper()
	require.Len(t, got, 5)
	for i, failed := range got {
		require.Empty(t, failed.Code)
		isDownload := i == len(got)-1
		switch {
		case path == "/empty" && (i < 2 || isDownload): // these calls send GET requests, so status 204 is an error
			require.Equal(t, http.StatusNoContent, failed.Status)
			require.Contains(t, failed.Message, "unexpected Content-Type")
		case path == "/broken" && i < 3:
			require.Equal(t, http.StatusOK, failed.Status)
			require.Contains(t, failed.Body, `{"data": [`)
			require.Contains(t, failed.Message, "JSON that cannot be read")
		case path == "":
			require.Equal(t, http.StatusOK, failed.Status)
			require.Equal(t, "text/html; charset=utf-8", failed.ContentType)
			require.Equal(t, (loginPage + strings.Repeat("x", 1_000))[:200], failed.Body)
			require.Contains(t, failed.Message, `text/html`)
			require.Contains(t, failed.Message, "is a proxy or a login page in between?")
		}
	}
}

func TestSDKs_reportSuccessfulAnswersThatAreNotFromTheServer(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, path := range []string{"", "/broken", "/empty"} {
				address, requests := startLoginProxy(t)
				var got []unexpectedOutput
				require.NoError(t, json.Unmarshal([]byte(s.runProgram(t, address+path, "rt_x", "testdata/sdk/unexpected"+s.extension)), &got))
				requireUnexpectedAnswers(t, path, got)
				require.EqualValues(t, 5, requests.Load(), "such a response must not be repeated")
			}
		})
	}
}

// collectUnexpected calls the same five operations as the programs unexpected.mjs and unexpected.py, and returns the error of each call.
func collectUnexpected(t *testing.T, sdk *client.ReelTally) (got []unexpectedOutput) {
	t.Helper()
	collect := func(err error) {
		var failed *client.Error
		if err == nil {
			got = append(got, unexpectedOutput{})
		} else {
			require.ErrorAs(t, err, &failed)
			got = append(got, unexpectedOutput{failed.StatusCode, failed.Code, failed.ContentType, failed.Body, failed.Error()})
		}
	}
	_, err := sdk.ListEvents(t.Context(), client.ListEventsOptions{})
	collect(err)
	for _, err := range sdk.AllVideos(t.Context(), client.ListVideosOptions{}) {
		collect(err)
	}
	_, err = sdk.TrackVideos(t.Context(), client.TrackVideosOptions{Links: []string{videoURL(1)}})
	collect(err)
	collect(sdk.DeleteWebhook(t.Context(), uuid.New()))
	var file bytes.Buffer
	_, err = sdk.Download(t.Context(), &file, "/videos", nil, client.CSV)
	collect(err)
	require.Empty(t, file.Bytes(), "the page of a proxy must not be written to the file")
	return got
}

func TestGoSDK_reportsSuccessfulAnswersThatAreNotFromTheServer(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "/broken", "/empty"} {
		address, requests := startLoginProxy(t)
		sdk, err := client.New(address+path, "rt_x")
		require.NoError(t, err)
		requireUnexpectedAnswers(t, path, collectUnexpected(t, sdk))
		require.EqualValues(t, 5, requests.Load(), "such a response must not be repeated")
	}
}

// requireWaitsUntilDate calls `authenticate` with the address of a server that refuses the first request with a date in Retry-After. It requires that
// the second request comes after this date, even if the clocks of the server and of this machine differ by an hour.
func requireWaitsUntilDate(t *testing.T, authenticate func(address string)) {
	t.Helper()
	for _, difference := range []time.Duration{0, -time.Hour, time.Hour} {
		var received []time.Time
		limiting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			received = append(received, time.Now())
			now := time.Now().UTC().Add(difference)
			w.Header().Set("Date", now.Format(http.TimeFormat))
			if len(received) == 1 {
				w.Header().Set("Retry-After", now.Add(2*time.Second).Format(http.TimeFormat))
				w.WriteHeader(http.StatusTooManyRequests)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
		}))
		authenticate(limiting.URL)
		limiting.Close()
		require.Len(t, received, 2)
		require.Greater(t, received[1].Sub(received[0]), 900*time.Millisecond, "the client must wait until the date in Retry-After") // dates have whole seconds
	}
}

func TestSDKs_waitUntilTheDateInRetryAfter(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	for _, s := range sdks {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			requireWaitsUntilDate(t, func(address string) {
				require.Equal(t, "accepted\n", s.runProgram(t, address, "rt_x", "testdata/sdk/authenticate"+s.extension))
			})
		})
	}
}

func TestGoSDK_waitsUntilTheDateInRetryAfter(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	requireWaitsUntilDate(t, func(address string) {
		sdk, err := client.New(address, "rt_x")
		require.NoError(t, err)
		_, err = sdk.Authenticate(t.Context())
		require.NoError(t, err)
	})
}

func TestSDKs_acceptAnAnswer202WithoutContent(t *testing.T) {
	t.Parallel()
	storetest.SkipIfShort(t)
	accepting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	t.Cleanup(accepting.Close)
	sdk, err := client.New(accepting.URL, "rt_x")
	require.NoError(t, err)
	_, err = sdk.RefreshVideo(t.Context(), client.RefreshVideoOptions{Link: uuid.NewString()})
	require.NoError(t, err)
	for _, s := range sdks {
		require.Equal(t, "refreshed\n", s.runProgram(t, accepting.URL, "rt_x", "testdata/sdk/refresh"+s.extension), s.name)
	}
}
