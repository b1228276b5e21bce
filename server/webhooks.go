package server

import (
	"context"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/api"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/outbound"
	"github.com/reeltally/reeltally/store"
)

// faultURL is the fault code for the URL of a webhook to which the server cannot or must not send events.
const faultURL = "invalid_url"

// ListWebhooks answers GET /webhooks with the webhooks of the caller's organisation.
func (s *Server) ListWebhooks(ctx context.Context, _ api.ListWebhooksRequestObject) (api.ListWebhooksResponseObject, error) {
	webhooks, err := callerFrom(ctx).Org.Webhooks(ctx)
	if err != nil {
		return nil, err
	}
	list := api.WebhookList{Data: make([]api.Webhook, len(webhooks))}
	for i := range webhooks {
		list.Data[i] = s.toAPIWebhook(&webhooks[i])
	}
	return api.ListWebhooks200JSONResponse(list), nil
}

// CreateWebhook answers POST /webhooks: it creates a webhook and returns its secret.
func (s *Server) CreateWebhook(ctx context.Context, r api.CreateWebhookRequestObject) (api.CreateWebhookResponseObject, error) {
	if err := s.checkWebhookURL(r.Body.URL); err != nil {
		return nil, err
	}
	org := callerFrom(ctx).Org
	n := store.NewWebhook{ID: recordIDFrom(ctx), URL: r.Body.URL, Types: eventTypes(r.Body.EventTypes)}
	if n.ID == uuid.Nil {
		n.ID = store.NewID()
	}
	if r.Body.Description != nil {
		n.Description = *r.Body.Description
	}
	secret, encrypted, err := s.webhooks.cipher.newSecret(org.ID(), n.ID)
	if err != nil {
		return nil, err
	}
	n.Secret = encrypted
	made, err := org.CreateWebhook(ctx, n)
	if err != nil {
		return nil, err
	}
	w := s.toAPIWebhook(&made)
	return api.CreateWebhook201JSONResponse(api.CreatedWebhook{ID: w.ID, URL: w.URL, Description: w.Description, EventTypes: w.EventTypes, Enabled: w.Enabled,
		DisabledReason: w.DisabledReason, CreatedAt: w.CreatedAt, UpdatedAt: w.UpdatedAt, LastSuccessAt: w.LastSuccessAt, FailingSince: w.FailingSince,
		PreviousSecretExpiresAt: w.PreviousSecretExpiresAt, Secret: &secret}), nil
}

// GetWebhook answers GET /webhooks/{webhook_id} with a webhook.
func (s *Server) GetWebhook(ctx context.Context, r api.GetWebhookRequestObject) (api.GetWebhookResponseObject, error) {
	w, err := callerFrom(ctx).Org.Webhook(ctx, r.WebhookID)
	if err != nil {
		return nil, err
	}
	return api.GetWebhook200JSONResponse(s.toAPIWebhook(&w)), nil
}

// UpdateWebhook answers PATCH /webhooks/{webhook_id}: it changes a webhook.
func (s *Server) UpdateWebhook(ctx context.Context, r api.UpdateWebhookRequestObject) (api.UpdateWebhookResponseObject, error) {
	c := store.WebhookChange{URL: r.Body.URL, Enabled: r.Body.Enabled}
	if r.Body.URL != nil {
		if err := s.checkWebhookURL(*r.Body.URL); err != nil {
			return nil, err
		}
	}
	if description, err := r.Body.Description.Get(); err == nil {
		c.Description = &description
	}
	if types, err := r.Body.EventTypes.Get(); err == nil {
		c.Types = new(eventTypes(types))
	}
	w, err := callerFrom(ctx).Org.UpdateWebhook(ctx, r.WebhookID, c)
	if err != nil {
		return nil, err
	}
	return api.UpdateWebhook200JSONResponse(s.toAPIWebhook(&w)), nil
}

// DeleteWebhook answers DELETE /webhooks/{webhook_id}: it deletes a webhook.
func (s *Server) DeleteWebhook(ctx context.Context, r api.DeleteWebhookRequestObject) (api.DeleteWebhookResponseObject, error) {
	return api.DeleteWebhook204Response{}, callerFrom(ctx).Org.DeleteWebhook(ctx, r.WebhookID)
}

