package fetch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/collector/fetch"
)

func TestCheckJSON_refusesInvalidText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "the answer is empty",
		" \r\n":                    "the answer is empty",
		"<!doctype html>":          "the answer is a page of HTML or XML, not JSON",
		`{"a":1`:                   "the answer is not JSON, or was cut off",
		`{"a":1}{}`:                "the answer is not JSON, or was cut off",
		strings.Repeat("[", 1<<20): "the answer is nested deeper than 64 levels",
	} {
		require.EqualError(t, fetch.CheckJSON([]byte(text)), want)
	}
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	require.NoError(t, fetch.CheckJSON(deep(64)))
	require.Error(t, fetch.CheckJSON(deep(65)))
	require.NoError(t, fetch.CheckJSON([]byte(`{"a":"`+strings.Repeat(`[{\"`, 100)+`"}`)), "brackets inside a JSON string must not count as nesting")
}

func TestItems_refusesListLongerThanMaxItems(t *testing.T) {
	t.Parallel()
	list := func(n int) []byte {
		return []byte("[" + strings.TrimSuffix(strings.Repeat(`{"a":[1]}, `, n), ", ") + "]")
	}
	var items fetch.Items
	require.NoError(t, json.Unmarshal(list(1100), &items))
	require.Len(t, items, 1100)
	require.JSONEq(t, `{"a":[1]}`, string(items[1099]))
	require.EqualError(t, json.Unmarshal(list(1101), &items), "the answer lists more than 1100 items")
	require.NoError(t, json.Unmarshal([]byte(`null`), &items))
	require.Empty(t, items)
	for _, raw := range []string{`{}`, `7`, `"[]"`, `true`} {
		require.EqualError(t, json.Unmarshal([]byte(raw), &items), "the items are not a list")
	}
}

func TestNumber_acceptsNumbersThatAreTooLargeForACount(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`1766782800000`, `"1766782800000"`} {
		var n fetch.Number
		require.NoError(t, json.Unmarshal([]byte(raw), &n))
		require.False(t, n.Invalid(), raw)
		require.Equal(t, new(int64(1766782800000)), n.Value(), raw)
	}
	for _, raw := range []string{`-1`, `1.5`, `"x"`, `[]`, `9223372036854775808`} {
		var n fetch.Number
		require.NoError(t, json.Unmarshal([]byte(raw), &n))
		require.True(t, n.Invalid(), raw)
		require.Nil(t, n.Value(), raw)
	}
}

func TestCount_acceptsNumbersAndStrings(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int64{
		`0`: 0, `"0"`: 0, `12`: 12, `"12"`: 12, `"007"`: 7,
		`999999999999`: 999999999999, `"1000000000000"`: fetch.MaxCount,
	} {
		var c fetch.Count
		require.NoError(t, json.Unmarshal([]byte(raw), &c))
		require.False(t, c.Invalid(), raw)
		require.NotNil(t, c.Value(), raw)
		require.Equal(t, want, *c.Value(), raw)
	}
	for _, raw := range []string{
		`-1`, `"-1"`, `1.5`, `1.0`, `1e3`, `"1e3"`, `"+1"`, `" 1"`, `"1,234"`, `"1.2M"`, `""`, `"x"`, `true`, `[]`, `[1]`, `{}`,
		`1000000000001`, `"9999999999999999"`, `9007199254740993`, `9223372036854775807`, `9223372036854775808`, `"9223372036854775808"`, `1` + strings.Repeat("0", 400), `"١٢"`,
	} {
		var c fetch.Count
		require.NoError(t, json.Unmarshal([]byte(raw), &c), raw)
		require.True(t, c.Invalid(), raw)
		require.Nil(t, c.Value(), raw)
	}
	t.Run("accepts an absent or null member as a missing count", func(t *testing.T) {
		t.Parallel()
		var s struct{ A, B fetch.Count }
		require.NoError(t, json.Unmarshal([]byte(`{"A":null}`), &s))
		require.Nil(t, s.A.Value())
		require.False(t, s.A.Invalid())
		require.Nil(t, s.B.Value())
		require.False(t, s.B.Invalid())
	})
	t.Run("uses the second value if a member occurs twice", func(t *testing.T) {
		t.Parallel()
		var s struct{ A fetch.Count }
		require.NoError(t, json.Unmarshal([]byte(`{"A":"5","A":"x"}`), &s))
		require.Nil(t, s.A.Value())
		require.True(t, s.A.Invalid())
	})
}

func TestID_acceptsStringsAndIntegers(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"dQw4w9WgXcQ"`: "dQw4w9WgXcQ", `7382991827364555321`: "7382991827364555321", `"7382991827364555321"`: "7382991827364555321",
		`73829918273645553217382991827364555321`: "73829918273645553217382991827364555321",
		`null`:                                   "", `1.5`: "", `-1`: "", `1e9`: "", `true`: "", `{}`: "", `[]`: "", `"a b"`: "", `"a\u0000"`: "", `"é"`: "",
		`"` + strings.Repeat("a", 129) + `"`: "",
	} {
		id := fetch.ID("before")
		require.NoError(t, json.Unmarshal([]byte(raw), &id))
		require.Equal(t, fetch.ID(want), id, raw)
	}
}

func TestCheckJSON_refusesObjectWithRepeatedMember(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"views":1,"views":2}`, `{"a":[{"views":1,"likes":{"views":2},"views":1}]}`, `{"views":1,"\u0076iews":2}`, `{"":1,"":2}`, `{"a\"b":1,"a\"b":2}`,
	} {
		require.EqualError(t, fetch.CheckJSON([]byte(text)), "an object in the answer has two members with the same name", text)
	}
	for _, text := range []string{
		`{"views":1,"Views":2}`, `[{"views":1},{"views":1}]`, `{"views":{"views":["views","views",{"views":1}]}}`, `{"a":"\"views\":1,","views":"views"}`, `"views"`, `[]`, `{}`,
	} {
		require.NoError(t, fetch.CheckJSON([]byte(text)), text)
	}
}
