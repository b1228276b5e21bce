package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/reeltally/reeltally/internal/tracing"
	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/store"
)

const (
	// webhookTimeout is the time limit of one attempt to send an event.
	webhookTimeout = 10 * time.Second
	// maxSendingWebhooks is the maximum number of webhooks to which one server sends events at the same time.
	maxSendingWebhooks = 64
	// webhookBatch is the maximum number of events that a server sends to a webhook during one claim. During
	// the claim, no other server sends events to this webhook.
	webhookBatch = 8
	// webhookLease is the maximum duration of a claim. Afterwards, another server can claim the webhook. The time must be longer than the attempts of
	// sendBatch, which can take two times webhookTimeout.
	webhookLease = 3 * webhookTimeout
	// webhookPoll is how often the server searches the database for webhooks that have events to send. If a search finds such a webhook, the next
	// search follows immediately. A search also follows immediately when a sender ends after a full batch without failed attempts, or when a sender
	// ends while maxSendingWebhooks senders were running.
	webhookPoll = time.Second
	// maxResponseBytes is the maximum number of bytes of a webhook's response that are stored.
	maxResponseBytes = 1024
	webhookAgent     = "ReelTally-Webhooks (+https://github.com/reeltally/reeltally)"
)

// WebhookOptions are the settings for sending events to webhooks. The zero value sends to public addresses over https.
type WebhookOptions struct {
	// Key encrypts the secrets of webhooks in the database. By default, the key is derived from Options.CursorKey.
	Key []byte
	// AllowPrivate allows http URLs, and hosts with private and loopback addresses.
	AllowPrivate bool
	// RootCAs are the trusted root certificates. nil means the root certificates of the system.
	RootCAs *x509.CertPool
	// Lookup and Dial are the fields of [outbound.Guard] with the same names. nil means the default of the field.
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, address string) (net.Conn, error)
}

// webhookSender sends events to webhooks. It is safe for concurrent use.
type webhookSender struct {
	WebhookOptions

	store     *store.Store
	tiers     tierTable
	now       func() time.Time
	logger    *slog.Logger
	traces    trace.TracerProvider // can be nil
	cipher    webhookCipher        // encrypts the secrets of webhooks
	transport *http.Transport      // connects only to IP addresses that allowedAddressKinds allows
}

// newWebhookSender returns a webhookSender with the settings of a server.
func newWebhookSender(o Options, tiers tierTable) (*webhookSender, error) {
	s := &webhookSender{WebhookOptions: o.Webhooks, store: o.Store, tiers: tiers, now: o.Now, logger: o.Logger, traces: o.Traces}
	if s.Key == nil {
		s.Key = o.CursorKey
	}
	var err error
	s.cipher, err = newWebhookCipher(s.Key)
	s.transport = outbound.NewTransport(&outbound.Guard{Reach: s.allowedAddressKinds, Lookup: s.Lookup, Dial: s.Dial})
	s.transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.RootCAs}
	return s, err
}

// allowedAddressKinds returns the kinds of IP addresses to which the server may connect for a webhook. address is the webhook's host and
// port, in the form HOST:PORT.
func (s *webhookSender) allowedAddressKinds(address string) outbound.Reach {
	if !s.AllowPrivate {
		return outbound.Public
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return outbound.NoAddress
	}
	if addr, err := netip.ParseAddr(host); err == nil && !outbound.IsPublic(addr) && !addr.IsLoopback() && !addr.IsPrivate() {
		return outbound.NoAddress // for example a link-local address, at which cloud metadata services return credentials
	}
	return outbound.Operated
}

// sendWebhooks sends the events of all organisations until ctx ends. It then waits for the running
// attempts. Several servers can run it on one database.
func (s *webhookSender) sendWebhooks(ctx context.Context) {
	defer s.transport.CloseIdleConnections()
	sending := newSendingWebhooks()
	defer sending.wait.Wait()
	tick := time.NewTicker(webhookPoll)
	defer tick.Stop()
	for ctx.Err() == nil {
		started, err := s.startSenders(ctx, sending)
		if err != nil && ctx.Err() == nil {
			s.logger.ErrorContext(ctx, "cannot claim webhooks", "error", err)
		}
		if started > 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-sending.more:
		case <-tick.C:
		}
	}
}

