package vendor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
	"github.com/reeltally/reeltally/store/queue"
)

func TestPeriodWindow_hasIDAndEndTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 12, 31, 23, 59, 30, 0, time.FixedZone("", -3600)) // January 1 of the next year in UTC
	for period, want := range map[Period][2]string{
		"minute": {"2027-01-01T00:59Z", "2027-01-01T01:00:00Z"},
		"hour":   {"2027-01-01T00Z", "2027-01-01T01:00:00Z"},
		"day":    {"2027-01-01", "2027-01-02T00:00:00Z"},
		"month":  {"2027-01", "2027-02-01T00:00:00Z"},
	} {
		id, ends := period.window(now)
		require.Equal(t, want, [2]string{id, ends.Format(time.RFC3339)}, period)
	}
}

func TestField_decodesBooleans(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		field Field
		item  string
		want  *bool
	}{
		{Field{{Path: "a"}}, `{}`, nil},
		{Field{{Path: "a"}}, `{"a":null}`, nil},
		{Field{{Path: "a"}}, `{"a":true}`, new(true)},
		{Field{{Path: "a"}}, `{"a":0}`, new(false)},
		{Field{{Path: "a"}}, `{"a":"TRUE"}`, new(true)},
		{Field{{Path: "a"}}, `{"a":"perhaps"}`, nil},
		{Field{{Path: "a"}}, `{"a":{}}`, nil},
		{Field{{Path: "a"}, {Path: "b"}}, `{"a":false,"b":true}`, new(true)},
		{Field{{Path: "a"}, {Path: "b"}}, `{"a":true,"b":false}`, new(true)},
		{Field{{Path: "a"}, {Path: "b"}}, `{"a":{},"b":false}`, new(false)},
		{Field{{Path: "a", NotEmpty: true}}, `{"a":""}`, new(false)},
		{Field{{Path: "a", NotEmpty: true}}, `{"a":"x"}`, new(true)},
		{Field{{Path: "a", NotEmpty: true}}, `{"a":[]}`, new(false)},
		{Field{{Path: "a", NotEmpty: true}}, `{"a":[1]}`, new(true)},
		{Field{{Path: "a", NotEmpty: true}}, `{"a":7}`, nil},
		{Field{{Path: "a", OneOf: []string{"1", "2"}}}, `{"a":2}`, new(true)},
		{Field{{Path: "a", OneOf: []string{"1", "2"}}}, `{"a":"3"}`, new(false)},
		{Field{{Path: "a", OneOf: []string{"1", "2"}}}, `{"a":{}}`, nil},
		{Field{{Path: "a.#.k", OneOf: []string{"shop"}}}, `{"a":[{"k":"x"},{"k":"shop"}]}`, new(true)},
		{Field{{Path: "a.#.k", OneOf: []string{"shop"}}}, `{"a":[{"k":"x"},{}]}`, new(false)},
		{Field{{Path: "a.#.k", OneOf: []string{"shop"}}}, `{"a":[]}`, new(false)},
		{Field{{Path: "a.#.k", OneOf: []string{"shop"}}}, `{"a":null}`, nil},
		{Field{{Path: "a.#.k", OneOf: []string{"shop"}}}, `{}`, nil},
	} {
		require.Equal(t, tt.want, tt.field.readBoolean(gjson.Parse(tt.item)), "%+v of %s", tt.field, tt.item)
	}
}

func TestField_decodesJSONInsideStrings(t *testing.T) {
	t.Parallel()
	field := Field{{Path: "a", Inside: "0.id"}, {Path: "b"}}
	for item, want := range map[string]string{
		`{"a":"[{\"id\":1729384756012345678}]"}`:                      "1729384756012345678",
		`{"a":"[{\"id\":\"17\"}]"}`:                                   "17",
		`{"a":"[{\"id\":","b":"2"}`:                                   "2",
		`{"a":"` + strings.Repeat(`[`, 1000) + `","b":2}`:             "2",
		`{"a":"` + strings.Repeat(`[`, 1000) + `","b":"has a space"}`: "",
		`{"a":[{"id":"3"}]}`:                                          "",
	} {
		got := field.readID(gjson.Parse(item))
		if want == "" {
			require.Nil(t, got, item)
			continue
		}
		require.NotNil(t, got, item)
		require.Equal(t, want, *got, item)
	}
}

