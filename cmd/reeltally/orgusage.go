package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/store"
)

type orgUsageCommand struct {
	databaseCommand
	JSON bool `name:"json" help:"Print the organisations as a JSON list of objects."`
}

// Help returns the text that --help shows below the summary of the command.
func (orgUsageCommand) Help() string {
	return "The organisation with the most targets comes first. A target is a video or account. A target that several organisations track is fetched once, but counted for each of them. " +
		"The column WAITING counts due targets that are new or refreshed. The command reads the whole queue, which takes about ten seconds for a million targets."
}

// orgUsage counts the targets of one organisation. Its JSON is an element of the list that the flag --json prints.
type orgUsage struct {
	ID      uuid.UUID        `json:"organisation_id"`
	Name    string           `json:"name"`
	Tier    store.Tier       `json:"tier"`
	Targets int64            `json:"targets"`
	Due     int64            `json:"due"`
	Waiting int64            `json:"waiting"` // number of due targets that are new or refreshed
	Sources map[string]int64 `json:"sources"` // number of targets by the source that is called next for them
}

// Run prints the organisations, those with the most targets first.
func (c *orgUsageCommand) Run(ctx context.Context, p boot.Process) error {
	return c.withStore(ctx, p, func(st *store.Store) error {
		usages, err := readOrgUsages(ctx, st)
		if err != nil {
			return err
		}
		if c.JSON {
			return writeJSON(p.Stdout, usages)
		}
		rows := [][]any{{"NAME", "ID", "TIER", "TARGETS", "DUE", "WAITING", "SOURCES"}}
		for _, u := range usages {
			var sources []string
			for name, n := range u.Sources {
				sources = append(sources, fmt.Sprintf("%s: %s", cmp.Or(name, "none"), formatCount(&n)))
			}
			slices.Sort(sources)
			rows = append(rows, []any{u.Name, u.ID, u.Tier, formatCount(&u.Targets), formatCount(&u.Due), formatCount(&u.Waiting), cmp.Or(strings.Join(sources, ", "), "-")})
		}
		return writeTable(p.Stdout, rows)
	})
}

// readOrgUsages returns the usage of all organisations, those with the most targets first.
func readOrgUsages(ctx context.Context, st *store.Store) ([]orgUsage, error) {
	orgs, err := st.Organisations(ctx)
	if err != nil {
		return nil, err
	}
	loads, err := st.Queue.OrganisationLoads(ctx)
	if err != nil {
		return nil, err
	}
	usages, indexes := make([]orgUsage, len(orgs)), map[uuid.UUID]int{}
	for i, o := range orgs {
		usages[i], indexes[o.ID] = orgUsage{ID: o.ID, Name: o.Name, Tier: o.Tier, Sources: map[string]int64{}}, i
	}
	for _, l := range loads {
		i, ok := indexes[l.OrganisationID]
		if !ok {
			continue // the organisation was created after the first read
		}
		u := &usages[i]
		u.Targets, u.Due, u.Waiting = u.Targets+l.Targets, u.Due+l.Due, u.Waiting+l.Waiting
		u.Sources[l.Source] += l.Targets
	}
	slices.SortStableFunc(usages, func(a, b orgUsage) int { return cmp.Compare(b.Targets, a.Targets) })
	return usages, nil
}
