// Package fetchstatus turns the outcomes of fetches into the fetch statuses of videos and accounts. It also returns the sentences that explain
// a fetch status to callers of the API.
//
// The sentences consist of fixed texts and the names of sources. They never contain the text of an answer or an error, because such a text
// could contain a credential. Start reading at [StatusChangeAfterRefusal].
package fetchstatus

import (
	"fmt"
	"strings"
	"time"

	"github.com/reeltally/reeltally/collector/schedule"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// StatusChangeAfterRefusal returns the change of a target's fetch status after an answer without
// numbers, such as a refusal. answeredBy is the name of the source.
func StatusChangeAfterRefusal(sources []source.Source, outcome ingest.Outcome, class source.Class, answeredBy string) *queue.FetchChange {
	t, change, title := outcome.Target, &queue.FetchChange{Attempted: true}, sourceTitle(answeredBy)
	if outcome.Attempts >= queue.FailingAfter {
		change.Status = queue.FetchFailing
	}
	switch class {
	case source.Private:
		change.Status, change.Reason = queue.FetchPrivate, fmt.Sprintf("%s says that the %s is private", title, t.Kind)
	case source.Restricted, source.AgeLimited:
		change.Status = queue.FetchRestricted
		change.Reason = fmt.Sprintf("%s says that the %s is shown only to viewers of certain ages or regions", title, t.Kind)
	case source.Unsupported:
		change.Status, change.Reason = queue.FetchUnsupported, unsupportedReason(sources, t)
	case source.Gone, source.Missing, source.OtherOwner:
		change.Reason = fmt.Sprintf("%s did not find the %s", title, t.Kind)
		if class == source.OtherOwner {
			change.Reason = "The handle of the account belongs to another account now"
		}
		if outcome.State == queue.StateGone {
			change.Status = queue.FetchGone
			change.Reason = fmt.Sprintf("%s (%d attempts in a row)", change.Reason, outcome.Refusals)
		} else {
			change.Reason += fmt.Sprintf("; it counts as gone after %d such answers in a row", schedule.AnswersUntilGone)
		}
	case source.Doubted:
		change.Reason = fmt.Sprintf("%s says of many videos or accounts at once that they do not exist, so its answers are held back", title)
	case source.Unconfirmed:
		change.Reason = fmt.Sprintf("%s did not find the video under the account names in its links; track a link with the right account name", title)
	default:
		change.Reason = failureReason(class, title, outcome.Attempts)
	}
	return change
}

// failureReason returns a sentence that says why the last attempts to fetch a target failed. The parameter
// title is the title of the source, as sourceTitle returns it.
func failureReason(class source.Class, title string, attempts int) string {
	last := "The last attempt failed"
	if attempts > 1 {
		last = fmt.Sprintf("The last %d attempts failed", attempts)
	}
	switch class {
	case source.AuthFailed:
		return fmt.Sprintf("%s, because %s did not accept the operator's credential", last, titleInMidSentence(title))
	case source.BadRequest:
		return fmt.Sprintf("%s, because %s rejected the request", last, titleInMidSentence(title))
	default:
	}
	return fmt.Sprintf("%s, because %s gave no usable answer", last, titleInMidSentence(title))
}

// unsupportedReason returns a sentence that says why no configured source can fetch a target. The
// sentence can also say what to track instead.
func unsupportedReason(sources []source.Source, t queue.Target) string {
	served, byHandle := 0, true
	var onlyAccounts []string // what OnlyAccounts returns for each source that can fetch only some accounts
	for _, s := range sources {
		if _, ok := s.Serves(t); !ok {
			continue
		}
		served, byHandle = served+1, byHandle && s.NeedsHandle(t)
		if only := s.OnlyAccounts(); only != "" {
			onlyAccounts = append(onlyAccounts, only)
		}
	}
	switch {
	case served == 0:
		return fmt.Sprintf("No configured source can fetch this %s", t.Kind)
	case byHandle && t.Handle == "":
		return "The link does not contain the account, which the configured sources need to find the video; track a link that contains the account, or track the account"
	case byHandle:
		return "The configured sources find a video only in the list of its account's newest posts, and it is not there"
	case len(onlyAccounts) == served:
		return fmt.Sprintf("The configured sources give numbers only of %s and their videos, and this %s is not one of these", strings.Join(onlyAccounts, ", "), t.Kind)
	}
	return fmt.Sprintf("No configured source returns metrics of this %s", t.Kind)
}

// shortestPause is the shortest pause that is stored in fetch statuses. A shorter pause is not
// worth one write for each waiting video and account. A pause after a refused credential is always stored, because such pauses stay short
// until the operator replaces the credential.
const shortestPause = 30 * time.Minute

// StatusChangeDuringPause returns the change of a target's fetch status while its source is paused.
// It returns nil if the change is already stored. It also returns nil if the rest of the pause is shorter than shortestPause and class is not
// AuthFailed.
func StatusChangeDuringPause(t queue.Target, sourceName string, pauseEnd time.Time, class source.Class, detail string, now time.Time) *queue.FetchChange {
	if pauseEnd.Sub(now) < shortestPause && class != source.AuthFailed || t.Detail == detail {
		return nil
	}
	title := sourceTitle(sourceName)
	reason := fmt.Sprintf("%s currently gets no requests, because requests to it failed", title)
	// The failure that caused the pause had this class.
	switch class {
	case source.QuotaSpent:
		reason = fmt.Sprintf("%s currently gets no requests, because its budget is spent", title)
	case source.RateLimited:
		reason = fmt.Sprintf("%s currently gets no requests, because it limits the number of requests", title)
	case source.AuthFailed:
		reason = fmt.Sprintf("%s currently gets no requests, because it does not accept the operator's credential", title)
	default:
	}
	return &queue.FetchChange{Status: queue.FetchDelayed, Reason: reason, NextAt: store.InstantOf(pauseEnd)}
}

// PrivateAccountReason returns a sentence that says why the videos of a private account are not listed. The source with the name sourceName
// has said that the account is private.
func PrivateAccountReason(sourceName string) string {
	return fmt.Sprintf("%s says that the account is private, so its videos are not listed", sourceTitle(sourceName))
}

// sourceTitle returns the title of a source for the beginning of a sentence. For a platform's
// source, the title is the platform's name, such as "YouTube".
func sourceTitle(sourceName string) string {
	if vendor, ok := strings.CutPrefix(sourceName, "vendor:"); ok {
		return "The vendor " + vendor
	}
	for _, p := range link.Platforms {
		if strings.HasPrefix(sourceName, string(p)) {
			return p.Title()
		}
	}
	return "The source " + sourceName
}

// titleInMidSentence returns a result of sourceTitle in the form that it has inside a sentence: "The" at its
// beginning becomes "the".
func titleInMidSentence(title string) string {
	if rest, ok := strings.CutPrefix(title, "The "); ok {
		return "the " + rest
	}
	return title
}