// TestWebhook answers POST /webhooks/{webhook_id}/test: it sends a test event.
func (s *Server) TestWebhook(ctx context.Context, r api.TestWebhookRequestObject) (api.TestWebhookResponseObject, error) {
	d, err := callerFrom(ctx).Org.TestWebhook(ctx, r.WebhookID, recordIDFrom(ctx))
	if err != nil {
		return nil, err
	}
	return api.TestWebhook202JSONResponse(toAPIDelivery(d, new(store.Instant))), nil
}

// RotateWebhookSecret answers POST /webhooks/{webhook_id}/rotate-secret: it replaces the secret of a webhook.
func (s *Server) RotateWebhookSecret(ctx context.Context, r api.RotateWebhookSecretRequestObject) (api.RotateWebhookSecretResponseObject, error) {
	org := callerFrom(ctx).Org
	secret, encrypted, err := s.webhooks.cipher.newSecret(org.ID(), r.WebhookID)
	if err != nil {
		return nil, err
	}
	w, err := org.RotateWebhookSecret(ctx, r.WebhookID, recordIDFrom(ctx), encrypted)
	if err != nil {
		return nil, err
	}
	return api.RotateWebhookSecret200JSONResponse(api.WebhookSecret{ID: w.ID, Secret: &secret, PreviousSecretExpiresAt: toAPITime(*w.PreviousSecretUntil)}), nil
}

// ListWebhookDeliveries answers GET /webhooks/{webhook_id}/deliveries with the deliveries to a webhook. A delivery is an event that was
// sent or must be sent to the webhook.
func (s *Server) ListWebhookDeliveries(ctx context.Context, r api.ListWebhookDeliveriesRequestObject) (api.ListWebhookDeliveriesResponseObject, error) {
	p := r.Params
	query := store.DeliveryQuery{WebhookID: r.WebhookID, Order: orderOf(nil, "created_at", p.OrderDirection)}
	page, err := s.readPage(ctx, pageParams{page: p.Page, limit: p.Limit, cursor: p.Cursor}, query.Order, nil, r.WebhookID)
	if err != nil {
		return nil, err
	}
	var pauseEnd *store.Instant
	return answerList(ctx, s, listRequest[store.Delivery]{page: page, allRows: true,
		find: func(o *store.Org, w store.Window, _ func(*store.Delivery) error) (*store.List[store.Delivery], error) {
			query.Window = w
			if pauseEnd, err = o.WebhookPauseEnd(ctx, r.WebhookID); err != nil {
				return nil, err
			}
			return o.ListDeliveries(ctx, query)
		},
		encode: newRowEncoder(func(d store.Delivery, _ View) api.WebhookDelivery { return toAPIDelivery(d, pauseEnd) })})
}

// ReplayWebhookDelivery answers POST /webhooks/{webhook_id}/deliveries/{delivery_id}/replay: it sends the event of a delivery again.
func (s *Server) ReplayWebhookDelivery(ctx context.Context, r api.ReplayWebhookDeliveryRequestObject) (api.ReplayWebhookDeliveryResponseObject, error) {
	d, err := callerFrom(ctx).Org.ReplayDelivery(ctx, r.WebhookID, r.DeliveryID, recordIDFrom(ctx))
	if err != nil {
		return nil, err
	}
	return api.ReplayWebhookDelivery202JSONResponse(toAPIDelivery(d, new(store.Instant))), nil
}

// eventTypes converts the event types in a request, and removes duplicates. An empty list means all types.
func eventTypes(types []api.EventType) []store.EventType {
	out := make([]store.EventType, 0, len(types))
	for _, t := range types {
		if !slices.Contains(out, store.EventType(t)) {
			out = append(out, store.EventType(t))
		}
	}
	return out
}

// urlCharacters are the characters that a URL can have (RFC 3986).
const urlCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/?#[]@!$&'()*+,;=%"

