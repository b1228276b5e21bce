package server

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
)

// CheckCollection returns an error if the API would refuse a collection with this name, these hashtags, or the title and description of
// the display settings. displaySettings can be nil. Its other members are not checked.
func CheckCollection(name string, hashtags []string, displaySettings json.RawMessage) error {
	c, err := embeddedContract()
	if err != nil {
		return err
	}
	op := c.byRoute["PATCH /collections/:collection_id"]
	body := map[string]any{"name": name}
	if len(hashtags) > 0 {
		body["hashtags"] = hashtags
	}
	var settings map[string]any
	if json.Unmarshal(displaySettings, &settings) == nil {
		texts := map[string]string{}
		for _, member := range []string{"title", "description"} {
			if text, isText := settings[member].(string); isText {
				texts[member] = text
			}
		}
		body["display_settings"] = texts
	}
	content, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(op.method, "/", nil) //nolint:noctx // the request is only validated
	if err != nil {
		return err
	}
	r.Header.Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	faults, err := checkJSON(r.Context(), content, op.bodySchema())
	if err != nil {
		return err
	}
	_, contractFaults := checkContract(r, op, map[string]string{"collection_id": uuid.Nil.String()}, nil, content, true)
	if faults = append(faults, removeFaultsOfSameValues(contractFaults, faults)...); len(faults) == 0 {
		return nil
	}
	details := make([]string, len(faults))
	for i, f := range faults {
		details[i] = f.Detail
	}
	return errors.New(strings.Join(details, "; "))
}
