package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/store"
)

// addition is what a form added to a collection: the videos or accounts that were not added to it before. All of them have the same time of adding.
// The button Undo takes exactly these videos or accounts out again. If one of them was taken out and added again meanwhile, it has another time
// of adding and stays, unless both additions were made with the same first day of the gains.
type addition struct {
	Kind       string        // "video" or "account"
	Collection string        // id of the collection
	AddedAt    store.Instant // time of adding; if the form had a first day of the gains, the last moment of the day before it
	IDs        []string
	Back       string // path and query of the page to which the browser returns afterwards
}

// addToCollection adds videos or accounts to the collection that the visitor chose in the form. kind is "video" or "account". It returns what was added.
// A form with videos can have the first day whose gains count. Videos that were added before get this day, too, but are not in the result.
func (v *visit) addToCollection(kind string, ids []string) (addition, error) {
	added := addition{Kind: kind}
	collection, err := uuid.Parse(v.r.PostFormValue("collection"))
	if err != nil {
		return added, &Problem{Status: http.StatusBadRequest, Title: "No collection", Detail: "Choose a collection."}
	}
	added.Collection = collection.String()
	before, err := v.timesOfAdding(added, ids)
	if err != nil {
		return added, err
	}
	request := map[string]any{kind + "_ids": ids}
	if day := v.r.PostFormValue("counts_from"); day != "" {
		request["counts_from"] = day
	}
	if _, err := v.sendJSON(http.MethodPost, added.path(), request, nil); err != nil {
		return added, err
	}
	after, err := v.timesOfAdding(added, ids)
	if err != nil {
		return added, err
	}
	for _, id := range ids {
		if at := after[id]; at != 0 && before[id] == 0 {
			added.AddedAt = max(added.AddedAt, at)
			added.IDs = append(added.IDs, id)
		}
	}
	// Another request can have added some of them at the same time. So only those with the latest time of adding are taken for those of this form.
	added.IDs = slices.DeleteFunc(added.IDs, func(id string) bool { return after[id] != added.AddedAt })
	return added, nil
}

// path returns the path of the collection's videos or accounts in the API.
func (a addition) path() string { return "/collections/" + a.Collection + "/" + a.Kind + "s" }

// timesOfAdding returns when the videos or accounts with the given ids were added to the collection of a.
func (v *visit) timesOfAdding(a addition, ids []string) (map[string]store.Instant, error) {
	var parsed []uuid.UUID
	for _, id := range ids {
		member, err := uuid.Parse(id)
		if err != nil {
			return nil, errNotFound
		}
		parsed = append(parsed, member)
	}
	collection, err := uuid.Parse(a.Collection)
	if err != nil {
		return nil, errNotFound
	}
	times := map[string]store.Instant{}
	stored, err := v.Backend.TimesOfAdding(v.r.Context(), v.id, collection, a.Kind, parsed)
	for id, at := range stored {
		times[id.String()] = at
	}
	return times, err
}

// notice returns a value of the query parameter "notice". It has the name of a text in noticeTexts, and what was added. parseAddition reads it.
func (a addition) notice(text string) string {
	if len(a.IDs) == 0 {
		return text
	}
	return strings.Join(append([]string{text, a.Kind, a.Collection, strconv.FormatInt(int64(a.AddedAt), 10)}, a.IDs...), ".")
}

// parseAddition returns the name of the text of a notice, and what was added. The addition is nil if the notice has none. Because anybody can write a
// link with a notice, each part must have the form that addition.notice gives it: the address and the fields of the form with the button Undo are made
// from them.
func parseAddition(notice string) (text string, a *addition) {
	parts := strings.Split(notice, ".")
	if len(parts) < 5 || len(parts) > 4+maxChosen || parts[0] != "added" && parts[0] != "accounts-added" || parts[1] != "video" && parts[1] != "account" {
		return notice, nil
	}
	at, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return notice, nil
	}
	ids := slices.Concat(parts[2:3], parts[4:])
	for n := range ids {
		id, err := uuid.Parse(ids[n])
		if err != nil {
			return notice, nil
		}
		ids[n] = id.String()
	}
	return parts[0], &addition{Kind: parts[1], Collection: ids[0], AddedAt: store.Instant(at), IDs: ids[1:]}
}

// undoAddition takes the videos or accounts of an addition out of the collection with the given id again, except those that were taken out before.
func (v *visit) undoAddition(collection string) error {
	back, err := v.readBack()
	if err != nil {
		return err
	}
	a := addition{Kind: v.r.PostFormValue("kind"), Collection: collection}
	at, err := strconv.ParseInt(v.r.PostFormValue("added_at"), 10, 64)
	if err != nil || a.Kind != "video" && a.Kind != "account" {
		return errNotFound
	}
	ids, err := idsToChange(v.r.PostForm, a.Kind)
	if err != nil {
		return err
	}
	times, err := v.timesOfAdding(a, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if times[id] == store.Instant(at) {
			a.IDs = append(a.IDs, id)
		}
	}
	if len(a.IDs) > 0 {
		if _, err := v.sendJSON(http.MethodDelete, a.path(), map[string][]string{a.Kind + "_ids": a.IDs}, nil); err != nil {
			return err
		}
	}
	notice := "undone-" + a.Kind + "s"
	switch len(a.IDs) {
	case 0:
		notice = "undone-none"
	case len(ids):
	default:
		notice += "-partly"
	}
	v.redirectTo(back.EscapedPath() + "?" + withParameters(back.Query(), "notice", notice).Encode())
	return nil
}
