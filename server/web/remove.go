package web

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/gen/client"
)

// This file contains the handlers that remove chosen videos, or an account, from a collection. For videos, a page first asks for confirmation, and another
// page then shows what happened to each video.

// listedCollection returns the id of the collection whose page is the list with the path and query back. It returns "" for other lists.
func listedCollection(back string) string {
	list, err := url.Parse(back)
	if err != nil {
		return ""
	}
	id, err := uuid.Parse(strings.TrimPrefix(list.Path, "/collection/"))
	if err != nil || !strings.HasPrefix(list.Path, "/collection/") {
		return ""
	}
	return id.String()
}

// confirmRemoval shows what happens to the numbers of a collection if the chosen videos are removed from it, with a button that removes them. If no
// collection is chosen, but the list is that of a collection, the videos are removed from this collection.
func confirmRemoval(v *visit) error {
	content, err := v.readChosen()
	if err != nil {
		return err
	}
	if content.Collection == "" {
		content.Collection = listedCollection(content.Back)
	}
	collection, problem, err := v.readChosenCollection(content.Collection)
	if err != nil {
		return err
	}
	if problem != nil {
		content.Problem = problem
		return v.renderChosen(content)
	}
	content.RemoveFrom = &collection
	if content.Named, err = v.nameVideos(content.IDs); err != nil {
		return err
	}
	return v.renderPage(http.StatusOK, "chosen", "videos", "Remove "+plural(len(content.IDs), "video", "videos"), content)
}

// readChosenCollection reads the collection with the given id. If the id is not the id of a collection of the organisation, it returns a problem to
// show beside the list of collections.
func (v *visit) readChosenCollection(id string) (client.Collection, *Problem, error) {
	parsed, err := uuid.Parse(id)
	if err != nil {
		return client.Collection{}, &Problem{Status: http.StatusBadRequest, Title: "No collection", Detail: "Choose a collection."}, nil
	}
	collection, _, err := v.getCollection("/collections/" + parsed.String())
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusNotFound {
		return client.Collection{}, problem, nil
	}
	return collection, nil, err
}

// removeChosenVideos removes the chosen videos from a collection, and shows which of them are still in it and why.
func (v *visit) removeChosenVideos(content chosenPage) error {
	collection, problem, err := v.readChosenCollection(content.Collection)
	if err != nil {
		return err
	}
	if problem != nil {
		content.Problem = problem
		return v.renderChosen(content)
	}
	changes, err := v.removeVideos(collection, content.IDs)
	if err != nil {
		return err
	}
	texts := changeTexts{"Removed from " + collection.Name, "They stay tracked.", "Not in " + collection.Name + " before", "Still in " + collection.Name}
	if content.Results, err = v.describeChanges(changes, texts); err != nil {
		return err
	}
	if removed := idsOf(changes, changeDone); len(removed) > 0 {
		content.Next = nextChange{Action: "collect", Text: "Add " + plural(len(removed), "video", "videos") + " again", IDs: removed, Collection: collection.ID.String(),
			Note: "This does not bring the earlier numbers back: a video that is added again counts from today, and its gain starts anew."}
	}
	return v.renderResults(content)
}

// removeVideos removes videos from a collection and returns one change for each video. The change of a video that is still in the collection is
// changeFailed, with the reason. The change of a video that was not in it before is changeNotNeeded.
func (v *visit) removeVideos(collection client.Collection, ids []string) ([]videoChange, error) {
	changes := make([]videoChange, len(ids))
	for n, id := range ids {
		changes[n] = videoChange{ID: id}
		video, err := v.readVideo(id)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(video.LabelIds, collection.ID) {
			changes[n].Kind = changeNotNeeded
		}
	}
	if _, err := v.sendJSON(http.MethodDelete, "/collections/"+collection.ID.String()+"/videos", map[string][]string{"video_ids": ids}, nil); err != nil {
		return nil, err
	}
	for n, id := range ids {
		if changes[n].Kind == changeNotNeeded {
			continue
		}
		video, err := v.readVideo(id)
		if _, refused := errors.AsType[*Problem](err); refused { // the videos were removed already, so this page must not end with the error
			changes[n].Kind, changes[n].Reason = changeFailed, "Look at the list of the collection to see whether it is still in it. It may be in it through its account or a hashtag."
			continue
		}
		if err != nil {
			return nil, err
		}
		if !slices.Contains(video.LabelIds, collection.ID) {
			continue
		}
		changes[n].Kind = changeFailed
		if changes[n].Reason, err = v.explainMembership(collection, video); err != nil {
			return nil, err
		}
	}
	return changes, nil
}

// explainMembership says why a video that was not added to a collection itself is in it: through its account, or through a hashtag.
func (v *visit) explainMembership(collection client.Collection, video client.Video) (string, error) {
	if video.LinkedAccountID != nil {
		var account client.Account
		if err := v.getFromAPI("/accounts/"+video.LinkedAccountID.String(), nil, &account); err != nil {
			return "", err
		}
		if slices.Contains(account.LabelIds, collection.ID) {
			return "Its account is in the collection, with all its videos. Remove the account on the page of the collection, below its accounts.", nil
		}
	}
	return "Its caption has a hashtag of the collection. Change the hashtags on the page of the collection.", nil
}

// removeAccount removes an account from a collection. path is the path of the collection in the API.
func (v *visit) removeAccount(path string) error {
	var removed client.RemovedAccounts
	account, err := uuid.Parse(v.r.PostFormValue("account"))
	if err != nil {
		return &Problem{Status: http.StatusBadRequest, Title: "No account", Detail: "Choose an account."}
	}
	_, err = v.sendJSON(http.MethodDelete, path+"/accounts", map[string][]string{"account_ids": {account.String()}}, &removed)
	if err == nil && removed.AccountsRemoved == 0 {
		return &Problem{Status: http.StatusNotFound, Title: "Not in the collection", Detail: "The account is not in the collection. Nothing was changed."}
	}
	return err
}
