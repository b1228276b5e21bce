package server

import (
	"context"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/api"
)

func TestCheckJSON_returnsThePointerAndCodeOfTheFault(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"a":1,"b":[{"c":"x"}]}`:           "",
		` {"a": "\ud83d\ude00 😀 \\u0000"} `: "",
		`"text"`:                            "",
		`{"a":1,"a":2}`:                     "/a duplicate_member",
		`{"a":{"b":[0,{"c":1,"c":1}]}}`:     "/a/b/1/c duplicate_member",
		`{"a":1,"\u0061":2}`:                "/a duplicate_member",
		`{"a/b":1,"a/b":2}`:                 "/a~1b duplicate_member",
		`{} {}`:                             " trailing_text",
		`{}x`:                               " trailing_text",
		"{}\x00":                            " trailing_text",
		`{"a":"\u0000"}`:                    "/a encoding",
		`{"\u0000":1}`:                      " encoding",
		`["\ud800"]`:                        "/0 encoding",
		`["\udc00\ud800"]`:                  "/0 encoding",
		`["\ud800\u0041"]`:                  "/0 encoding",
		"[\"\xff\"]":                        " encoding",
		`{"a":`:                             "/a syntax",
		``:                                  " syntax",
		`{a:1}`:                             " syntax",
		`[1,]`:                              "/1 syntax",
		`{"a":01}`:                          " syntax",
		`NaN`:                               " syntax",
		strings.Repeat("[", 65) + strings.Repeat("]", 65): strings.Repeat("/0", 64) + " ",
		strings.Repeat("[", 100_000):                      strings.Repeat("/0", 65) + " syntax",
	} {
		faults := scanBody(t, body)
		if want == "" || strings.HasSuffix(want, "/0 ") {
			require.Empty(t, faults, body)
			continue
		}
		require.Len(t, faults, 1, body)
		require.Equal(t, want, *faults[0].Pointer+" "+faults[0].Code, body)
	}
}

func TestCheckJSON_limitsTheNumberOfFaults(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		strings.Repeat(`{"a":`, 100_000), `{"` + strings.Repeat("a", 2<<20) + `":1}`, `["` + strings.Repeat(`\ud800`, 100_000) + `"]`,
		`{` + strings.Repeat(`"a":1,`, 300_000) + `"b":1}`, `[` + strings.Repeat(`"\u0000",`, 200_000) + `1]`,
	} {
		faults := scanBody(t, body)
		require.LessOrEqual(t, len(faults), maxFaults)
		for _, f := range faults {
			require.LessOrEqual(t, utf8.RuneCountInString(*f.Pointer), maxPlace)
		}
	}
}

// scanBody returns the faults that checkJSON finds in a body. The schema is empty, so it limits nothing.
func scanBody(t *testing.T, body string) []api.Fault {
	t.Helper()
	faults, err := checkJSON(t.Context(), []byte(body), &openapi3.Schema{})
	require.NoError(t, err)
	return faults
}

// listVideosOperation returns the operation GET /videos of the contract.
func listVideosOperation(tb testing.TB) *operation {
	tb.Helper()
	contract, err := embeddedContract()
	require.NoError(tb, err)
	return contract.byRoute["GET /videos"]
}

func TestCheckQuery_acceptsOnlyTrueAndFalseAsBooleans(t *testing.T) {
	t.Parallel()
	op := &operation{query: map[string]*openapi3.Parameter{"flag": {Name: "flag", Schema: openapi3.NewSchemaRef("", openapi3.NewBoolSchema())}}}
	for _, value := range []string{"true", "false", "True", "False"} { // Python writes True and False
		_, faults := checkQuery("flag="+value, op)
		require.Empty(t, faults, value)
	}
	for _, value := range []string{"1", "0", "t", "F", "yes"} {
		_, faults := checkQuery("flag="+value, op)
		require.Len(t, faults, 1, value)
		require.Equal(t, []string{"flag", "type", `flag must be true or false, not "` + value + `"`}, []string{*faults[0].Name, faults[0].Code, faults[0].Detail})
	}
}

// FuzzQuery calls checkQuery with random queries. If checkQuery finds no fault, it must return the
// same parameters as url.ParseQuery.
func FuzzQuery(f *testing.F) {
	op := listVideosOperation(f)
	for _, seed := range []string{"", "limit=1", "limit=1&limit=2", "a=1;b=2", "%zz", "q=a+b%20c", "&&", "=", "q", "q=%00", "q=%ff", "collections=a,b", "collections=a&collections=b,c", "q=%C3%A9&limit=5"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		values, faults := checkQuery(raw, op)
		for _, fault := range faults {
			if fault.Detail == "" || fault.Code == "" || fault.Name == nil || !utf8.ValidString(fault.Detail) || !utf8.ValidString(*fault.Name) {
				t.Fatalf("a fault must have a code, a name and a detail in valid UTF-8, but checkQuery returned %+v", fault)
			}
		}
		if len(faults) > 0 {
			return
		}
		want, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatalf("checkQuery must refuse %q, because net/url refuses it: %v", raw, err)
		}
		for name, all := range want { // if an array parameter occurs several times, checkQuery joins the values
			want[name] = []string{strings.Join(all, ",")}
		}
		require.Equal(t, want, values)
		for _, v := range values {
			require.Len(t, v, 1)
			require.Empty(t, describeInvalidText(v[0]))
		}
	})
}

// FuzzJSON calls checkJSON with random bodies. If checkJSON finds no fault, the body must be one
// valid JSON value, and its texts must not contain NUL.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1,"a":2}`, `{} {}`, `"\ud800"`, `"\u0000"`, `[1,2,{"x":[null,true]}]`, `{"a":{"b":{}}}`, "\xef\xbb\xbf{}", `1e999`, `"\/"`, `{"\u0000":x}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		faults := scanBody(t, string(body))
		if len(faults) > 0 {
			for _, fault := range faults {
				if fault.Pointer == nil || describeInvalidText(*fault.Pointer) != "" || !utf8.ValidString(fault.Detail) {
					t.Fatalf("a fault must have a valid pointer and a detail in valid UTF-8, but checkJSON returned %+v", fault)
				}
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("checkJSON must refuse a body that is not JSON: %q", body)
		}
		var value any
		dec := json.NewDecoder(strings.NewReader(string(body)))
		dec.UseNumber()
		require.NoError(t, dec.Decode(&value))
		requireNoNUL(t, value)
	})
}

// requireNoNUL requires that no text in v contains NUL. It checks strings, the names of members, and everything inside of objects and arrays.
func requireNoNUL(t *testing.T, v any) {
	t.Helper()
	switch v := v.(type) {
	case string:
		require.NotContains(t, v, "\x00")
	case []any:
		for _, e := range v {
			requireNoNUL(t, e)
		}
	case map[string]any:
		for name, e := range v {
			requireNoNUL(t, name)
			requireNoNUL(t, e)
		}
	}
}

// selfCancellingContext is a context that is cancelled after validCalls calls of its method Err. errCalls is the number of calls so far.
type selfCancellingContext struct {
	context.Context
	validCalls, errCalls int
}

func (h *selfCancellingContext) Err() error {
	h.errCalls++
	if h.errCalls > h.validCalls {
		return context.Canceled
	}
	return nil
}

func TestCheckJSON_stopsWhenTheContextIsCancelled(t *testing.T) {
	t.Parallel()
	ctx := &selfCancellingContext{Context: t.Context(), validCalls: 10}
	_, err := checkJSON(ctx, []byte("["+strings.Repeat("1,", 5_000)+"1]"), &openapi3.Schema{})
	require.ErrorIs(t, err, context.Canceled)
	require.LessOrEqual(t, ctx.errCalls, 12, "checkJSON must stop soon after the context is cancelled")
}

func TestCheckJSON_reportsTheExceededLimit(t *testing.T) {
	t.Parallel()
	most := uint64(500)
	list := openapi3.NewArraySchema().WithItems(openapi3.NewArraySchema())
	list.MaxItems = &most
	schema := openapi3.NewObjectSchema().WithProperty("links", list).WithProperty("free", openapi3.NewObjectSchema())
	many := strings.Repeat("1,", maxValues)
	type reportedFault struct{ pointer, code, detail string }
	tooManyValues := reportedFault{"", faultMaxValues, "the body must have at most 10000 values, including the values in arrays and objects"}
	for body, want := range map[string]reportedFault{
		`{"links":[` + many + `1]}`:                            {"/links", faultMaxItems, "links must have at most 500 entries; it has 9999 or more"},
		`{"links":[1,[` + many + `1]]}`:                        tooManyValues,
		`{"free":{"x":[` + many + `1]}}`:                       tooManyValues,
		`{"other":[` + many + `1]}`:                            tooManyValues,
		`{"links":[` + strings.Repeat("[1],", 4_998) + `[1]]}`: {},
		`{"` + strings.Repeat("é", 250) + `":1}`:               {},
		`{"` + strings.Repeat("é", 250) + `a":1}`:              {"/" + strings.Repeat("é", 250) + "a", faultMaxLength, "the name of a member must have at most 500 bytes, not 501"},
	} {
		faults, err := checkJSON(t.Context(), []byte(body), schema)
		require.NoError(t, err)
		if want == (reportedFault{}) {
			require.Empty(t, faults)
			continue
		}
		require.Len(t, faults, 1)
		require.Equal(t, want, reportedFault{*faults[0].Pointer, faults[0].Code, faults[0].Detail})
	}
}
