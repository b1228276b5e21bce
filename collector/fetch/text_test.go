package fetch_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
)

func TestRedact_replacesCredentials(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"API key s3cr+t/1 not valid":                     "API key REDACTED not valid",
		"GET /x?id=1&key=s3cr%2Bt%2F1":                   "GET /x?id=1&key=REDACTED",
		"GET /x?token=other&x=1":                         "GET /x?token=REDACTED&x=1",
		"access_token=abc api_key=def apikey=g APIKey=h": "access_token=REDACTED api_key=REDACTED apikey=REDACTED APIKey=REDACTED",
		"monkey=bananas":                                 "monkey=bananas",
		"line\r\nlevel=ERROR\x00\x1b[31m":                "line level=ERROR [31m",
		"bad \xff\xfe bytes":                             "bad bytes",
	} {
		require.Equal(t, want, fetch.Redact(text, "", "s3cr+t/1"))
	}
	require.Equal(t, 301, utf8.RuneCountInString(fetch.Redact(strings.Repeat("ä", 1000))))
}

func TestCleanText_removesInvalidCharacters(t *testing.T) {
	t.Parallel()
	p := func(s string) *string { return &s }
	require.Nil(t, fetch.CleanText(nil))
	require.Empty(t, *fetch.CleanText(p("")))
	require.Equal(t, "a\nb\tc<b>", *fetch.CleanText(p("a\nb\tc\x00\x1b<b>\xff")))
	require.Equal(t, 5000, utf8.RuneCountInString(*fetch.CleanText(p(strings.Repeat("é", 9000)))))
	require.Nil(t, fetch.CleanName(p(" ")))
	require.Equal(t, "Song", *fetch.CleanName(p("Song")))
}

func TestParseHandle_returnsLowerCaseHandleWithoutAtSign(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"@MrBeast": "mrbeast", "a.b_c-d·e": "a.b_c-d·e", "@ÉCLAIR": "éclair", " @x ": "x", "name~100012345": "name~100012345",
		"": "", "@": "", "a b": "", "a/b": "", "<script>": "", "a\x00": "", "\xff": "", strings.Repeat("a", 101): "",
	} {
		got := fetch.ParseHandle(&text)
		if want == "" {
			require.Nil(t, got, "%q", text)
			continue
		}
		require.NotNil(t, got, "%q", text)
		require.Equal(t, want, *got)
	}
	require.Nil(t, fetch.ParseHandle(nil))
}

func TestParseLink_acceptsWebLinksOnly(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"https://www.tiktok.com/music/x-123", "http://a.example/?q=1"} {
		got := fetch.ParseLink(&text)
		require.NotNil(t, got)
		require.Equal(t, text, *got)
	}
	for _, text := range []string{
		"", "javascript:alert(1)", "data:text/html,x", "JaVaScRiPt:alert(1)", "//host/x", "/x", "https://", "https://a:b@c/", "ftp://a/b",
		"https://a/\x00", "https://a/" + strings.Repeat("b", 2048),
	} {
		require.Nil(t, fetch.ParseLink(&text), "%q", text)
	}
	require.Nil(t, fetch.ParseLink(nil))
}

func TestCheckLength_returnsNilForImpossibleLength(t *testing.T) {
	t.Parallel()
	for _, seconds := range []float64{0, 58.5, 86400} {
		require.InDelta(t, seconds, *fetch.CheckLength(seconds), 0)
	}
	for _, seconds := range []float64{-1, math.NaN(), math.Inf(1), 1e12} {
		require.Nil(t, fetch.CheckLength(seconds))
	}
}

func TestCheckUploadTime_returnsNilForImpossibleTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)
	at := time.Date(2026, 11, 20, 23, 0, 0, 0, time.FixedZone("", -8*3600))
	require.Equal(t, time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC), *fetch.CheckUploadTime(at, now))
	require.Nil(t, fetch.CheckUploadTime(time.Unix(0, 0), now))
	require.Nil(t, fetch.CheckUploadTime(now.AddDate(1, 0, 0), now))
	require.Nil(t, fetch.CheckUploadTime(time.Unix(1<<60, 0), now))
}

func TestOptional_countsAValueOfTheWrongTypeAsMissing(t *testing.T) {
	t.Parallel()
	type members struct {
		Title  fetch.Optional[string] `json:"title"`
		Length fetch.OptionalLength   `json:"length"`
		Views  fetch.Count            `json:"views"`
	}
	for text, want := range map[string]struct {
		title  *string
		length *float64
	}{
		`{"title":"Soup","length":16.75,"views":3}`:     {new("Soup"), new(16.75)},
		`{"title":"","length":"16.75","views":3}`:       {new(""), new(16.75)},
		`{"title":null,"length":null,"views":3}`:        {nil, nil},
		`{"title":7,"length":"soup","views":3}`:         {nil, nil},
		`{"title":["Soup"],"length":[16.75],"views":3}`: {nil, nil},
		`{"title":{"x":1},"length":{},"views":3}`:       {nil, nil},
		`{"title":true,"length":"-1","views":3}`:        {nil, nil},
		`{"length":"NaN","views":3}`:                    {nil, nil},
		`{"length":1e300,"views":3}`:                    {nil, nil},
		`{"views":3}`:                                   {nil, nil},
	} {
		var m members
		require.NoError(t, json.Unmarshal([]byte(text), &m), text)
		require.Equal(t, want.title, m.Title.Value(), text)
		require.Equal(t, want.length, m.Length.Value(), text)
		require.Equal(t, new(int64(3)), m.Views.Value(), text)
	}
}
