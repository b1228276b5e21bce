package server_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// forbiddenInNames are characters that names must not contain. Each key is the escape sequence of a character in JSON, and
// each value is the name of the character in the error.
var forbiddenInNames = map[string]string{
	`\n`: "U+000A", `\t`: "U+0009", `\u001b`: "U+001B", `\u007f`: "U+007F", `\u0085`: "U+0085", `\u2028`: "U+2028", `\u2029`: "U+2029",
	`\u202a`: "U+202A", `\u202e`: "U+202E", `\u2066`: "U+2066", `\u2069`: "U+2069",
}

func TestNames_mustNotContainForbiddenCharacters(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	collection := decode[client.CreatedCollection](c.send(http.MethodPost, "/collections", `{"name":"Launch"}`).requireStatus(http.StatusCreated)).ID.String()
	hook := c.createWebhook("https://hooks.example.com/a").ID.String()
	for _, test := range []struct{ method, path, before, after, pointer string }{
		{http.MethodPost, "/collections", `{"name":"a`, `b"}`, "/name"},
		{http.MethodPost, "/collections", `{"name":"x","hashtags":["y","a`, `b"]}`, "/hashtags/1"},
		{http.MethodPatch, "/collections/" + collection, `{"name":"a`, `b"}`, "/name"},
		{http.MethodPatch, "/collections/" + collection, `{"hashtags":["a`, `b"]}`, "/hashtags/0"},
		{http.MethodPatch, "/collections/" + collection, `{"display_settings":{"title":"a`, `b"}}`, "/display_settings/title"},
		{http.MethodPost, "/videos", `{"link":"` + videoURL(1) + `","collection_names":["a`, `b"]}`, "/collection_names/0"},
		{http.MethodPost, "/accounts", `{"link":"https://www.tiktok.com/@mira","collection_names":["a`, `b"]}`, "/collection_names/0"},
		{http.MethodPost, "/tokens", `{"scopes":["read"],"name":"a`, `b"}`, "/name"},
		{http.MethodPost, "/webhooks", `{"url":"https://hooks.example.com/b","description":"a`, `b"}`, "/description"},
		{http.MethodPost, "/webhooks", `{"url":"https://hooks.example.com/`, `b"}`, "/url"},
		{http.MethodPatch, "/webhooks/" + hook, `{"description":"a`, `b"}`, "/description"},
		{http.MethodPatch, "/webhooks/" + hook, `{"url":"https://hooks.example.com/`, `b"}`, "/url"},
	} {
		for escape, name := range forbiddenInNames {
			body := test.before + escape + test.after
			p := c.send(test.method, test.path, json.RawMessage(body)).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Len(t, p.Errors, 1, "%s: %s", body, p.Detail)
			require.Equal(t, test.pointer+" character", *p.Errors[0].Pointer+" "+p.Errors[0].Code, body)
			require.Contains(t, p.Detail, name, body)
			require.Contains(t, p.Detail, strings.ReplaceAll(test.pointer[1:], "/", "."), body)
		}
		p := c.send(test.method, test.path, json.RawMessage(test.before+`\u0000`+test.after)).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		require.Contains(t, p.Detail, "NUL")
	}
	require.Equal(t, "Launch", c.collectionNames(""))

	// A name can have letters of other languages, right-to-left marks and joined emoji. A description can have line breaks and tabs.
	c.send(http.MethodPatch, "/collections/"+collection, map[string]any{"name": "سلام \u200f👩\u200d👧", "display_settings": map[string]any{"description": "one\r\n\ttwo\nthree"}}).requireStatus(http.StatusNoContent)
	p := c.send(http.MethodPatch, "/collections/"+collection, map[string]any{"display_settings": map[string]any{"description": "one\u2028two"}}).
		requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	require.Equal(t, "/display_settings/description", *p.Errors[0].Pointer)
	require.Contains(t, p.Detail, "U+2028")
}

func TestNames_forbiddenCharactersDoNotHideOtherFaults(t *testing.T) {
	t.Parallel()
	c := newApp(t, newSQLite(t)).newCaller(t, store.TierPremium)
	p := c.send(http.MethodPost, "/collections", json.RawMessage(`{"name":"a\u0085","hashtags":["b\u2028"],"access":"open"}`)).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	var got []string
	for _, f := range p.Errors {
		got = append(got, *f.Pointer+" "+f.Code)
	}
	require.ElementsMatch(t, []string{"/name character", "/hashtags/0 character", "/access enum"}, got)
}

// TestNames_storedNamesStayReadable stores a collection name with forbidden characters, as an earlier version could do. The collection must stay
// readable and changeable.
func TestNames_storedNamesStayReadable(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		made, err := a.Org(c.org.ID).CreateCollection(t.Context(), store.NewCollection{Name: "a\u0085\u202eb", Access: store.AccessPrivate})
		require.NoError(t, err)
		path := "/collections/" + made.ID.String()
		c.send(http.MethodPatch, path, map[string]any{"access": "public"}).requireStatus(http.StatusNoContent)
		require.Equal(t, "a\u0085\u202eb", decode[client.Collection](c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK)).Name)
	})
}

func TestForms_refuseForbiddenCharactersInNames(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	link, err := a.CreateSetupLink(t.Context())
	require.NoError(t, err)
	page := (&visitor{app: a, t: t}).post("/setup/"+link, "name", "a\u0085b").requireStatus(http.StatusBadRequest)
	require.Contains(t, alerts(page.parseHTML()), "U+0085")

	c := a.newCaller(t, store.TierPremium)
	v := c.newSignedInVisitor(t)
	page = v.post("/collection", "name", "a\u202eb").requireStatus(http.StatusBadRequest)
	require.Contains(t, alerts(page.parseHTML()), "U+202E")
	require.Empty(t, c.collectionNames(""))
}
