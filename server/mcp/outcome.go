package mcp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/reeltally/reeltally/internal/words"
)

// maxFailures is how many failed entries a text describes. If more entries of a bulk request fail, the text describes only the first ones.
const maxFailures = 3

// outcome describes what a call did. Its fields are members of the JSON response. If the response lacks a member, the field is empty.
type outcome struct {
	Message  string   // a sentence for people
	Error    string   // a sentence which says that the organisation already tracked the video or account
	Warnings []string // sentences about problems that did not make the request fail
	// Summary counts the entries of a bulk request. It is nil if the request was not a bulk request.
	Summary *struct{ Total, Succeeded, Failed, AlreadyExists int }
	Results []entryResult // the results of the entries of a bulk request
	// Overlaps are the earlier reports that count some views of a new report.
	Overlaps []struct {
		Number         int64
		CollectionName string `json:"collection_name"`
		Videos         int
	}
}

// entryResult is the result of one entry of a bulk request.
type entryResult struct {
	Success     bool
	URL         string // the link of the entry as it was sent; empty if an id was sent
	ID          string // the id of the entry; empty in the results of tracking requests
	Code, Error string // why the entry failed; empty if Success is true
}

// readOutcome reads the outcome of a call from the JSON body of its response. The outcome of a call that only reads data is empty.
func (t *tool) readOutcome(body []byte) (did outcome, err error) {
	if t.method == http.MethodGet {
		return did, nil
	}
	if err := json.Unmarshal(body, &did); err != nil {
		return did, fmt.Errorf("read the outcome in the JSON of the response: %w", err)
	}
	return did, nil
}

// failedCompletely returns true if the call was a bulk request of which every entry failed.
func (o outcome) failedCompletely() bool {
	return o.Summary != nil && o.Summary.Failed > 0 && o.Summary.Succeeded == 0
}

// text returns sentences that say what the call did. For a bulk request, they count the entries that succeeded and failed, and describe the
// first failures.
func (o outcome) text() string {
	var sentences []string
	if o.Summary != nil {
		sentences = append(sentences, o.counts())
		sentences = append(sentences, o.failures()...)
	}
	for _, text := range append([]string{o.Error, o.Message}, o.Warnings...) {
		if text != "" {
			sentences = append(sentences, oneLine(text))
		}
	}
	if len(o.Overlaps) > 0 {
		sentences = append(sentences, o.doublePayment())
	}
	if len(sentences) == 0 {
		return "done."
	}
	return strings.Join(sentences, " ")
}

// doublePayment returns sentences that name the earlier reports that count some of the same views as a new report. It names the newest three.
func (o outcome) doublePayment() string {
	var names []string
	for _, r := range o.Overlaps[:min(len(o.Overlaps), maxFailures)] {
		names = append(names, fmt.Sprintf("report %d of %s (%d of the videos)", r.Number, words.Quote(r.CollectionName), r.Videos))
	}
	if more := len(o.Overlaps) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return "done. It counts some views that earlier reports count, too: " + words.JoinWithAnd(names) + ". People who are paid by both are paid twice for these views."
}

// counts returns a sentence with the counts of a bulk request, such as "2 of 3 succeeded (1 already tracked), 1 failed.".
func (o outcome) counts() string {
	text := fmt.Sprintf("%d of %d succeeded", o.Summary.Succeeded, o.Summary.Total)
	if o.Summary.AlreadyExists > 0 {
		text += fmt.Sprintf(" (%d already tracked)", o.Summary.AlreadyExists)
	}
	return fmt.Sprintf("%s, %d failed.", text, o.Summary.Failed)
}

// failures returns a sentence for each of the first maxFailures failed entries of a bulk request. If more entries have failed, the last sentence
// contains the number of all failures.
func (o outcome) failures() []string {
	var sentences []string
	for _, r := range o.Results {
		if r.Success {
			continue
		}
		if len(sentences) == maxFailures {
			return append(sentences, fmt.Sprintf("The results contain all %d failures.", o.Summary.Failed))
		}
		sent := r.URL
		if sent == "" {
			sent = r.ID
		}
		sentences = append(sentences, fmt.Sprintf("%s failed with %s: %s", words.Quote(sent), r.Code, words.Truncate(oneLine(r.Error), maxReason)))
	}
	return sentences
}
