package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// sharePanel is the part that the sections "Share page" of a collection and of a report have in common.
type sharePanel struct {
	ShareAccess  client.Access
	ShareURL     string // address of the share page; "" if the collection or report is private
	ShareForm    form
	ShareOpened  *time.Time // when a visitor last opened the share page; nil if no visitor has opened it
	ShareCloses  *time.Time // when the share page closes; nil if it stays open
	ShareExpired bool       // true if the share page is closed, because its last day is over
	LastDayOver  bool       // true if the last day in the share form is over
}

// fill sets the fields of the panel. A form that was refused keeps its submitted values. While there is no share page, the form proposes a protected page.
func (p *sharePanel) fill(v *visit, access client.Access, hash *string, closes *time.Time, kind store.ShareKind) (err error) {
	p.ShareAccess, p.ShareCloses, p.ShareExpired = access, closes, hasClosed(closes, v.Now())
	if p.ShareForm.Refused == nil {
		proposed := access
		if access == client.AccessPrivate {
			proposed = client.AccessProtected
		}
		p.ShareForm.Values = url.Values{"access": {string(proposed)}, "last_day": {lastDay(closes)}}
	}
	if closesAt, err := endOfDay(p.ShareForm.Get("last_day")); err == nil { // a refused form can contain text that is not a day
		p.LastDayOver = hasClosed(closesAt, v.Now())
	}
	if access == client.AccessPrivate && v.r.URL.Query().Get("notice") == sharePrivate {
		v.notice, v.noticeLink = noticeTexts[sharePrivate]+" To open it, choose who can open it:", noticeLink{"Share page", v.r.URL.EscapedPath() + "?" + withParameters(v.r.URL.Query()).Encode() + "#share"}
	}
	if hash != nil && access != client.AccessPrivate {
		p.ShareURL = v.AppURL + sharePaths[kind] + *hash
		if v.r.URL.Query().Get("notice") == shareSaved { // the panel with the address can be far below the notice
			v.notice, v.noticeLink = noticeTexts[shareSaved]+" Its address is", noticeLink{p.ShareURL, sharePaths[kind] + *hash}
		}
		p.ShareOpened, err = v.Backend.LastShareVisit(v.r.Context(), v.id, *hash)
	}
	return err
}

// collectionSharePanel is the section "Share page" of a collection. It contains the form that changes the share page.
type collectionSharePanel struct {
	sharePanel
	ShareTitle   string // heading of the share page; "" for the name of the collection
	ShareShows   string // what visitors of the share page see, as text
	ShareMetrics []columnChoice
}

// loadSharePanel returns the section "Share page" of a collection. A form that was refused keeps its submitted values.
func (v *visit) loadSharePanel(c shownCollection, submitted form) (p collectionSharePanel, err error) {
	var text *string
	if encoded := string(c.Collection.DisplaySettings); encoded != "" && encoded != "null" {
		text = &encoded
	}
	d, err := settingsOf(text, "")
	if err != nil {
		return p, err
	}
	p.ShareForm, p.ShareTitle, p.ShareShows = submitted, d.Title, d.describe()
	if err := p.fill(v, c.Collection.Access, c.Collection.Hash, c.Collection.ShareExpiresAt, store.ShareCollection); err != nil {
		return p, err
	}
	switch refused := p.ShareForm.Refused; {
	case refused == nil:
		maps.Copy(p.ShareForm.Values, d.formValues())
		maps.Copy(p.ShareForm.Values, url.Values{"etag": {c.ETag}, "metric": d.Metrics})
	case refused.Status == http.StatusPreconditionFailed: // for other reasons the form keeps its ETag, because it would otherwise overwrite changes that the visitor has not seen
		p.ShareForm.Set("etag", c.ETag)
	}
	for _, name := range shareMetricNames {
		column, _ := findColumn(name)
		p.ShareMetrics = append(p.ShareMetrics, columnChoice{column, slices.Contains(p.ShareForm.Values["metric"], name)})
	}
	return p, nil
}

// hasClosed returns true if a share page is closed at the time now. closesAt is nil if the page stays open.
func hasClosed(closesAt *time.Time, now time.Time) bool {
	return closesAt != nil && !closesAt.After(now)
}

// endedDay returns the UTC day that ends at the given time, as YYYY-MM-DD. It returns "" if the time is not the end of a day.
func endedDay(t time.Time) string {
	if !t.Equal(t.UTC().Truncate(24 * time.Hour)) {
		return ""
	}
	return lastDay(&t)
}

// lastDay returns the last UTC day on which a share page is open, as YYYY-MM-DD. It returns "" if the
// page stays open.
func lastDay(closesAt *time.Time) string {
	if closesAt == nil {
		return ""
	}
	return closesAt.UTC().Add(-time.Nanosecond).Format(time.DateOnly)
}

// endOfDay parses a UTC day of the form YYYY-MM-DD from a form field, and returns the time when the day ends. It returns nil if day is "".
func endOfDay(day string) (*time.Time, error) {
	if day == "" {
		return nil, nil //nolint:nilnil // without a last day, the share page stays open, which is not an error
	}
	begins, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return nil, &Problem{Status: http.StatusBadRequest, Detail: "\"Last day (UTC)\" must be a date such as 2026-12-31."}
	}
	return new(begins.AddDate(0, 0, 1)), nil
}

// shareLabels has the labels of the share form. Its keys are members of the request that changes the collection.
var shareLabels = map[string]string{"password": "New password", "share_expires_at": "Last day (UTC)", "display_settings.title": "Heading",
	"display_settings.description": "Text below it", "display_settings.theme": "Colours", "display_settings.metrics": "Numbers"}