// sendingWebhooks is the group of running senders of a server. A sender is a goroutine that sends events to one webhook.
type sendingWebhooks struct {
	slots chan struct{} // semaphore: contains one element for each running sender
	more  chan struct{} // receives a value when a sender has ended and a search can find more to send
	wait  sync.WaitGroup
}

func newSendingWebhooks() *sendingWebhooks {
	return &sendingWebhooks{slots: make(chan struct{}, maxSendingWebhooks), more: make(chan struct{}, 1)}
}

// end marks a sender as ended. If its webhook has more events to send, or if all senders were running, it requests a search.
func (w *sendingWebhooks) end(hasMore bool) {
	wasFull := len(w.slots) == cap(w.slots)
	<-w.slots
	if hasMore || wasFull {
		select {
		case w.more <- struct{}{}:
		default: // a search is already requested
		}
	}
}

// startSenders claims webhooks that have events to send now. It starts a sender for each of these
// webhooks and returns the number of started senders.
func (s *webhookSender) startSenders(ctx context.Context, sending *sendingWebhooks) (int, error) {
	free := cap(sending.slots) - len(sending.slots)
	if free == 0 {
		return 0, nil
	}
	claims, err := s.store.ClaimWebhooks(ctx, free, webhookLease)
	for _, c := range claims {
		sending.slots <- struct{}{}
		sending.wait.Go(func() {
			hasMore := false
			defer func() { sending.end(hasMore) }()
			ctx, span := tracing.Root(ctx, s.traces, "send to webhook", trace.WithAttributes(attribute.String("reeltally.webhook_id", c.WebhookID.String())))
			var err error
			hasMore, err = s.sendBatch(ctx, c)
			tracing.End(span, err)
			if err != nil {
				s.logger.ErrorContext(ctx, "cannot send to a webhook", "webhook", c.WebhookID, "error", err)
			}
		})
	}
	return len(claims), err
}

// sendBatch sends up to webhookBatch events to a webhook that this server has claimed, and ends the
// claim. It returns true if it has sent a full batch and no attempt has failed: the webhook can then have more events to send.
func (s *webhookSender) sendBatch(ctx context.Context, c store.WebhookClaim) (hasMore bool, err error) {
	w, org, due, err := s.store.DueDeliveries(ctx, c, webhookBatch)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	view := MaskedView
	if rules, err := s.tiers.rulesOf(org.Tier); err == nil && !rules.masked {
		view = FullView
	}
	var attempts []store.Attempt
	if len(due) > 0 && w.Failures > 0 {
		// The previous attempt has failed. So try a single event first, and send the others only if it
		// succeeds.
		attempts = s.attemptDeliveries(ctx, &w, due[:1], view)
		if due = due[1:]; len(attempts) == 0 || attempts[0].Error != "" {
			due = nil
		}
	}
	attempts = append(attempts, s.attemptDeliveries(ctx, &w, due, view)...)
	hasMore = len(attempts) == webhookBatch && !slices.ContainsFunc(attempts, func(a store.Attempt) bool { return a.Error != "" })
	// WithoutCancel is used because the results must be stored even if the server is stopping.
	err = s.store.FinishClaim(context.WithoutCancel(ctx), c, attempts)
	return hasMore && err == nil, err
}

// attemptDeliveries sends the events of several deliveries at the same time. The results are in the
// order in which the attempts ended.
func (s *webhookSender) attemptDeliveries(ctx context.Context, w *store.Webhook, due []store.DueDelivery, view View) []store.Attempt {
	// If the server is stopping, nothing is sent.
	if ctx.Err() != nil {
		return nil
	}
	results := make(chan store.Attempt, len(due))
	for _, d := range due {
		go func() { results <- s.attemptDelivery(ctx, w, d, view) }()
	}
	attempts := make([]store.Attempt, len(due))
	for i := range attempts {
		attempts[i] = <-results
	}
	return attempts
}

