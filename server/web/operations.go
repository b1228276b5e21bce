package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/link"
	"github.com/reeltally/reeltally/store/queue"
)

// maxListedTargets is the maximum number of targets (videos and accounts) that the page Operations lists.
const maxListedTargets = 100

// operationsPage is the data for the template of the page "Operations", which shows the state of the queue and of the sources.
type operationsPage struct {
	Status   collectingStatus
	Summary  collectingSummary
	Statuses []statusTotal
	Shown    string // the chosen fetch status: the page lists the videos and accounts with this status; "" if none is chosen
	Targets  []queue.TargetStatus
	Version  string // version of the server
	API      string // version of the API
}

// laneDescriptions describes each lane of the queue in words.
var laneDescriptions = map[string]string{"interactive": "new or refreshed", "premium": "tier premium", "basic": "tiers basic and limited", "free": "no subscription, or no longer tracked"}

// collectingStatus is the decoded JSON of /status on the address REELTALLY_METRICS_LISTEN. The
// document docs/operating.md describes it.
type collectingStatus struct {
	At         time.Time `json:"at"`
	Collectors int       `json:"collectors"`
	Queue      []struct {
		Platform  string           `json:"platform"`
		Kind      string           `json:"kind"`
		Lane      string           `json:"lane"`
		Targets   map[string]int64 `json:"targets"` // number of videos and accounts by state: active, gone, or parked (fetched once a day or once a week: failed too often, private, restricted, or no source can fetch it)
		Failing   int64            `json:"failing"`
		Due       int64            `json:"due"`
		OldestDue *float64         `json:"oldest_due_seconds"`
	} `json:"queue"`
	Freshness []struct {
		Platform     string   `json:"platform"`
		Kind         string   `json:"kind"`
		Targets      int64    `json:"targets"`
		NeverFetched int64    `json:"never_fetched"`
		P50          *float64 `json:"p50_seconds_at_most"`
		P95          *float64 `json:"p95_seconds_at_most"`
		P99          *float64 `json:"p99_seconds_at_most"`
	} `json:"freshness"`
	Platforms []struct {
		Platform string `json:"platform"`
		Targets  int64  `json:"targets"`
		Gone     int64  `json:"gone"`
		Parked   int64  `json:"parked"`
		Failing  int64  `json:"failing"`
		Overdue  int64  `json:"never_fetched"` // number of targets requested more than 36 hours ago and never fetched
		Stale    int64  `json:"stale"`
		Fresh    int64  `json:"fresh"`
		Backlog  string `json:"backlog"` // how many fetches are late and when they will have been made; "" if none is late
	} `json:"platforms"`
	Sources []struct {
		Source   string         `json:"source"`
		Pause    *sourcePause   `json:"pause"` // during the pause, the collectors send no requests to the source
		Budgets  []sourceBudget `json:"budgets"`
		HeldBack string         `json:"held_back"` // why and until when the collectors do not believe answers that videos or accounts do not exist; "" if they believe such answers
	} `json:"sources"`
	Statuses []struct {
		Status  string `json:"status"`
		Targets int64  `json:"targets"`
	} `json:"statuses"`
	Webhooks *struct {
		Enabled                  int64    `json:"enabled"`
		Organisations            int64    `json:"organisations"`
		Unreachable              int64    `json:"unreachable"`
		UnreachableOrganisations int64    `json:"unreachable_organisations"`
		Delay                    *float64 `json:"delay_seconds"`
	} `json:"webhooks"` // nil if it could not be read
	LastBackup *time.Time `json:"last_backup"` // nil if no backup is known
	Unknown    []struct {
		Part   string `json:"part"`
		Reason string `json:"reason"`
	} `json:"unknown"` // parts of the status that could not be read
	LastFetches []queue.LastFetches `json:"last_fetches"` // nil if the first read of the queue has not finished yet
}

// IsCountingLastFetches returns true if the last fetches have not been counted yet since the server started.
func (s collectingStatus) IsCountingLastFetches() bool { return s.LastFetches == nil }

// sourceBudget says how much of a source's budget is used.
type sourceBudget struct {
	Budget   string       `json:"budget"`
	Used     int64        `json:"used"`
	Limit    *int64       `json:"limit"`
	Left     *int64       `json:"left"`
	ResetsAt time.Time    `json:"resets_at"`
	Pause    *sourcePause `json:"pause"` // during the pause, the collectors send no requests that count towards the budget
}

// sourcePause is a pause of a source or of one of its budgets.
type sourcePause struct {
	Until  time.Time `json:"until"`
	Class  string    `json:"class"`
	Detail string    `json:"detail"`
	InARow int       `json:"in_a_row"` // number of pauses since the last successful call; 0 if a budget was used up
	Since  time.Time `json:"since"`    // when the first of these pauses began; zero if unknown
}

// IsFailing returns true if the pause began because calls failed, and it is known since when.
func (p sourcePause) IsFailing() bool { return p.InARow > 0 && !p.Since.IsZero() }

// unknownParts describes the parts of the status that can be unknown.
var unknownParts = map[string]string{"stopped": "The number of stopped videos and accounts", "webhooks": "The state of the webhooks", "last_backup": "The time of the last backup"}

