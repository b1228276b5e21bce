package server

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// CheckCollection returns an error if the API would refuse the name or the hashtags of a collection, or the title or description in displaySettings.
// displaySettings is JSON and can be nil. CheckCollection does not check its other members.
func CheckCollection(name string, hashtags []string, displaySettings json.RawMessage) error {
	c, err := embeddedContract()
	if err != nil {
		return err
	}
	schema := c.byRoute["PATCH /collections/:collection_id"].bodySchema()
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
	faults, err := checkJSON(context.Background(), content, schema)
	if err != nil {
		return err
	}
	var found faultCollector
	for _, f := range faults {
		found.addFault(f)
	}
	var value any
	if err := json.Unmarshal(content, &value); err != nil {
		return err
	}
	if found.checkValue(value, schema); len(found.faults) == 0 {
		return nil
	}
	details := make([]string, len(found.faults))
	for i, f := range found.faults {
		details[i] = f.Detail
	}
	return errors.New(strings.Join(details, "; "))
}
