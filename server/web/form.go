package web

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/reeltally/reeltally/gen/client"
)

// form contains the values of a form on a page, by the names of its fields.
type form struct {
	url.Values
	Refused *Problem // why the submitted form was refused; nil if the page does not show a refused form
}

// refusedForm returns the submitted form with the reason why it was refused, so that the page can show it again. labels has the label of the
// form for each member of the request to the API. In the reason, labels replace the names of members. If the visitor cannot solve the problem in
// the form, refusedForm returns err unchanged.
func (v *visit) refusedForm(err error, labels map[string]string) (form, error) {
	problem, ok := errors.AsType[*Problem](err)
	if !ok || problem.Status >= http.StatusInternalServerError {
		return form{}, err
	}
	switch problem.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return form{}, err
	case http.StatusNotFound: // without faults, the item of the form itself does not exist
		if len(problem.Faults) == 0 {
			return form{}, err
		}
	}
	v.setRetryAfter(problem)
	v.keepInHistory()
	if len(problem.Faults) > 0 {
		problem.Detail = describeFaults(problem.Faults, labels)
	}
	return form{v.r.PostForm, problem}, nil
}

// describeFaults returns one sentence for each fault. A sentence that begins with the name of a member begins with the label of the member
// instead.
func describeFaults(faults []client.Fault, labels map[string]string) string {
	sentences := make([]string, len(faults))
	for n, f := range faults {
		member := strings.ReplaceAll(strings.TrimPrefix(textOrEmpty(f.Pointer), "/"), "/", ".")
		text := f.Detail
		if rest, ok := strings.CutPrefix(text, member+" "); ok && labels[member] != "" {
			text = `"` + labels[member] + `" ` + rest
		}
		sentences[n] = strings.TrimSuffix(text, ".") + "."
	}
	return strings.Join(sentences, " ")
}
