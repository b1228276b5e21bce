package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// weeklyReport is the prompt that tells a model how to write a report about one week with the tools.
var weeklyReport = &sdk.Prompt{
	Name:        "weekly_report",
	Title:       "Weekly report",
	Description: "Write a report about the videos of one week, and say which numbers are missing and why.",
	Arguments: []*sdk.PromptArgument{
		{Name: "end_date", Title: "Last day", Description: "The last day of the week, such as 2026-02-22. The default is yesterday."},
		{Name: "collection", Title: "Collection", Description: "The name or id of a collection. The default is the whole organisation."},
	},
}

// maxCollectionRunes is the maximum number of characters in the argument "collection" of the prompt weeklyReport. It equals the maximum
// length of a collection's name in the API.
const maxCollectionRunes = 100

// writeWeeklyReport returns the text of the prompt weeklyReport. It fails if the argument end_date is not a day, or if the argument
// "collection" is too long.
func writeWeeklyReport(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
	days := "START is six days before END, and END is yesterday in UTC."
	if text := r.Params.Arguments["end_date"]; text != "" {
		end, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return nil, invalidArgument("end_date must be a day such as 2026-02-22, but is %.40q", text)
		}
		days = fmt.Sprintf("START is %s and END is %s.", end.AddDate(0, 0, -6).Format(time.DateOnly), end.Format(time.DateOnly))
	}
	filter := ""
	if name := r.Params.Arguments["collection"]; name != "" {
		if len([]rune(name)) > maxCollectionRunes {
			return nil, invalidArgument("the argument 'collection' has more than %d characters", maxCollectionRunes)
		}
		filter = fmt.Sprintf(" Send collections=[%q] in each call of list_videos.", name)
	}
	lines := []string{
		"Write a report about the week from START to END. " + days + filter,
		"1. Call get_organisation_history with start_date=START and end_date=END. Compare the sums of the last point with those of the first.",
		"2. Call list_videos with order_by=increase_7d, limit=5 and fields=[\"username\",\"title\",\"ad_link\",\"latest_views\",\"increase_7d\"]. These videos gained most in the last 7 days.",
		"3. Call list_videos with uploaded_at_start=START, uploaded_at_end=END, order_by=latest_views and limit=10. These are the best new videos.",
		"4. For a video whose latest_views is null, call get_video, and give the reason: fetch_status and fetch_detail.",
		"Report the sums and their changes, the videos that gained most, the best new videos, and the missing numbers with their reasons. " +
			"Link each video. Write \"unknown\" for null, never 0. Do not estimate a number. " + untrustedRule,
	}
	return &sdk.GetPromptResult{Description: weeklyReport.Description, Messages: []*sdk.PromptMessage{
		{Role: "user", Content: &sdk.TextContent{Text: strings.Join(lines, "\n")}}}}, nil
}

// invalidArgument returns the error for an invalid argument of a prompt.
func invalidArgument(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
