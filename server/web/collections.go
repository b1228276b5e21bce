package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
)

// collections returns all collections of the organisation, ordered by name. If the tier hides numbers, it returns only the first.
func (v *visit) collections() ([]client.Collection, error) {
	var all []client.Collection
	err := eachListEntry(v, "/collections", url.Values{"order_by": {"name"}, "order_direction": {"asc"}, "paginated": {"true"}}, store.MaxLabels,
		func(c *client.Collection) { all = append(all, *c) })
	return all, err
}

// treeNode is a collection with its level in the tree of collections.
type treeNode struct {
	client.Collection
	Level  int    // level of indentation: 0 for a collection without a parent; at most 3, so that deep trees stay readable
	Videos *int64 // number of tracked videos; nil if the tier hides it
	Views  *int64 // sum of the known latest views of these videos; nil if none are known, or if the tier hides them
	Closed bool   // true if the share page is closed, because its last day is over

	// OnlyBelow is true if the collections below this one have tracked videos, and the collection itself has none. The link of the collection
	// then opens the numbers with those of its subcollections.
	OnlyBelow bool
}

// collectionsPage is the data for the template of the page of all collections.
type collectionsPage struct {
	Collections []treeNode
	New         form     // the form that creates a collection
	Refused     *Problem // error of the server if the collections have too many members for their numbers to be computed; nil otherwise
	Reports     []reportEntry
	SameName    string // name in the form that another collection already has, so that the visitor must confirm it; "" otherwise
}

// reportEntry is a report in the list of all reports.
type reportEntry struct {
	store.Report
	Deleted bool // true if the collection of the report was deleted; false if the tier hides numbers, because the list of collections is then incomplete
}

// showCollections shows the tree of collections.
func showCollections(v *visit) error {
	switch v.csvPart() {
	case "":
		return v.renderCollections(http.StatusOK, collectionsPage{})
	case "collections":
		var content collectionsPage
		if err := content.loadCollections(v); err != nil {
			return err
		}
		if content.Refused != nil {
			return content.Refused
		}
		return v.sendCollections(content.Collections)
	}
	return v.refuseCSV()
}

// renderCollections sends the page with the tree of collections and the form for a new collection. content.New has the typed values of the form, if it was refused.
func (v *visit) renderCollections(status int, content collectionsPage) error {
	if err := content.loadCollections(v); err != nil {
		return err
	}
	return v.renderPage(status, "collections", "collections", "Collections", content)
}

// loadCollections reads the tree of collections with their numbers. If the collections have too many members, it sets content.Refused.
func (content *collectionsPage) loadCollections(v *visit) error {
	all, err := v.collections()
	if err != nil {
		return err
	}
	sums, err := v.Backend.CollectionSums(v.r.Context(), v.id)
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusConflict {
		content.Refused = problem
	} else if err != nil {
		return err
	}
	reports, err := v.Backend.Reports(v.r.Context(), v.id)
	if err != nil {
		return err
	}
	for _, r := range reports {
		deleted := !slices.ContainsFunc(all, func(c client.Collection) bool { return c.ID == r.CollectionID })
		content.Reports = append(content.Reports, reportEntry{r, deleted && !v.hidesNumbers()})
	}
	content.Collections = collectionTree(all)
	for n := range content.Collections {
		c := &content.Collections[n]
		c.Closed = hasClosed(c.ShareExpiresAt, v.Now())
		if sums != nil {
			sum := sums[c.ID]
			c.Videos, c.Views = &sum.Videos, sum.Views
		}
	}
	haveVideosBelow := map[uuid.UUID]bool{}               // by the id of the collection
	for n := range slices.Backward(content.Collections) { // a collection is after its parent
		c := &content.Collections[n]
		hasVideos := c.Videos != nil && *c.Videos > 0
		c.OnlyBelow = haveVideosBelow[c.ID] && !hasVideos
		if c.ParentID != nil && (hasVideos || haveVideosBelow[c.ID]) {
			haveVideosBelow[*c.ParentID] = true
		}
	}
	return nil
}

// collectionTree sorts collections as a tree: each collection is followed by the collections below it. A collection whose parent is not among the
// given collections has level 0.
func collectionTree(collections []client.Collection) []treeNode {
	children := map[uuid.UUID][]client.Collection{}
	present := map[uuid.UUID]bool{}
	for _, c := range collections {
		present[c.ID] = true
	}
	for _, c := range collections {
		parent := uuid.Nil
		if c.ParentID != nil && present[*c.ParentID] {
			parent = *c.ParentID
		}
		children[parent] = append(children[parent], c)
	}
	out := make([]treeNode, 0, len(collections))
	var add func(parent uuid.UUID, level int)
	add = func(parent uuid.UUID, level int) {
		for _, c := range children[parent] {
			out = append(out, treeNode{Collection: c, Level: min(level, 3)})
			add(c.ID, level+1)
		}
	}
	add(uuid.Nil, 0)
	return out
}

// createCollection creates a collection from the values in the form and shows its page. If the API refuses the values, or if the visitor must
// confirm the name, createCollection shows the form again.
func createCollection(v *visit) error {
	body := client.CreateCollectionRequest{Name: strings.TrimSpace(v.r.PostFormValue("name"))}
	if body.Name != "" && v.r.PostFormValue("same_name") != body.Name {
		all, err := v.collections()
		if err != nil {
			return err
		}
		if at := slices.IndexFunc(all, func(c client.Collection) bool { return strings.EqualFold(c.Name, body.Name) }); at >= 0 {
			v.keepInHistory()
			problem := &Problem{Status: http.StatusConflict, Detail: fmt.Sprintf("There is already a collection with the name %q. Nothing was created. Change the name, or create a second collection with the same name.", all[at].Name)}
			return v.renderCollections(problem.Status, collectionsPage{New: form{v.r.PostForm, problem}, SameName: body.Name})
		}
	}
	if parent, err := uuid.Parse(v.r.PostFormValue("parent")); err == nil {
		body.ParentID = &parent
	}
	body.Hashtags = splitHashtags(v.r.PostFormValue("hashtags"))
	var created client.CreatedCollection
	if _, err := v.sendJSON(http.MethodPost, "/collections", body, &created); err != nil {
		refused, err := v.refusedCollection(err, body.Hashtags)
		if err != nil {
			return err
		}
		return v.renderCollections(refused.Refused.Status, collectionsPage{New: refused})
	}
	v.redirectTo("/collection/" + created.ID.String() + "?notice=created")
	return nil
}