// attemptDelivery sends the event of a delivery to a webhook and returns the result.
func (s *webhookSender) attemptDelivery(ctx context.Context, w *store.Webhook, d store.DueDelivery, view View) store.Attempt {
	// The attempt finishes even if the server is stopping, because the receiver may already have handled the event.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), webhookTimeout)
	defer cancel()
	start := s.now()
	a := store.Attempt{DeliveryID: d.ID, URL: w.URL}
	status, body, err := s.postEvent(ctx, w, d.Event, view)
	a.At, a.Status, a.Body = store.InstantOf(s.now()), status, body
	a.Duration = a.At.Time().Sub(start)
	switch {
	case err != nil:
		a.Error = describeSendingError(err)
		s.logger.DebugContext(ctx, "an attempt to send an event to a webhook has failed", "webhook", w.ID, "event", d.EventID, "error", err)
	case status >= http.StatusMultipleChoices && status < http.StatusBadRequest:
		a.Error = fmt.Sprintf("The response has status %d. Redirects are not followed.", status)
	case status < http.StatusOK || status >= http.StatusMultipleChoices:
		a.Error = fmt.Sprintf("The response has status %d.", status)
	}
	return a
}

// postEvent sends an event to a webhook. It returns the status and the first maxResponseBytes of the response.
func (s *webhookSender) postEvent(ctx context.Context, w *store.Webhook, e store.Event, view View) (status int, body string, err error) {
	ctx, span := tracing.StartCall(ctx, http.MethodPost, attribute.String("http.request.method", http.MethodPost), attribute.String("reeltally.event_id", e.ID.String()))
	defer func() {
		if err == nil {
			tracing.SetStatus(span, status, http.StatusBadRequest)
		}
		tracing.End(span, err)
	}()
	payload, err := json.Marshal(toAPIEvent(e, view))
	if err != nil {
		return 0, "", err
	}
	at := s.now()
	signature, err := s.signEvent(w, e.ID.String(), at, payload)
	if err != nil {
		return 0, "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(payload))
	if err != nil {
		return 0, "", err
	}
	span.SetAttributes(attribute.String("server.address", r.URL.Hostname()))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", webhookAgent)
	r.Header.Set(standardwebhooks.HeaderWebhookID, e.ID.String())
	r.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	r.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	resp, err := s.transport.RoundTrip(r) // an http.Client is not used, because it would follow redirects
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }() // the error is ignored, because only the status decides whether the delivery succeeded
	start, err := io.ReadAll(io.LimitReader(resp.Body, maxResponseBytes))
	if err != nil {
		start = append(start, "…"...)
	}
	return resp.StatusCode, cleanText(start), nil
}

// signEvent returns the signatures of a request, separated by spaces. The first signature uses the secret of the webhook, and the others use earlier
// secrets that are still valid.
func (s *webhookSender) signEvent(w *store.Webhook, id string, at time.Time, payload []byte) (string, error) {
	encryptedSecrets, err := w.ValidSecrets(store.InstantOf(at))
	if err != nil {
		return "", err
	}
	signatures := make([]string, len(encryptedSecrets))
	for i, encrypted := range encryptedSecrets {
		secret, err := s.cipher.decryptSecret(w.OrganisationID, w.ID, encrypted)
		if err != nil {
			return "", err
		}
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return "", err
		}
		if signatures[i], err = signer.Sign(id, at, payload); err != nil {
			return "", err
		}
	}
	return strings.Join(signatures, " "), nil
}

// describeSendingError returns a sentence about a failed attempt. The sentence never contains an IP
// address, which could reveal details about the server's network.
func describeSendingError(err error) string {
	var (
		refused *outbound.RefusedError
		dns     *net.DNSError
		cert    *tls.CertificateVerificationError
	)
	switch {
	case errors.Is(err, errWrongWebhookKey):
		return "The secret of the webhook cannot be decrypted, because the key of the server has changed. Replace the secret."
	case errors.As(err, &refused):
		return "The host has no address to which events may be sent."
	case errors.As(err, &dns):
		return "The name of the host cannot be resolved."
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("There was no response within %s.", inSeconds(webhookTimeout))
	case errors.As(err, &cert):
		return "The certificate of the host is not valid."
	}
	return "The connection has failed."
}

// cleanText removes NUL characters and invalid UTF-8 from the bytes of a response, so that the database and JSON can store the text.
func cleanText(b []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), ""), "\x00", "")
}
