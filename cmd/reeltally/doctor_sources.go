package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/reeltally/reeltally/cmd/internal/monitor"
	"github.com/reeltally/reeltally/collector/quota"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// findingFromProbe returns the finding about a source and its credential. The parameter p is the result of a test call to the source for a video that
// does not exist.
func findingFromProbe(p quota.ProbeAnswer) finding {
	const accepted = "the source is reachable and accepts the credential"
	check := "source " + p.Source
	found := fmt.Sprintf("%s: %s", p.Class, p.Detail)
	if p.Failed != nil && !p.Failed.RetryAt.IsZero() {
		found += ", until " + formatTime(p.Failed.RetryAt)
	}
	switch p.Class {
	case source.OK, source.Gone, source.Missing, source.OtherOwner, source.Unconfirmed, source.Private, source.Restricted, source.AgeLimited:
		return finding{check, stateOK, accepted, ""}
	case source.QuotaSpent, source.RateLimited:
		return finding{check, stateWarning, found, "Wait, or buy more units."}
	case source.Unsupported:
		switch {
		case p.Failed != nil:
			return finding{check, stateWarning, found, "The credential could not be checked."}
		case p.OnlyAccounts != "":
			return finding{check, stateOK, fmt.Sprintf("%s; it fetches only %s and their videos", accepted, p.OnlyAccounts), ""}
		}
		return finding{check, stateWarning, fmt.Sprintf("the source is reachable, but refuses videos of other accounts: %s", found),
			"The credential may lack a permission. Without this permission, no numbers are fetched: see docs/sources.md. If you track only your own Facebook pages, set REELTALLY_FACEBOOK_PAGE_ID, so that this command checks the credential with one of these pages."}
	case source.AuthFailed:
		return finding{check, stateBroken, found, "The credential is wrong, expired, or has no access to this API: see docs/sources.md."}
	case source.Temporary, source.BadRequest, source.Doubted:
	}
	if p.Failed == nil {
		return finding{check, stateWarning, found, "Run this command again later. If the finding stays, the source has changed its responses, and ReelTally cannot read them."}
	}
	return finding{check, stateBroken, found, "The source is down, or this machine cannot reach it."}
}

// problemDivisor is 10: checkNumbers reports a problem if at least one tenth of a platform's targets have this problem. Some failing targets
// are normal.
const problemDivisor = 10

// checkNumbers checks the numbers of each platform. It warns if many numbers are missing or old. If no target was fetched recently and the targets have
// such a problem, the check fails. If the targets are only due, it warns, because a new target is due immediately.
func checkNumbers(ctx context.Context, st *store.Store, platforms []monitor.Platform) []finding {
	var out []finding
	for _, p := range platforms {
		check := "numbers of " + p.Platform
		existing := p.Targets - p.Gone
		var problems []string
		addProblem := func(n, of int64, text string) bool {
			if n == 0 || n*problemDivisor < of {
				return false
			}
			problems = append(problems, formatCount(&n)+" "+text)
			return true
		}
		failing := addProblem(p.Parked, existing, "parked (fetched only once a day or once a week)")
		failing = addProblem(p.Failing, existing, "failed at the last fetch") || failing
		addProblem(p.Overdue, p.Targets, "requested more than 36h ago and never fetched")
		addProblem(p.Stale, existing, "with numbers older than 48h")
		noneFetched := p.Fresh == 0 && existing > 0
		broken := noneFetched && len(problems) > 0
		if noneFetched {
			addProblem(p.Due, existing, "due")
		}
		if len(problems) == 0 {
			out = append(out, finding{check, stateOK, fmt.Sprintf("%s of %s fetched within 36h", formatCount(&p.Fresh), numberWithNoun(existing, "target")), ""})
			continue
		}
		f := finding{check, stateWarning, fmt.Sprintf("of %s, %s", numberWithNoun(p.Targets, "target"), strings.Join(problems, "; ")),
			"See the check of the source in this report, and run `reeltally status`. A collector or a source may be missing, or a budget may be used up. With a small budget or a long interval in the settings, targets are fetched less often, down to once a week."}
		if noneFetched {
			f.Found = "no target fetched within 36h; " + f.Found
		}
		if broken {
			f.State = stateBroken
		}
		if failing {
			f.Advice = "See the check of the source in this report, and read docs/sources.md. The credential may lack a permission, or no source supports such links. Parked targets are fetched once a day or once a week, and immediately after a refresh."
			reason, err := st.Queue.LastError(ctx, link.Platform(p.Platform))
			if err != nil {
				return append(out, finding{check, stateBroken, err.Error(), "Check the log of the database."})
			}
			if reason != "" {
				f.Found += "; an example: " + reason
			}
		}
		out = append(out, f)
	}
	return out
}
