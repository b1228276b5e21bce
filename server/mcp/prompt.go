package mcp

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
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
	days := "START is six days before END, and END is yesterday in UTC. BEFORE is the day before START."
	past := false // whether the week ended before yesterday
	if text := r.Params.Arguments["end_date"]; text != "" {
		end, err := time.Parse(time.DateOnly, text)
		if err != nil {
			return nil, invalidArgument("end_date must be a day such as 2026-02-22, but is %.40q", text)
		}
		day := func(offset int) string { return end.AddDate(0, 0, offset).Format(time.DateOnly) }
		days = fmt.Sprintf("START is %s and END is %s. BEFORE is %s, the day before START.", day(-6), day(0), day(-7))
		past = time.Since(end) > 48*time.Hour
	}
	subject, steps := "", organisationSteps(past)
	if name := r.Params.Arguments["collection"]; name != "" {
		if len([]rune(name)) > maxCollectionRunes {
			return nil, invalidArgument("the argument 'collection' has more than %d characters", maxCollectionRunes)
		}
		subject, steps = fmt.Sprintf(" of the collection %q", name), collectionSteps(name)
	}
	steps = append(steps, "For a video whose latest_views is null, call get_video, and give the reason: fetch_status and fetch_detail.")
	lines := []string{"Write a report about the videos" + subject + " in the week from START to END. " + days}
	for i, step := range steps {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, step))
	}
	lines = append(lines,
		"If start_date is refused because it is too old, send the oldest day that the error names, and say that the report begins later.",
		"Report the sums and their changes, the videos that gained most, the best new videos, and the missing numbers with their reasons. "+
			"Link each video. Write \"unknown\" for null, never 0. Do not estimate a number. "+untrustedRule)
	return &sdk.GetPromptResult{Description: weeklyReport.Description, Messages: []*sdk.PromptMessage{
		{Role: "user", Content: &sdk.TextContent{Text: strings.Join(lines, "\n")}}}}, nil
}

// collectionSteps returns the steps of a report about the collection with this name or id. The statistics of a collection have the gains of
// all its videos in the week.
func collectionSteps(nameOrID string) []string {
	find := fmt.Sprintf("Call list_collections with fields=[\"id\",\"name\"] and limit=1000, and read all pages. COLLECTION is the id of the collection with the name %q. "+
		"If no collection or more than one has this name, ask for the id and stop.", nameOrID)
	if id, err := uuid.Parse(nameOrID); err == nil && len(nameOrID) == len(id.String()) {
		find = fmt.Sprintf("COLLECTION is %s.", id)
	}
	return []string{
		find,
		"Call get_collection_statistics with collection_id=COLLECTION, start_date=START and end_date=END. It has the sums at the end of END. " +
			"views_gained is what the videos gained in the week, and best has the videos that gained most.",
		"Call get_collection_history with collection_id=COLLECTION, start_date=BEFORE and end_date=END. Compare the sums of END with those of BEFORE. " +
			"If the point of BEFORE is missing, the collection had no video on that day. Sums also rise because videos were added: see videos_added and views_from_added.",
		newVideosStep("collections=[COLLECTION], "),
	}
}

// organisationSteps returns the steps of a report about all videos of the organisation. No operation has the gains of all these videos in a
// given week, so the model computes the gains of a few videos from their histories. past is true if the week ended before yesterday:
// the videos with the largest views_gained_7d are then not those of the week.
func organisationSteps(past bool) []string {
	candidates := "Call list_videos with order_by=views_gained_7d, limit=10 and fields=[\"ad_id\",\"username\",\"title\",\"ad_link\",\"latest_views\",\"views_gained_7d\"]. " +
		"views_gained_7d is the gain in the 7 days before the last fetch of the video, which are not exactly the week."
	if past {
		candidates = "Call list_videos with uploaded_at_end=END, order_by=latest_views, limit=10 and fields=[\"ad_id\",\"username\",\"title\",\"ad_link\",\"latest_views\"]."
	}
	return []string{
		"Call get_organisation_history with start_date seven days before START, and end_date=END. Skip points whose views are null. The newest point has the sums at the end of END. " +
			"The newest point before START has the sums at the start of the week. If it is missing, they are unknown.",
		newVideosStep(""),
		candidates,
		"For each video of the steps 2 and 3, call get_video_history with start_date=BEFORE and end_date=END. Its gain is the views of the newest point minus the views of the point of BEFORE. " +
			"If the video has no point of BEFORE or no later point, its gain is unknown. But a video that was uploaded in the week began with 0 views. " +
			"Report the 5 videos with the largest gains. No tool has the gains of all videos, so say that other videos can have gained more.",
	}
}

// newVideosStep returns the step that reads the best videos uploaded in the week. filter contains further arguments of list_videos, or is empty.
func newVideosStep(filter string) string {
	return "Call list_videos with " + filter + "uploaded_at_start=START, uploaded_at_end=END, order_by=latest_views and limit=10. " +
		"These are the best new videos. Their latest_views are the views of the last fetch, not of END."
}

// invalidArgument returns the error for an invalid argument of a prompt.
func invalidArgument(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}
