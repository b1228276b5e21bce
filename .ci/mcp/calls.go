package main

// call is one call of an MCP tool.
type call struct {
	tool      string
	arguments []string          // each argument as a text NAME=VALUE; in VALUE, {video} stands for the value that an earlier call has saved under the name "video"
	saves     map[string]string // which values of the result are saved, as pairs of a name and a path in the result, such as "video" and "data.0.ad_id"
}

// calls has at least one call of every tool of the server. A call that saves a value stands before the calls that use the value.
var calls = []call{
	{tool: "authenticate"},
	{tool: "list_videos", arguments: []string{"limit=2", "has_metrics=true"}, saves: map[string]string{"video": "data.0.ad_id", "link": "data.0.ad_link"}},
	{tool: "get_video", arguments: []string{"ad_id={link}"}, saves: map[string]string{"account": "linked_account_id"}},
	{tool: "get_video_history", arguments: []string{"ad_id={video}"}},
	{tool: "get_account", arguments: []string{"account_id={account}"}, saves: map[string]string{"profile": "account_link"}},
	{tool: "track_account", arguments: []string{"link={profile}", "tracking_type=new_only"}},
	{tool: "list_accounts", arguments: []string{"limit=1"}},
	{tool: "list_account_videos", arguments: []string{"account_id={account}", "limit=1"}},
	{tool: "get_account_history", arguments: []string{"account_id={account}"}},
	{tool: "get_organisation_history"},
	{tool: "get_video_statistics"},
	{tool: "get_account_statistics"},
	{tool: "create_collection", arguments: []string{"name=Launch", `hashtags=["handmade"]`}, saves: map[string]string{"collection": "id"}},
	{tool: "list_collections", arguments: []string{"order_by=name"}},
	{tool: "get_collection", arguments: []string{"collection_id={collection}", "include_counts=true"}},
	{tool: "update_collection", arguments: []string{"collection_id={collection}", "name=Spring launch", "if_match=*"}},
	{tool: "add_collection_videos", arguments: []string{"collection_id={collection}", `video_ids=["{video}"]`}},
	{tool: "list_collection_videos", arguments: []string{"collection_id={collection}", "limit=5"}},
	{tool: "remove_collection_videos", arguments: []string{"collection_id={collection}", `video_ids=["{video}"]`}},
	{tool: "get_collection_history", arguments: []string{"collection_id={collection}", "include_children=true"}},
	{tool: "get_collection_statistics", arguments: []string{"collection_id={collection}"}},
	{tool: "create_report", arguments: []string{"collection_id={collection}"}, saves: map[string]string{"report": "id"}},
	{tool: "list_reports", arguments: []string{"collection_id={collection}"}},
	{tool: "get_report", arguments: []string{"report_id={report}"}},
	{tool: "add_collection_accounts", arguments: []string{"collection_id={collection}", `account_ids=["{account}"]`}},
	{tool: "list_collection_accounts", arguments: []string{"collection_id={collection}", "limit=5"}},
	{tool: "remove_collection_accounts", arguments: []string{"collection_id={collection}", `account_ids=["{account}"]`}},
	{tool: "delete_collection", arguments: []string{"collection_id={collection}"}},
	{tool: "refresh_video", arguments: []string{"link={video}"}},
	{tool: "refresh_account", arguments: []string{"link={account}"}},
	{tool: "track_video", arguments: []string{"link=https://www.youtube.com/shorts/aBcDeFgHiJk"}, saves: map[string]string{"tracked": "videoId"}},
	{tool: "stop_video", arguments: []string{"id={tracked}"}},
	{tool: "track_videos", arguments: []string{`links=["https://youtu.be/dQw4w9WgXcQ"]`}},
	{tool: "stop_videos", arguments: []string{`ids=["https://youtu.be/dQw4w9WgXcQ"]`}},
	{tool: "stop_video_by_id", arguments: []string{"ad_id={video}"}},
	{tool: "stop_account_by_id", arguments: []string{"account_id={account}"}},
	{tool: "track_accounts", arguments: []string{`links=["https://www.youtube.com/@harbour","https://www.youtube.com/@lighthouse"]`}},
	{tool: "list_events", arguments: []string{"limit=5"}},
	{tool: "stop_account", arguments: []string{"id=https://www.youtube.com/@harbour"}},
	{tool: "stop_accounts", arguments: []string{`ids=["https://www.youtube.com/@lighthouse"]`}},
}
