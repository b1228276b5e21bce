package web

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
)

// This file contains the handlers that change the name, the parent and the hashtags of a collection.

// splitHashtags returns the hashtags in the text of a form field. Commas and spaces separate them.
func splitHashtags(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' })
}

// refusedCollection returns a form with the name, the parent and the hashtags of a collection, after the API has refused it with err.
func (v *visit) refusedCollection(err error, hashtags []string) (form, error) {
	labels := map[string]string{"name": "Name", "parent_id": "Inside of", "hashtags": "Hashtags"}
	for n, tag := range hashtags {
		labels["hashtags."+strconv.Itoa(n)] = tag
	}
	return v.refusedForm(err, labels)
}

// editPanel has the form that changes the name, the parent and the hashtags of a collection.
type editPanel struct {
	EditForm form
	Parents  []client.Collection // collections that can be the parent
}

// newEditPanel returns the form that changes the collection c. `all` are all collections. A form that was refused keeps its submitted values.
func newEditPanel(c shownCollection, all []client.Collection, submitted form) editPanel {
	p := editPanel{EditForm: submitted}
	switch refused := submitted.Refused; {
	case refused == nil:
		parent := ""
		if c.Collection.ParentID != nil {
			parent = c.Collection.ParentID.String()
		}
		var hashtags []string
		for _, tag := range c.Collection.Hashtags {
			hashtags = append(hashtags, "#"+tag)
		}
		p.EditForm.Values = url.Values{"version": {c.ETag}, "name": {c.Collection.Name}, "parent": {parent}, "hashtags": {strings.Join(hashtags, " ")}}
	case refused.Status == http.StatusPreconditionFailed: // this page shows the newest version; after any other refusal, the form keeps its ETag, so that it cannot overwrite changes that the visitor has not seen
		p.EditForm.Set("version", c.ETag)
	}
	below := map[uuid.UUID]bool{c.Collection.ID: true}
	for _, node := range collectionTree(all) { // a collection comes after the collections above it
		if below[node.ID] || node.ParentID != nil && below[*node.ParentID] {
			below[node.ID] = true
			continue
		}
		p.Parents = append(p.Parents, node.Collection)
	}
	return p
}

// editCollection changes the name, the parent and the hashtags of a collection. If the API refuses the values, editCollection shows the form again.
func (v *visit) editCollection(id string) error {
	hashtags := splitHashtags(v.r.PostFormValue("hashtags"))
	if hashtags == nil {
		hashtags = []string{}
	}
	body := map[string]any{"name": strings.TrimSpace(v.r.PostFormValue("name")), "hashtags": hashtags}
	if v.r.PostForm.Has("parent") { // a tier that hides numbers lists only the first collection, so its form has no list of parents
		body["parent_id"] = nil
		if parent, err := uuid.Parse(v.r.PostFormValue("parent")); err == nil {
			body["parent_id"] = parent
		}
	}
	path := "/collections/" + id
	_, etag, err := v.getCollection(path)
	if err != nil {
		return err
	}
	// The API refuses the change if the collection was changed after the form was shown.
	if err := v.patch(path, cmp.Or(v.r.PostFormValue("version"), etag), body); err != nil {
		if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusPreconditionFailed {
			problem.Faults, problem.Detail = nil, "The collection was changed meanwhile. Nothing was saved. The form has your values: to replace the present ones with them, save again."
		}
		refused, err := v.refusedCollection(err, hashtags)
		if err != nil {
			return err
		}
		return v.renderCollection(refused.Refused.Status, collectionForms{edit: refused})
	}
	v.redirectTo("/collection/" + id + "?notice=collection-changed")
	return nil
}
