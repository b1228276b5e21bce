package vendor_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/vendor"
)

func TestLoad_readsDescriptionsByVendorNameAndByPath(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"apify", "ensembledata", "sandbox", "scrapecreators"}, vendor.BuiltInVendorNames())
	for _, name := range vendor.BuiltInVendorNames() {
		config, err := vendor.Load(name)
		require.NoError(t, err, name)
		require.Equal(t, name, config.Name)
	}
	_, err := vendor.Load("nobody")
	require.EqualError(t, err, `vendor: unknown vendor "nobody"; use apify, ensembledata, sandbox, scrapecreators, or the path of a JSON file`)
	_, err = vendor.Load("./testdata/nothing.json")
	require.ErrorIs(t, err, os.ErrNotExist)

	file := filepath.Join(t.TempDir(), "mine.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"name":"mine"}`), 0o600))
	_, err = vendor.Load(file)
	require.ErrorContains(t, err, "vendor: "+file+": base_url must be an http or https address without credentials, query and fragment, not \"\"")
}

// minimal is the smallest valid vendor description (JSON that describes a vendor's API).
const minimal = `{
	"name": "mine", "base_url": "https://vendor.example", "auth": {"in": "bearer"},
	"calls": [{
		"platform": "tiktok", "kind": "video", "path": "/v", "query": [{"name": "id", "value": "{id}"}],
		"items": ["data"], "match": {"id": ["id"]}, "fields": {"views": "views"}
	}]
}`

