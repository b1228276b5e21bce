package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// shownDeliveries is the maximum number of deliveries on the page Settings. A delivery is an event that was sent or must be sent to a
// webhook.
const shownDeliveries = 10

// webhookSettings are the webhooks on the page Settings.
type webhookSettings struct {
	Webhooks   []client.Webhook
	Shown      *client.Webhook          // the webhook whose deliveries are shown; nil if none are shown
	Deliveries []client.WebhookDelivery // newest first
	Types      []store.EventType        // types of events that the form for a new webhook offers
}

// readWebhooks returns the webhooks of the organisation. It also returns the deliveries to the webhook whose id is in the query. Without an id in the
// query, it returns the deliveries to the first webhook that fails or that was disabled after failures.
func (v *visit) readWebhooks() (webhookSettings, error) {
	var list client.WebhookList
	if err := v.getFromAPI("/webhooks", nil, &list); err != nil {
		return webhookSettings{}, err
	}
	content := webhookSettings{Webhooks: list.Data}
	for _, t := range store.EventTypes {
		if t != store.EventWebhookTest {
			content.Types = append(content.Types, t)
		}
	}
	shown := slices.IndexFunc(list.Data, func(w client.Webhook) bool {
		if id := v.r.URL.Query().Get("webhook"); id != "" {
			return w.ID.String() == id
		}
		return w.FailingSince != nil
	})
	if shown < 0 {
		return content, nil
	}
	var page client.WebhookDeliveryPage
	if err := v.getFromAPI("/webhooks/"+list.Data[shown].ID.String()+"/deliveries", url.Values{"limit": {strconv.Itoa(shownDeliveries)}}, &page); err != nil {
		return content, err
	}
	content.Shown, content.Deliveries = &list.Data[shown], page.Data
	return content, nil
}

// disabledBecause says in words why a webhook is disabled. The key is the value of disabled_reason in the API.
var disabledBecause = map[string]string{string(store.DisabledByRequest): "on request", string(store.DisabledGone): "because its server answered with status 410",
	string(store.DisabledFailing): "because all attempts failed for three days"}

// eventTexts says for each type of events when an event is sent. The document docs/webhooks.md has the details.
var eventTexts = map[store.EventType]string{
	store.EventVideoMetrics:    "A count of a video changed",
	store.EventVideoMilestone:  "A video reached 1,000 views, 10,000 views and so on",
	store.EventVideoOutlier:    "A video reached 10 or 25 times the median views of its account",
	store.EventVideoViewsFell:  "A video has fewer views than before",
	store.EventVideoStatus:     "The status of a video changed, for example because it is gone",
	store.EventVideoRemoved:    "The tracking of a video was stopped",
	store.EventVideoDiscovered: "A new video of a tracked account was found",
	store.EventAccountMetrics:  "The followers of an account changed, or the number of accounts that it follows",
	store.EventAccountStatus:   "The status of an account changed, for example because it is private",
	store.EventWebhookDisabled: "Another webhook was disabled",
}

// eventChoice is a type of events in the form for a new webhook.
type eventChoice struct {
	Type   store.EventType
	Text   string // when an event of the type is sent
	Chosen bool
}

// EventChoices returns the types of events that the form for a new webhook offers. A form that was refused keeps its choice.
func (p settingsPage) EventChoices() []eventChoice {
	var choices []eventChoice
	for _, t := range p.Webhooks.Types {
		choices = append(choices, eventChoice{t, eventTexts[t], slices.Contains(p.NewWebhook.Values["type"], string(t))})
	}
	return choices
}

// webhookPath returns the path of an operation on a webhook. If id is not a UUID, the path contains the zero UUID, which no webhook has.
func webhookPath(id, operation string) string {
	parsed, _ := uuid.Parse(id)
	return "/webhooks/" + parsed.String() + operation
}

// createWebhook creates a webhook from the values in the form and shows its secret once.
func createWebhook(v *visit) error {
	request := client.CreateWebhookRequest{URL: strings.TrimSpace(v.r.PostFormValue("url"))}
	for _, t := range v.r.PostForm["type"] {
		if t != "" {
			request.EventTypes = append(request.EventTypes, client.EventType(t))
		}
	}
	var made client.CreatedWebhook
	if err := v.sendJSONOnce("/webhooks", request, &made); err != nil {
		return v.showRefusedWebhook(err)
	}
	return v.renderSettings(http.StatusOK, settingsPage{MadeWebhook: &made})
}

// showRefusedWebhook shows the page Settings with the reason why a webhook was not created or changed.
func (v *visit) showRefusedWebhook(err error) error {
	labels := map[string]string{"url": "Address"}
	for n := range v.r.PostForm["type"] {
		labels["event_types."+strconv.Itoa(n)] = "Events"
	}
	refused, err := v.refusedForm(err, labels)
	if err != nil {
		return err
	}
	return v.renderSettings(refused.Refused.Status, settingsPage{NewWebhook: refused})
}

// changeWebhook performs the action of a button beside a webhook. The action deletes, tests, enables or disables the webhook, or sends the event of
// one of its deliveries again.
func changeWebhook(v *visit) error {
	id, action := v.r.PathValue("id"), v.r.PathValue("action")
	var err error
	switch action {
	case "delete":
		_, err = v.callAPI(APIRequest{Method: http.MethodDelete, Target: webhookPath(id, "")}, nil)
	case "test":
		_, err = v.callAPI(APIRequest{Method: http.MethodPost, Target: webhookPath(id, "/test")}, nil)
	case "replay":
		delivery, invalid := uuid.Parse(v.r.PostFormValue("delivery"))
		if invalid != nil {
			return errNotFound
		}
		_, err = v.callAPI(APIRequest{Method: http.MethodPost, Target: webhookPath(id, "/deliveries/"+delivery.String()+"/replay")}, nil)
	case "enable", "disable":
		err = v.patch(webhookPath(id, ""), "", map[string]any{"enabled": action == "enable"})
	default:
		return errNotFound
	}
	if err != nil {
		return v.showRefusedWebhook(err)
	}
	target := "/settings?notice=webhook-" + action
	if action == "test" || action == "replay" {
		target += "&webhook=" + url.QueryEscape(id)
	}
	v.redirectTo(target)
	return nil
}
