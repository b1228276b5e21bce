package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/reeltally/reeltally/cmd/internal/collect"
	"github.com/reeltally/reeltally/collector"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
)

// probed makes a finding of what a source said of a video that nobody made.
func probed(p collector.Probe) finding {
	const takes = "answers, and takes the credential"
	check := "source " + p.Source
	found := fmt.Sprintf("%s: %s", p.Class, p.Detail)
	if !p.RetryAt.IsZero() {
		found += ", until " + instant(p.RetryAt)
	}
	switch p.Class {
	case source.OK, source.Gone, source.Missing, source.OtherOwner, source.Unconfirmed, source.Private, source.Restricted:
		return finding{check, healthy, takes, ""}
	case source.QuotaSpent, source.RateLimited:
		return finding{check, odd, found, "Nothing to do but wait, or buy more."}
	case source.Unsupported:
		switch {
		case !p.Answered:
			return finding{check, odd, found, "Its credential was not tried."}
		case p.OwnAccountsOnly:
			return finding{check, healthy, takes + " for what is its own", ""}
		}
		return finding{check, odd, "answers, but refuses a stranger's video: " + found,
			"The credential may lack a permission, so that no number comes in: docs/sources.md says which it needs. To read own pages of Facebook, set REELTALLY_FACEBOOK_PAGE_ID: then it is tried on them."}
	case source.AuthFailed:
		return finding{check, broken, found, "The credential is wrong, expired, or lacks the right to this interface: docs/sources.md says where it comes from."}
	case source.Temporary, source.BadRequest:
	}
	if p.Answered {
		return finding{check, odd, found, "Ask again in a while. If it stays so, the source has changed its answers: no number comes in from it."}
	}
	return finding{check, broken, found, "The source is down, or cannot be reached from here."}
}

// manyOf is the share of a platform's targets, one in so many, from which on missing numbers are more than single videos' affair.
const manyOf = 10

// examineNumbers says for which platforms many numbers are missing, and whether none come in at all.
func examineNumbers(ctx context.Context, st *store.Store, platforms []collect.Platform) []finding {
	var out []finding
	for _, p := range platforms {
		check := "numbers of " + p.Platform
		wanted := p.Targets - p.Gone
		var parts []string
		many := func(n, of int64, what string) bool {
			if n == 0 || n*manyOf < of {
				return false
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
			return true
		}
		refused := many(p.Parked, wanted, "are parked: given up but for a look once a week")
		refused = many(p.Failing, wanted, "failed at the last fetch") || refused
		many(p.NeverFetched, p.Targets, "were never fetched, a day and a half after they were asked for")
		many(p.Stale, wanted, "have numbers older than 48h")
		if len(parts) == 0 {
			out = append(out, finding{check, healthy, fmt.Sprintf("come in: %d of %d within 36h", p.Fresh, wanted), ""})
			continue
		}
		f := finding{check, odd, fmt.Sprintf("of %d, %s", p.Targets, strings.Join(parts, "; ")),
			"See the source's check above, and reeltally status: a collector, a source or its budget is missing. A small budget spaces out turns, down to once a week."}
		if p.Fresh == 0 {
			f.State, f.Found = broken, "none within 36h; "+f.Found
		}
		if refused {
			f.Advice = "See the source's check above and docs/sources.md: its credential may lack a permission, or no source takes such links. What is parked is asked for once a week, and at once by a refresh."
			why, err := st.WhyFailing(ctx, link.Platform(p.Platform))
			if err != nil {
				return append(out, finding{check, broken, err.Error(), "Look at the log of the database."})
			}
			if why != "" {
				f.Found += "; one of them: " + why
			}
		}
		out = append(out, f)
	}
	return out
}