func TestField_decodesTimesAndLengths(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	at := time.Date(2024, 6, 21, 8, 53, 20, 0, time.UTC)
	times := Field{{Path: "s", Unit: "unix"}, {Path: "ms", Unit: "unix_ms"}, {Path: "iso", Unit: "rfc3339"}}
	for item, want := range map[string]*time.Time{
		`{"s":1718960000}`: &at, `{"s":"1718960000"}`: &at, `{"ms":1718960000000}`: &at, `{"ms":"1718960000000"}`: &at, `{"iso":"2024-06-21T10:53:20+0200"}`: &at,
		`{"s":"soon","iso":"2024-06-21T08:53:20.000Z"}`: &at,
		`{"s":0}`: nil, `{"s":-5}`: nil, `{"s":1.5}`: nil, `{"s":99999999999999999}`: nil, `{"iso":"yesterday"}`: nil, `{"s":[]}`: nil, `{}`: nil,
	} {
		require.Equal(t, want, times.readTime(gjson.Parse(item), now), item)
	}
	lengths := Field{{Path: "ms", Unit: "ms"}, {Path: "s"}}
	for item, want := range map[string]*float64{
		`{"ms":58250}`: new(58.25), `{"s":58}`: new(58.0), `{"s":"58.5"}`: new(58.5), `{"ms":"x","s":0}`: new(0.0),
		`{"s":-1}`: nil, `{"s":1e300}`: nil, `{"s":"NaN"}`: nil, `{"s":"Inf"}`: nil, `{"s":true}`: nil, `{}`: nil,
	} {
		require.Equal(t, want, lengths.readLength(gjson.Parse(item)), item)
	}
}

func TestCall_reportsHiddenCounts(t *testing.T) {
	t.Parallel()
	call := Call{
		HiddenWhenAbsent: []string{"comments"},
		Fields: map[string]Field{
			"views": {{Path: "v"}}, "likes": {{Path: "l", Withheld: []string{"-1"}}}, "comments": {{Path: "c"}}, "hidden_stats": {{Path: "h"}},
		},
	}
	for item, want := range map[string]*bool{
		`{"v":1,"l":2,"c":3}`: new(false), `{"v":1,"l":-1,"c":3}`: new(true), `{"v":1,"l":2}`: new(true), `{"v":1,"l":2,"c":3,"h":true}`: new(true),
		`{"l":2}`: new(false), `{"l":-1,"c":3}`: new(true), `{"v":1,"c":3,"h":false}`: new(false),
	} {
		r := call.videoResult(gjson.Parse(item), time.Now())
		require.Equal(t, source.OK, r.Class, item)
		require.Equal(t, want, r.Facts.HiddenStats, item)
	}
	for _, item := range []string{`{"h":true,"x":1}`, `{"l":-1}`, `{"l":-1,"h":true}`} {
		r := call.videoResult(gjson.Parse(item), time.Now())
		require.Equal(t, source.Temporary, r.Class, "the item %s has no counts, so it must have the class Temporary", item)
	}
}

func TestCall_usesAnItemWithoutIDOnlyIfItIsTheOnlyItem(t *testing.T) {
	t.Parallel()
	call := Call{Match: Match{ID: []string{"id"}, Sole: Paths{"post_id"}}, Fields: map[string]Field{"views": {{Path: "v"}}}}
	for answer, want := range map[string]source.Class{
		`[{"post_id":"7","v":1}]`: source.OK,
		`[{"v":1}]`:               source.Temporary,
		`[{"post_id":"7","v":1},{"post_id":"8","v":2}]`:    source.Temporary,
		`[{"post_id":"7","v":1},{"id":"other","v":2}]`:     source.Temporary,
		`[{"id":"other","post_id":"7","v":1}]`:             source.Temporary,
		`[{"id":"requested","v":1},{"post_id":"7","v":2}]`: source.OK,
	} {
		require.Equal(t, want, call.decodeResults(gjson.Parse(answer).Array(), []string{"requested"}, time.Now())["requested"].Class, answer)
	}
}

func TestConfig_usesTheFirstRuleThatMatchesOneOfItsPaths(t *testing.T) {
	t.Parallel()
	var c Config
	require.NoError(t, json.Unmarshal([]byte(`{"rules":[
		{"status":[200],"when":{"path":"success","one_of":["true"]},"class":"ok"},
		{"when":{"path":["message","error.text"],"contains":["is private"]},"class":"private"}]}`), &c))
	for body, want := range map[string]source.Class{
		`{"message":"It is private"}`:                        source.Private,
		`{"message":"no","error":{"text":"It is private"}}`:  source.Private,
		`{"message":null,"error":{"text":"IT IS PRIVATE"}}`:  source.Private,
		`{"message":"no","error":{"text":"It was private"}}`: source.OK,
		`{"success":true,"message":"It is private"}`:         source.OK,
	} {
		class, _ := c.classOf(200, gjson.Parse(body))
		require.Equal(t, string(want), class, body)
	}
}

