package web

import (
	"errors"
	"net/http"

	"github.com/reeltally/reeltally/store"
)

// setupPage is the data for the template of the page that creates the first organisation.
type setupPage struct {
	Name    string // name of the organisation in the form
	Problem *Problem
	Done    *store.Setup // the organisation, token and session that were created; nil before the visitor sends the form
	// Address is the public URL of the server, for the commands that call the API.
	Address string
	// HasNoSource is true if no collector is running, or the running collectors have no source. Then a tracked video gets no numbers.
	HasNoSource bool
}

// showSetup shows the form that creates the first organisation.
func showSetup(v *visit) error {
	if err := v.Backend.CheckSetupLink(v.r.Context(), v.r.PathValue("link")); err != nil {
		return err
	}
	return v.renderPage(http.StatusOK, "setup", "", "Set up ReelTally", setupPage{})
}

// setUp creates the organisation that is named in the form, signs the visitor in, and shows the organisation's first token once.
func setUp(v *visit) error {
	content := setupPage{Name: v.r.PostFormValue("name")}
	done, err := v.Backend.SetUp(v.r.Context(), v.r.PathValue("link"), content.Name)
	if problem, ok := errors.AsType[*Problem](err); ok && problem.Status == http.StatusBadRequest {
		content.Problem = problem
		return v.renderPage(problem.Status, "setup", "", "Set up ReelTally", content)
	}
	if err != nil {
		return err
	}
	content.Done, content.Address = &done, v.AppURL
	if content.HasNoSource, err = v.Backend.HasNoSource(v.r.Context()); err != nil {
		// The organisation exists now, and the page is the only one that shows its token. So the page must not fail.
		v.Logger.WarnContext(v.r.Context(), "the sources could not be read", "error", err)
	}
	v.setCookie(done.Session, int(store.SessionLife.Seconds()))
	return v.renderPage(http.StatusOK, "setup", "", "Set up ReelTally", content)
}
