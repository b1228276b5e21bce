package main

import (
	"context"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

// accountsCommands are the commands for accounts. They call the API.
type accountsCommands struct {
	Track   accountsTrack   `cmd:"" help:"Track accounts by their links, and their videos."`
	List    accountsList    `cmd:"" help:"List accounts with their totals."`
	History accountsHistory `cmd:"" help:"Show the daily counts of an account as a chart."`
	Stop    accountsStop    `cmd:"" help:"Stop tracking accounts. Their histories stay."`
}

type accountsList struct {
	apiCommand
	Platform   client.Platform     `placeholder:"NAME" help:"Only accounts of this platform: tiktok, instagram, youtube or facebook."`
	Collection []string            `sep:"none" placeholder:"NAME|ID" help:"Only accounts of this collection. Repeat it for several collections."`
	OrderBy    client.AccountOrder `placeholder:"MEMBER" help:"Member to sort by, for example total_views or views_gained_7d."`
	Ascending  bool                `help:"Smallest or oldest first."`
	JSON       bool                `name:"json" help:"Print one JSON object an account, as the API returns it."`
}

// Run prints the accounts that match the flags as a table, or as one JSON object a line. It warns on standard error if the tier hides the counts.
func (c *accountsList) Run(ctx context.Context, p boot.Process) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	if err := checkCollections(ctx, api, c.Collection); err != nil {
		return err
	}
	options := client.ListAccountsOptions{Platform: c.Platform, Collections: c.Collection, OrderBy: c.OrderBy, OrderDirection: orderDirection(c.Ascending), Limit: pageSize(0)}
	columns := []column{{title: "PLATFORM"}, {title: "ACCOUNT", wide: true}, {title: "FOLLOWERS", right: true}, {title: "VIDEOS", right: true}, {title: "VIEWS", right: true}, {title: "GAINED 7D", right: true, extra: true},
		{title: "LIKES", right: true, extra: true}, {title: "ID", extra: true}}
	accounts := warnIfMasked(p.Stderr, api.AllAccounts(ctx, options), func(a client.Account) *bool { return a.MetricsMasked })
	return printEntries(p.Stdout, accounts, c.JSON, columns, func(a client.Account) []string {
		return []string{string(a.Platform), plainText(a.Username), formatCount(a.LatestFollowersCount), formatCount(a.TotalVideosTracked), formatCount(a.TotalViews), formatCount(a.ViewsGained7D),
			formatCount(a.TotalLikes), a.AccountID.String()}
	})
}