// submitShareForm changes the share page of a collection. If the form is refused, submitShareForm shows it again.
func submitShareForm(v *visit) error {
	id, err := v.itemID()
	if err != nil {
		return err
	}
	return v.submitShare("/collection/"+id, func() error { return v.saveShare("/collections/" + id) }, func(status int, refused form) error {
		return v.renderCollection(status, collectionForms{share: refused})
	})
}

// submitShare calls save for the submitted form of a share page and redirects to the page. If the form is refused, submitShare calls render,
// which shows the form again.
func (v *visit) submitShare(page string, save func() error, render func(status int, refused form) error) error {
	if err := save(); err != nil {
		refused, err := v.refusedForm(err, shareLabels)
		if err != nil {
			return err
		}
		if v.r.PostFormValue("password") != "" {
			refused.Refused.Detail += " Type the new password again." // the page does not contain the submitted password
		}
		return render(refused.Refused.Status, refused)
	}
	closes, err := endOfDay(v.r.PostFormValue("last_day"))
	if err != nil {
		return err
	}
	notice := shareSaved
	switch {
	case v.r.PostFormValue("access") == string(client.AccessPrivate):
		notice = sharePrivate
	case hasClosed(closes, v.Now()):
		notice = "share-closed"
	}
	v.redirectTo(page + "?" + withParameters(v.r.URL.Query(), "notice", notice).Encode())
	return nil
}

// saveShare stores the settings of a share page from the form. Display settings that are not in the
// form do not change.
func (v *visit) saveShare(path string) error {
	before, etag, err := v.getCollection(path)
	if err != nil {
		return err
	}
	settings, err := v.changedSettings(before.DisplaySettings, "show_history", "show_accounts")
	if err != nil {
		return err
	}
	var known displaySettings
	if err := json.Unmarshal(before.DisplaySettings, &known); err != nil {
		return err
	}
	chosen := v.r.PostForm["metric"]
	access := v.r.PostFormValue("access")
	if len(chosen) == 0 && access != string(client.AccessPrivate) {
		return &Problem{Status: http.StatusBadRequest, Detail: "Choose at least one of the numbers that the share page shows. Nothing was changed."}
	}
	// Metrics that were already selected keep their order, and newly selected metrics follow them.
	metrics := slices.DeleteFunc(known.Metrics, func(name string) bool { return !slices.Contains(chosen, name) })
	for _, name := range chosen {
		if !slices.Contains(metrics, name) {
			metrics = append(metrics, name)
		}
	}
	if delete(settings, "metrics"); len(metrics) > 0 {
		if settings["metrics"], err = encodeJSON(metrics); err != nil {
			return err
		}
	}
	body, err := v.sharingMembers(before.ShareExpiresAt)
	if err != nil {
		return err
	}
	body["display_settings"] = settings
	// The API refuses the change if the collection was changed after the form was shown.
	return v.sendShare(path, cmp.Or(v.r.PostFormValue("etag"), etag), body)
}

// changedSettings returns the stored display settings with the texts of the form and the given checkboxes. Raw JSON keeps the members that are not in
// the form exactly as they are.
func (v *visit) changedSettings(stored json.RawMessage, boxes ...string) (map[string]json.RawMessage, error) {
	settings := map[string]json.RawMessage{}
	if err := json.Unmarshal(stored, &settings); err != nil {
		return nil, err
	}
	if settings == nil { // true if no display settings are stored
		settings = map[string]json.RawMessage{}
	}
	for _, box := range boxes {
		settings[box] = json.RawMessage(strconv.FormatBool(v.r.PostFormValue(box) == "true"))
	}
	for _, member := range []string{"title", "description", "theme"} {
		delete(settings, member)
		// Browsers send the line breaks of a textarea as CR LF.
		if text := strings.ReplaceAll(v.r.PostFormValue(member), "\r\n", "\n"); text != "" {
			encoded, err := encodeJSON(text)
			if err != nil {
				return nil, err
			}
			settings[member] = encoded
		}
	}
	return settings, nil
}

// sharingMembers returns the members of a request that changes who can open a share page, from the form. closes is when the page closes before the
// change.
func (v *visit) sharingMembers(closes *time.Time) (map[string]any, error) {
	body := map[string]any{"access": v.r.PostFormValue("access")}
	if day := v.r.PostFormValue("last_day"); day != lastDay(closes) {
		ends, err := endOfDay(day)
		if err != nil {
			return nil, err
		}
		body["share_expires_at"] = ends
	}
	if password := v.r.PostFormValue("password"); password != "" {
		body["password"] = password
	}
	return body, nil
}

// sendShare changes a share page through the API, with patch. If the item was changed meanwhile or the password is missing, it replaces the API's error
// text by a text that fits the form.
func (v *visit) sendShare(path, etag string, body map[string]any) error {
	err := v.patch(path, etag, body)
	problem, ok := errors.AsType[*Problem](err)
	switch {
	case ok && problem.Status == http.StatusPreconditionFailed:
		problem.Faults, problem.Detail = nil, "The collection was changed meanwhile. Nothing was saved. The form has your values: to replace the present settings with them, save again."
	case ok && problem.Code == "password_required":
		problem.Faults, problem.Detail = nil, "You chose \"everyone with address and password (protected)\", but no password is set. Type a password of at least 8 characters into the field \"New password\". Nothing was changed."
	}
	return err
}