func TestDecode_refusesInvalidDescriptions(t *testing.T) {
	t.Parallel()
	_, err := vendor.Decode([]byte(minimal))
	require.NoError(t, err)
	for name, tt := range map[string]struct{ old, new, want string }{
		"an unknown member":                                                {`"name": "mine"`, `"name": "mine", "nmae": 1`, `unknown field "nmae"`},
		"an unknown member of a call":                                      {`"kind": "video"`, `"kind": "video", "matches": 1`, `unknown field "matches"`},
		"a member of the wrong type":                                       {`"path": "/v"`, `"path": 7`, "calls.path"},
		"a second JSON value":                                              {"}]\n}", "}]\n} {}", "the text has more than one JSON value"},
		"a run without an id":                                              {`"name"`, `"run": {}, "name"`, "run.id is missing\nrun.status.path must begin with / and have no query, not \"\"\nrun.status must have {run} in its path, query or body"},
		"a run whose request names the target":                             {`"name"`, `"run": {"id": "a|b", "status": {"path": "/{id}"}}, "name"`, "run.id[0] must be a simple gjson path such as data.items, without modifiers, pipes and multipaths, not \"a|b\"\nrun.status.path has the unknown placeholder {id}; use {run}"},
		"a run with a call after which a missing video is gone":            {`"name"`, `"run": {}, "name"`, "calls[0].missing must be \"temporary\" if \"run\" is set"},
		"a name with a space and capital letters":                          {`"mine"`, `"My Vendor"`, `name must be up to 40 lower-case letters, digits and hyphens, not "My Vendor"`},
		"a base address with a query":                                      {`https://vendor.example`, `https://vendor.example?x=1`, `base_url must be an http or https address without credentials, query and fragment, not "https://vendor.example?x=1"`},
		"an unknown value of auth.in":                                      {`"bearer"`, `"cookie"`, `auth.in must be header, bearer or query, not "cookie"`},
		"`auth.in` has the value header, but `auth.name` is missing":       {`"bearer"`, `"header"`, "auth.name is missing"},
		"`auth.in` has the value bearer, but `auth.name` is set":           {`"bearer"`, `"bearer", "name": "x"`, "auth.name must be absent if auth.in is bearer"},
		"a malformed timeout":                                              {`"name"`, `"timeout": "1 minute", "name"`, `timeout must be a positive duration such as "60s", not "1 minute"`},
		"a timeout without unit":                                           {`"name"`, `"timeout": 60, "name"`, `timeout must be a string such as "60s", not 60`},
		"a concurrency above 100":                                          {`"name"`, `"concurrency": 101, "name"`, "concurrency must be 0 to 100, not 101"},
		"a limit without the member `per`":                                 {`"name"`, `"limits": [{"name": "a", "calls": 0}], "name"`, "limits[0].calls must be at least 1, not 0" + "\n" + `limits[0].per must be "minute", "hour", "day" or "month", not ""`},
		"two limits with the same name":                                    {`"name"`, `"limits": [{"name": "a", "calls": 1, "per": "day"}, {"name": "a", "calls": 1, "per": "day"}], "name"`, `limits[1].name must be a name that no other limit has, not "a"`},
		"an unknown value of quota_resets":                                 {`"name"`, `"quota_resets": "week", "name"`, `quota_resets must be "minute", "hour", "day" or "month", not "week"`},
		"a rule without the members `status` and `when`":                   {`"name"`, `"rules": [{"class": "gone"}], "name"`, `rules[0] must have "status" or "when"`},
		"a rule with an unknown class":                                     {`"name"`, `"rules": [{"status": [404], "class": "lost"}], "name"`, `rules[0].class must be ok, split, gone, private, restricted, age_limited, unsupported, temporary, rate_limited, quota_spent, auth_failed or bad_request, not "lost"`},
		"a rule with an impossible status":                                 {`"name"`, `"rules": [{"status": [4040], "class": "gone"}], "name"`, "rules[0].status must be 100 to 599, not 4040"},
		"a rule with the member `and`, but without the member `when`":      {`"name"`, `"rules": [{"status": [404], "and": {"path": "a"}, "class": "gone"}], "name"`, `rules[0] has the member "and", but the member "when" is missing`},
		"a rule whose member `and` has an empty path":                      {`"name"`, `"rules": [{"when": {"path": "a"}, "and": {"path": ""}, "class": "gone"}], "name"`, "rules[0].and.path must be a simple gjson path such as data.items"},
		"a rule whose member `when` has no path":                           {`"name"`, `"rules": [{"when": {"contains": ["x"]}, "class": "gone"}], "name"`, "rules[0].when.path is missing"},
		"a rule whose member `when` has a number as path":                  {`"name"`, `"rules": [{"when": {"path": 7}, "class": "gone"}], "name"`, "path must be a path or a list of paths, not 7"},
		"a rule whose member `when` has an empty path in a list":           {`"name"`, `"rules": [{"when": {"path": ["a", ""]}, "class": "gone"}], "name"`, "rules[0].when.path must be a simple gjson path such as data.items"},
		"a rule whose member `when` has an empty path":                     {`"name"`, `"rules": [{"when": {"path": ""}, "class": "gone"}], "name"`, "rules[0].when.path must be a simple gjson path such as data.items"},
		"an unknown member x":                                              {`"calls": [{`, `"calls": [], "notes": "", "message": [], "rules": [], "x": [{`, `unknown field "x"`},
		"an unknown platform":                                              {`"tiktok"`, `"vine"`, `calls[0].platform must be tiktok, instagram, youtube or facebook, not "vine"`},
		"an unknown kind":                                                  {`"video"`, `"song"`, `calls[0].kind must be video or account, not "song"`},
		"an unknown method":                                                {`"path": "/v"`, `"path": "/v", "method": "PUT"`, `calls[0].method must be GET or POST, not "PUT"`},
		"a path with a query":                                              {`"/v"`, `"/v?id={id}"`, `calls[0].path must begin with / and have no query, not "/v?id={id}"`},
		"a batch with a placeholder in the path":                           {`"path": "/v"`, `"path": "/v/{id}", "batch": {"size": 2, "join": ","}`, "calls[0].path must not have a placeholder if batch.size is larger than 1"},
		"an unknown placeholder":                                           {`{id}`, `{ids}`, "calls[0].query[0].value has the unknown placeholder {ids}; use {id}, {link} or {handle}"},
		"no placeholder":                                                   {`{id}`, `7`, "calls[0] must have {id}, {link} or {handle} in its path, query or body"},
		"a batch without the member `join`":                                {`"path": "/v"`, `"path": "/v", "batch": {"size": 2}`, "calls[0].batch.join is missing"},
		"a batch that is too large":                                        {`"path": "/v"`, `"path": "/v", "batch": {"size": 501, "join": ","}`, "calls[0].batch.size must be 1 to 500, not 501"},
		"a body with the method GET":                                       {`"path": "/v"`, `"path": "/v", "body": {}`, "calls[0].body needs the method POST"},
		"no items":                                                         {`["data"]`, `[]`, "calls[0].items must have at least one path"},
		"a path with a gjson modifier":                                     {`["data"]`, `["data|@flatten"]`, `calls[0].items[0] must be a simple gjson path such as data.items, without modifiers, pipes and multipaths, not "data|@flatten"`},
		"a path with a gjson multipath":                                    {`{"views": "views"}`, `{"views": "{a,b}"}`, "calls[0].fields.views.path must be a simple gjson path"},
		"a match without the members `id`, `link` and `sole`":              {`{"id": ["id"]}`, `{}`, `calls[0].match must have "id", "link" or "sole"`},
		"match.sole with an empty path":                                    {`{"id": ["id"]}`, `{"sole": [""]}`, "calls[0].match.sole[0] must be a simple gjson path such as data.items"},
		"match.sole with a batch size of 2":                                {`{"id": ["id"]}`, `{"sole": ["post_id"]}, "batch": {"size": 2, "join": ","}`, "calls[0].match.sole is only possible if batch.size is 1, not 2"},
		"a class that the member `missing` cannot have":                    {`"match"`, `"missing": "private", "match"`, `calls[0].missing must be "gone" or "temporary", not "private"`},
		"a state with a class that concerns the whole source":              {`"match"`, `"states": [{"path": "x", "class": "auth_failed"}], "match"`, `calls[0].states[0].class must be temporary, missing, gone, private, restricted, age_limited or unsupported, not "auth_failed"`},
		"`hidden_when_absent` names a count that is missing from `fields`": {`"match"`, `"hidden_when_absent": ["likes"], "match"`, `calls[0].hidden_when_absent contains "likes", but the member "fields" has no count with this name`},
		"no counts":                                          {`{"views": "views"}`, `{"title": "t"}`, "calls[0].fields must have at least one count"},
		"an unknown name in fields":                          {`{"views": "views"}`, `{"views": "v", "plays": "p"}`, "calls[0].fields.plays is not a known fact; the facts are account_id, account_name, bookmarks, comments,"},
		"a field that is a number":                           {`{"views": "views"}`, `{"views": 7}`, "a field must be a path, an object with a path, or a list of these"},
		"a field with an unknown member":                     {`{"views": "views"}`, `{"views": {"pathh": "v"}}`, `unknown field "pathh"`},
		"a field that is an empty list":                      {`{"views": "views"}`, `{"views": []}`, "calls[0].fields.views must have a path"},
		"a time field without the member `unit`":             {`{"views": "views"}`, `{"views": "v", "uploaded_at": "t"}`, `calls[0].fields.uploaded_at.unit must be "unix", "unix_ms" or "rfc3339", not ""`},
		"a count field with the member `unit`":               {`{"views": "views"}`, `{"views": {"path": "v", "unit": "k"}}`, `calls[0].fields.views.unit must be "", not "k"`},
		"a count field with the member `one_of`":             {`{"views": "views"}`, `{"views": {"path": "v", "one_of": ["1"]}}`, "calls[0].fields.views is not a boolean fact"},
		"a field with both members `one_of` and `not_empty`": {`{"views": "views"}`, `{"views": "v", "is_ad": {"path": "a", "one_of": ["1"], "not_empty": true}}`, "calls[0].fields.is_ad cannot have both one_of and not_empty"},
		"a text field with the member `withheld`":            {`{"views": "views"}`, `{"views": "v", "title": {"path": "t", "withheld": [""]}}`, `calls[0].fields.title is not a count, so it cannot have the members "withheld", "hidden_if", "minus" or "rounds_from"`},
		"a text field with the member `minus`":               {`{"views": "views"}`, `{"views": "v", "title": {"path": "t", "minus": "u"}}`, "calls[0].fields.title is not a count"},
		"a text field with the member `rounds_from`":         {`{"views": "views"}`, `{"views": "v", "title": {"path": "t", "rounds_from": 1000}}`, "calls[0].fields.title is not a count"},
		"a member `rounds_from` below 1000":                  {`{"views": "views"}`, `{"views": {"path": "v", "rounds_from": 999}}`, "calls[0].fields.views.rounds_from must be at least 1000, not 999"},
		"a member `minus` whose path has a gjson modifier":   {`{"views": "views"}`, `{"views": {"path": "v", "minus": "@this"}}`, "calls[0].fields.views.minus must be a simple gjson path"},
		"a member `hidden_if` whose path has a gjson pipe":   {`{"views": "views"}`, `{"views": {"path": "v", "hidden_if": {"path": "a|b"}}}`, "calls[0].fields.views.hidden_if.path must be a simple gjson path"},
		"a text field with the member `in_link`":             {`{"views": "views"}`, `{"views": "v", "title": {"path": "t", "in_link": true}}`, "calls[0].fields.title.in_link is for ids only"},
		"a member `format` without the placeholder {}":       {`{"views": "views"}`, `{"views": "v", "song_link": {"path": "t", "format": "https://x/"}}`, "calls[0].fields.song_link.format must contain {} and is for links only"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, minimal, tt.old)
			_, err := vendor.Decode([]byte(strings.Replace(minimal, tt.old, tt.new, 1)))
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestDecode_acceptsPathOrObjectOrListAsField(t *testing.T) {
	t.Parallel()
	var f vendor.Field
	require.NoError(t, json.Unmarshal([]byte(`"a.b"`), &f))
	require.Equal(t, vendor.Field{{Path: "a.b"}}, f)
	require.NoError(t, json.Unmarshal([]byte(`{"path":"a","unit":"ms"}`), &f))
	require.Equal(t, vendor.Field{{Path: "a", Unit: "ms"}}, f)
	require.NoError(t, json.Unmarshal([]byte(`["a",{"path":"b","inside":"0.id"}]`), &f))
	require.Equal(t, vendor.Field{{Path: "a"}, {Path: "b", Inside: "0.id"}}, f)
}
