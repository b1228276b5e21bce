package source

import (
	"slices"
	"time"

	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// Names returns the name of each source, in the order of the sources.
func Names(sources []Source) []string {
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.Name()
	}
	return names
}

// FetchTimeout returns the time limit for fetching videos from a source. It is twice the timeout of a call, because some sources need a second
// call for a video.
func FetchTimeout(s Source) time.Duration { return 2 * s.Timeout() }

// Describe returns the name, the budgets and the FetchTimeout of each source, with the current window of each budget.
// Heartbeats store the result for other processes.
func Describe(sources []Source, now time.Time) []queue.Source {
	out := make([]queue.Source, len(sources))
	for i, s := range sources {
		out[i] = queue.Source{Name: s.Name(), Budgets: []queue.Budget{}, FetchSeconds: int64(FetchTimeout(s) / time.Second)}
		for _, b := range s.Budgets() {
			budget := queue.Budget{Name: b.Name, Limit: b.Limit}
			if b.Window != nil {
				budget.Window, budget.Ends = b.Window(now)
				budget.Ends = budget.Ends.UTC()
			}
			out[i].Budgets = append(out[i].Budgets, budget)
		}
	}
	return out
}

// FormsOfFetchableTargets returns the forms of all targets that at least one of the sources can fetch
// (see queue.Form).
func FormsOfFetchableTargets(sources []Source) []queue.Form {
	var forms []queue.Form
	for _, p := range link.Platforms {
		for _, k := range []queue.Kind{queue.KindVideo, queue.KindAccount} {
			for _, byHandle := range []bool{true, false} {
				if f := (queue.Form{Platform: p, Kind: k, ByHandle: byHandle}); slices.ContainsFunc(sources, func(s Source) bool { return canFetchTargetsOfForm(s, f) }) {
					forms = append(forms, f)
				}
			}
		}
	}
	return forms
}

// example is the id and the link of a video or account.
type example struct{ id, link string }

// examples has a valid id and link of a sample video and of a sample account for each platform. The
// videos and accounts need not exist.
var examples = map[link.Platform]map[queue.Kind]example{
	link.TikTok: {
		queue.KindVideo:   {"7338812345678901234", "https://www.tiktok.com/@example/video/7338812345678901234"},
		queue.KindAccount: {"6748451240264420610", "https://www.tiktok.com/@example"},
	},
	link.Instagram: {
		queue.KindVideo:   {"C3xYz12AbCd", "https://www.instagram.com/reel/C3xYz12AbCd/"},
		queue.KindAccount: {"17841400000000000", "https://www.instagram.com/example/"},
	},
	link.YouTube: {
		queue.KindVideo:   {"dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ"},
		queue.KindAccount: {"UCuAXFkgsw1L7xaCfnd5JJOw", "https://www.youtube.com/channel/UCuAXFkgsw1L7xaCfnd5JJOw"},
	},
	link.Facebook: {
		queue.KindVideo:   {"1234567890123456", "https://www.facebook.com/reel/1234567890123456"},
		queue.KindAccount: {"100044000000000", "https://www.facebook.com/example"},
	},
}

// canFetchTargetsOfForm returns true if the source s can fetch targets of the form f. It asks s about an example target. The field Handle of this target
// is set only if f.ByHandle is true.
func canFetchTargetsOfForm(s Source, f queue.Form) bool {
	e := examples[f.Platform][f.Kind]
	t := queue.Target{Platform: f.Platform, Kind: f.Kind, ExternalID: e.id, Link: e.link}
	switch {
	case f.ByHandle:
		t.Handle = "example"
		if f.Kind == queue.KindAccount {
			t.ExternalID = "@example"
		}
	case f.Kind == queue.KindAccount:
		t.AccountID = t.ExternalID
	}
	_, ok := s.Serves(t)
	return ok && (f.ByHandle || f.Kind == queue.KindAccount || !s.NeedsHandle(t))
}