// IsUnknown returns true if the part of the status could not be read.
func (s collectingStatus) IsUnknown(part string) bool {
	for _, u := range s.Unknown {
		if u.Part == part {
			return true
		}
	}
	return false
}

// UnknownParts returns a sentence about each part of the status that could not be read.
func (s collectingStatus) UnknownParts() []string {
	var sentences []string
	for _, u := range s.Unknown {
		sentences = append(sentences, fmt.Sprintf("%s could not be read: %s", cmp.Or(unknownParts[u.Part], u.Part), u.Reason))
	}
	return sentences
}

// statusTotal is a fetch status with the number of videos and accounts that have it, on all platforms together.
type statusTotal struct {
	Status  string
	Targets int64
}

// maySeeOperations returns true if the visitor may see the page Operations: the visitor's token may manage tokens, and it belongs to the
// operator's organisation.
func (v *visit) maySeeOperations() bool {
	return v.id.Organisation.Operator && v.id.Token.HasScope(store.ScopeAdmin)
}

// collectingSummary says in sentences whether collecting works.
type collectingSummary struct {
	Text     string   // how many videos and accounts have recent numbers, and why others have none
	Problems []string // what keeps numbers from arriving; empty if nothing does
}

// summary describes the state of collecting. Text is "" if nothing is in the queue. An operator must act if there are problems: fetches are late, a
// source fails, or at least a tenth of the videos and accounts fail or have old numbers.
func (p operationsPage) summary() collectingSummary {
	var s collectingSummary
	var targets, fresh, stale int64
	for _, platform := range p.Status.Platforms {
		targets, fresh, stale = targets+platform.Targets, fresh+platform.Fresh, stale+platform.Stale
		if platform.Backlog != "" {
			s.Problems = append(s.Problems, "Fetches of "+link.Platform(platform.Platform).Title()+" are late.")
		}
	}
	for _, source := range p.Status.Sources {
		if source.Pause != nil && source.Pause.IsFailing() || slices.ContainsFunc(source.Budgets, func(b sourceBudget) bool { return b.Pause != nil && b.Pause.IsFailing() }) {
			s.Problems = append(s.Problems, "The source "+source.Source+" fails.")
		}
		if source.HeldBack != "" {
			s.Problems = append(s.Problems, "Answers of the source "+source.Source+" are held back.")
		}
	}
	if targets == 0 {
		return s
	}
	counts := map[string]int64{}
	for _, status := range p.Statuses {
		counts[status.Status] = status.Targets
	}
	sentences := []string{formatCount(fresh) + " of " + plural(targets, "video or account has", "videos and accounts have") + " numbers of the last 36 hours."}
	var reasons []string
	for _, r := range []struct{ status, one, many string }{{"failing", "is failing", "are failing"}, {"private", "is private", "are private"}, {"restricted", "is restricted", "are restricted"},
		{"gone", "is gone from the platform", "are gone from the platform"}, {"unsupported", "has no source", "have no source"}, {"pending", "waits for numbers", "wait for numbers"}} {
		if n := counts[r.status]; n > 0 {
			reasons = append(reasons, plural(n, r.one, r.many))
		}
	}
	if len(reasons) > 0 {
		sentences = append(sentences, words.JoinWithAnd(reasons)+".")
	}
	s.Text = strings.Join(sentences, " ")
	if failing := counts["failing"]; 10*failing >= targets {
		s.Problems = append(s.Problems, "At least a tenth of the videos and accounts are failing.")
	}
	if 10*stale >= targets {
		s.Problems = append(s.Problems, plural(stale, "video or account has", "videos and accounts have")+" numbers older than 48 hours.")
	}
	return s
}

// showOperations shows the page Operations, which is about the fetches of all organisations. Visitors who may not see it get status 404, as
// for an unknown address.
func showOperations(v *visit) error {
	if !v.maySeeOperations() {
		return errNotFound
	}
	status, version, err := v.Backend.Operations(v.r)
	if err != nil {
		return err
	}
	content := operationsPage{Shown: v.r.URL.Query().Get("status"), Version: version.Program, API: version.API}
	if err := json.Unmarshal(status, &content.Status); err != nil {
		return err
	}
	for _, name := range statusNames {
		total := statusTotal{Status: name}
		for _, s := range content.Status.Statuses {
			if s.Status == name {
				total.Targets += s.Targets
			}
		}
		if total.Targets > 0 {
			content.Statuses = append(content.Statuses, total)
		}
	}
	content.Summary = content.summary()
	if content.Shown != "" {
		listed := slices.DeleteFunc(slices.Clone(statusNames), func(name string) bool { return name == "stopped" })
		if !slices.Contains(listed, content.Shown) {
			return &Problem{Status: http.StatusBadRequest, Title: "Unknown status", Detail: fmt.Sprintf("This page cannot list the fetch status %s. The fetch status must be %s.", strconv.Quote(content.Shown), words.JoinWithOr(listed))}
		}
		if content.Targets, err = v.Backend.TargetsWithStatus(v.r.Context(), store.FetchStatus(content.Shown), maxListedTargets); err != nil {
			return err
		}
	}
	return v.renderPage(http.StatusOK, "operations", "operations", "Operations", content)
}

// Version has the versions of the program and of the API.
type Version struct {
	Program string // version or revision of the program
	API     string // date of the OpenAPI contract
}