// hostCharacters are the characters that can stand between the dots of a host name.
const hostCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// checkWebhookURL returns an error response if a URL is not allowed for webhooks. A host name's IP
// addresses are checked later, when an event is sent.
func (s *Server) checkWebhookURL(text string) error {
	refuse := func(format string, args ...any) error {
		return invalidRequest(bodyFault("/url", faultURL, format, args...))
	}
	for _, r := range text {
		if !strings.ContainsRune(urlCharacters, r) {
			return refuse("url has the character %q; it must be percent-encoded, or in a host name be written as Punycode (xn--…)", r)
		}
	}
	if _, err := url.PathUnescape(text); err != nil {
		return refuse("url has a percent sign without two hexadecimal digits after it")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return refuse("url must be an https URL such as https://hooks.example.com/reeltally, not %s", words.Quote(text))
	case !isHost(u.Hostname()):
		return refuse("url has the impossible host %s: each part between dots must have 1 to 63 letters, digits, - or _, without - at its ends: %s", words.Quote(u.Hostname()), words.Quote(text))
	case !isPort(u.Port()):
		return refuse("url has the port %s; it must be a number from 1 to 65535: %s", words.Quote(u.Port()), words.Quote(text))
	case u.Scheme != "https" && (u.Scheme != "http" || !s.webhooks.AllowPrivate):
		return refuse("url begins with %q; it must begin with \"https://\"", u.Scheme+"://")
	case strings.ContainsAny(u.EscapedPath()+u.RawQuery, "[]"):
		return refuse("url has a bracket outside of the host; it must be percent-encoded")
	case u.User != nil:
		return refuse("url has a user name, which is not allowed; remove it, and let the receiver check the signature of each request")
	case u.Fragment != "" || strings.Contains(text, "#"):
		return refuse("url has a fragment, which is not allowed; remove # and the text after it")
	}
	if s.webhooks.allowedAddressKinds(outbound.AddressOf(u)) == outbound.Operated {
		return nil
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil && !outbound.IsPublic(addr) {
		return refuse("url has the address %s, which is not public", addr)
	}
	if why := outbound.NonPublicNameReason(u.Hostname()); why != "" {
		return refuse("url has the host %s, which is %s; events are sent only to public addresses", words.Quote(u.Hostname()), why)
	}
	return nil
}

// isHost returns true if host is an IP address or has the form of a DNS name. The name may end with a dot.
func isHost(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	const maxNameLength, maxLabelLength = 253, 63
	name := strings.TrimSuffix(host, ".")
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabelLength || strings.Trim(label, hostCharacters) != "" || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
			return false
		}
	}
	return len(name) <= maxNameLength
}

// isPort returns true if port is the number of a TCP port, or "" for the default port.
func isPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// toAPIWebhook converts a webhook to the JSON type of the API, without its secret.
func (s *Server) toAPIWebhook(w *store.Webhook) api.Webhook {
	out := api.Webhook{ID: w.ID, URL: w.URL, Description: w.Description, EventTypes: api.EventTypes{}, Enabled: w.Enabled, DisabledReason: (*string)(w.DisabledReason),
		CreatedAt: toAPITime(w.CreatedAt), UpdatedAt: toAPITime(w.UpdatedAt), LastSuccessAt: toAPITimePtr(w.LastSuccessAt), FailingSince: toAPITimePtr(w.FailingSince)}
	for _, t := range w.Types() {
		out.EventTypes = append(out.EventTypes, api.EventType(t))
	}
	if w.PreviousSecretUntil != nil && *w.PreviousSecretUntil > store.InstantOf(s.now()) {
		out.PreviousSecretExpiresAt = toAPITimePtr(w.PreviousSecretUntil)
	}
	return out
}

// toAPIDelivery converts a delivery to the JSON type of the API. The next attempt is not before pauseEnd, which is nil if the webhook is disabled.
func toAPIDelivery(d store.Delivery, pauseEnd *store.Instant) api.WebhookDelivery {
	out := api.WebhookDelivery{ID: d.ID, WebhookID: d.WebhookID, EventID: d.EventID, EventType: api.EventType(d.EventType), Status: api.WebhookDeliveryStatusFailed,
		CreatedAt: toAPITime(d.CreatedAt), Attempts: int32(d.Attempts), LastAttemptAt: toAPITimePtr(d.LastAttemptAt), //nolint:gosec // no overflow, because there are at most ten attempts
		DurationMs: d.DurationMS, ResponseBody: d.ResponseBody, Error: d.Error}
	if d.ResponseStatus != nil {
		out.ResponseStatus = new(int32(*d.ResponseStatus)) //nolint:gosec // no overflow, because an HTTP status has three digits
	}
	switch {
	case d.Delivered:
		out.Status = api.WebhookDeliveryStatusDelivered
	case d.NextAt != nil:
		out.Status = api.WebhookDeliveryStatusPending
		if pauseEnd != nil {
			out.NextAttemptAt = new(toAPITime(max(*d.NextAt, *pauseEnd)))
		}
	}
	return out
}