func TestFindItems_limitsNumberOfItems(t *testing.T) {
	t.Parallel()
	items, err := findItems(gjson.Parse(`{"data":[`+strings.TrimSuffix(strings.Repeat("0,", 1100), ",")+`]}`), []string{"data"}, nil)
	require.NoError(t, err)
	require.Len(t, items, 1100)
	_, err = findItems(gjson.Parse(`{"data":[`+strings.TrimSuffix(strings.Repeat("0,", 2_000_000), ",")+`]}`), []string{"data"}, nil)
	require.EqualError(t, err, "the answer lists more than 1100 items")
}

func FuzzDecodeAnswers(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.json")
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(text)
	}
	requested := []string{"7382991827364555321", "7561000000000000001", "DHtWpRvMBiw", "kJ4_q-Zx9W0", "845589071817523"}
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	var configs []Config
	for _, name := range BuiltInVendorNames() {
		config, err := Load(name)
		require.NoError(f, err)
		configs = append(configs, config)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if fetch.CheckJSON(text) != nil {
			return
		}
		body := gjson.ParseBytes(text)
		for _, config := range configs {
			class, _ := config.classOf(200, body)
			require.NotEmpty(t, class)
			_ = config.errorText(body)
			for _, call := range config.Calls {
				if call.Kind == queue.KindAccount {
					fuzzAccount(t, call, body, now)
					continue
				}
				items, err := findItems(body, call.Items, call.Unwrap)
				if err != nil {
					continue
				}
				for _, ids := range [][]string{requested, requested[:1]} {
					results := call.decodeResults(items, ids, now)
					require.Len(t, results, len(ids))
					for _, id := range ids {
						require.Equal(t, results[id].Class == source.OK, results[id].Facts != nil)
						if facts := results[id].Facts; facts != nil {
							checkFacts(t, *facts, now)
						}
					}
				}
			}
		}
	})
}

// checkFacts requires that the data of a video are plausible, even if the answer was malformed.
func checkFacts(t *testing.T, f source.Facts, now time.Time) {
	hasCounts := false
	for _, count := range []*int64{f.Views, f.Likes, f.Comments, f.Shares, f.Bookmarks} {
		require.True(t, count == nil || *count >= 0)
		hasCounts = hasCounts || count != nil
	}
	require.True(t, hasCounts)
	for _, text := range []*string{f.Title, f.Username, f.AccountID, f.AccountName, f.SongName, f.ShopProductID} {
		require.True(t, text == nil || !strings.ContainsRune(*text, 0))
	}
	require.True(t, f.SongLink == nil || strings.HasPrefix(*f.SongLink, "https://") || strings.HasPrefix(*f.SongLink, "http://"))
	require.True(t, f.UploadedAt == nil || f.UploadedAt.Year() >= 2004 && f.UploadedAt.Before(now.AddDate(0, 0, 3)))
	require.True(t, f.LengthSeconds == nil || *f.LengthSeconds >= 0 && *f.LengthSeconds <= 366*86400)
}

func fuzzAccount(t *testing.T, call Call, body gjson.Result, now time.Time) {
	t.Helper()
	target := queue.Target{Platform: call.Platform, Kind: call.Kind, ExternalID: "@mira.cooks", Handle: "mira.cooks"}
	if items, err := findItems(body, call.Items, call.Unwrap); err == nil {
		r := call.accountResult(items, target, placeholderValues(target))
		require.Equal(t, r.Class == source.OK, r.Account != nil)
		if r.Account != nil {
			require.True(t, r.Account.ID != nil || r.Account.Username != nil)
		}
	}
	if entries, err := call.List.decodeEntries(body, call.Platform, "", &source.AccountFacts{}, now); err == nil {
		for _, v := range entries {
			require.NotEmpty(t, v.ID)
			require.NotEmpty(t, v.Link)
		}
	}
	require.LessOrEqual(t, len(call.List.nextCursor(body)), maxCursor)
}

func TestMissingResult_dependsOnTheItemsAndTheDescription(t *testing.T) {
	t.Parallel()
	others := []gjson.Result{gjson.Parse(`{"id":"1"}`)}
	for _, tt := range []struct {
		missing source.Class
		items   []gjson.Result
		want    source.Class
	}{
		{"", nil, source.Temporary}, {"", others, source.Gone}, {source.Gone, nil, source.Gone}, {source.Temporary, others, source.Temporary},
	} {
		require.Equal(t, tt.want, Call{Missing: tt.missing}.missingResult(tt.items).Class)
	}
}
