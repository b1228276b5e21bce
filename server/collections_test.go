package server_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/server"
	"github.com/reeltally/reeltally/store"
)

// createCollection sends POST /collections with the given body and returns the id of the new collection.
func (c *caller) createCollection(body map[string]any) uuid.UUID {
	c.t.Helper()
	return decode[client.CreatedCollection](c.send(http.MethodPost, "/collections", body).requireStatus(http.StatusCreated)).ID
}

// createNamedCollection creates a collection and advances the clock by a second. If the id of a parent is passed, the collection has this
// parent. Otherwise it has no parent.
func (c *caller) createNamedCollection(name string, parent ...uuid.UUID) uuid.UUID {
	c.t.Helper()
	body := map[string]any{"name": name}
	if len(parent) > 0 {
		body["parent_id"] = parent[0]
	}
	id := c.createCollection(body)
	c.app.Clock.Advance(time.Second)
	return id
}

// readCollection returns a collection with the numbers of its videos and accounts.
func (c *caller) readCollection(id uuid.UUID) client.Collection {
	c.t.Helper()
	return decode[client.Collection](c.send(http.MethodGet, "/collections/"+id.String()+"?include_counts=true", nil).requireStatus(http.StatusOK))
}

// patchCollection sends PATCH /collections/{collection_id} and returns the response. The headers are given as pairs: a name and its value.
func (c *caller) patchCollection(id uuid.UUID, body any, headers ...string) response {
	c.t.Helper()
	return c.send(http.MethodPatch, "/collections/"+id.String(), body, headers...)
}

// Requirements in docs/coverage.md: 2.1-01, 2.1-03, 2.1-04, 2.1-05, 2.1-06, 2.1-07, 2.1-08, 2.1-09, 2.1-10, 2.1-11, 2.1-12, 2.1-13, 4.1-04, 4.1-09
// Requirements in docs/coverage.md: 4.1-10, 4.1-13, 4.1-14, 4.1-16
func TestCreateCollection_createsACollectionThatCanBeRead(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		created := c.send(http.MethodPost, "/collections", map[string]any{"name": "Launch"}).requireStatus(http.StatusCreated)
		id := decode[client.CreatedCollection](created).ID
		now := a.Clock.Now().Format("2006-01-02T15:04:05.000000+00:00")
		require.JSONEq(t, fmt.Sprintf(`{"id":%q,"name":"Launch","organisation_id":%q,"access":"private","created_at":%q}`, id, c.org.ID, now), string(created.body))

		token := decode[client.Authentication](c.send(http.MethodGet, "/authenticate", nil)).Token.ID
		want := fmt.Sprintf(`{"id":%q,"name":"Launch","organisation_id":%q,"parent_id":null,"access":"private","hash":null,"share_expires_at":null,"display_settings":null,
			"created_by":%q,"created_at":%q,"hashtags":[]}`, id, c.org.ID, token, now)
		require.JSONEq(t, want, string(c.send(http.MethodGet, "/collections/"+id.String(), nil).requireStatus(http.StatusOK).body))
		require.JSONEq(t, want, string(c.send(http.MethodGet, "/collections/"+id.String()+"?include_counts=false", nil).requireStatus(http.StatusOK).body))
		require.JSONEq(t, strings.TrimSuffix(want, "}")+`,"video_count":0,"account_count":0}`,
			string(c.send(http.MethodGet, "/collections/"+id.String()+"?include_counts=true", nil).requireStatus(http.StatusOK).body))
		require.JSONEq(t, `{"data":[`+want+`],"count":1}`, string(c.send(http.MethodGet, "/collections", nil).requireStatus(http.StatusOK).body))
	})
}

// Requirements in docs/coverage.md: 2.1-02, 2.1-04, 2.1-05, 2.1-06, 2.1-10, 4.1-11, 4.1-12, 4.1-13, 8-03
func TestCreateCollection_storesAllMembersOfTheBody(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		parent := c.createNamedCollection("Parent")
		got := c.readCollection(c.createCollection(map[string]any{"name": " Été & <b>1</b> ", "parent_id": parent, "access": "public", "hashtags": []string{"#Zoo", "SUMMER", "summer", "Größe"}}))
		require.Equal(t, " Été & <b>1</b> ", got.Name)
		require.Equal(t, parent, *got.ParentID)
		require.Equal(t, client.AccessPublic, got.Access)
		require.Regexp(t, `^[A-Za-z0-9]{14}$`, *got.Hash)
		require.Equal(t, []string{"größe", "summer", "zoo"}, got.Hashtags)

		t.Run("two collections with the same name", func(t *testing.T) {
			first := c.createCollection(map[string]any{"name": "Twice"})
			require.NotEqual(t, first, c.createCollection(map[string]any{"name": "Twice"}))
		})
		t.Run("parent_id null creates a root collection", func(t *testing.T) {
			require.Nil(t, c.readCollection(c.createCollection(map[string]any{"name": "Root", "parent_id": nil})).ParentID)
		})
		t.Run("a name of 100 characters, counted as characters and not as bytes", func(t *testing.T) {
			for _, letter := range []string{"a", "é", "👩"} {
				name := strings.Repeat(letter, 100)
				require.Equal(t, name, c.readCollection(c.createCollection(map[string]any{"name": name})).Name)
			}
		})
		t.Run("status 404 if the parent is unknown", func(t *testing.T) {
			p := c.send(http.MethodPost, "/collections", map[string]any{"name": "x", "parent_id": unknownID}).requireProblem(http.StatusNotFound, server.CodeNotFound)
			require.Equal(t, "/parent_id", *p.Errors[0].Pointer)
			require.Contains(t, p.Detail, unknownID)
		})
		t.Run("a new collection with access=protected and without a password", func(t *testing.T) {
			before := c.collections("").Count
			p := c.send(http.MethodPost, "/collections", map[string]any{"name": "x", "access": "protected"}).requireProblem(http.StatusConflict, server.CodePasswordRequired)
			require.Equal(t, "/access", *p.Errors[0].Pointer)
			require.Equal(t, before, c.collections("").Count)
		})
	})
}

// Requirements in docs/coverage.md: 2.1-02, 2.1-05, 4-03, 4.1-11, 4.1-12, 4.1-13, 4.1-15, 4.1-20, 4.1-21, 4.1-22, 4.1-23, 4.1-24, 8-03, 8-04
func TestCreateAndUpdateCollection_refuseInvalidBodies(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	id := c.createNamedCollection("Launch")
	invalidBodies := map[string]string{ // invalid bodies, each with the JSON pointer and the fault code that the response must contain
		`{"name":""}`:    "/name min_length",
		`{"name":"  "}`:  "/name pattern",
		`{"name":" \t"}`: "/name character",
		`{"name":null}`:  "/name nullable",
		`{"name":7}`:     "/name type",
		`{"name":"` + strings.Repeat("a", 101) + `"}`:                  "/name max_length",
		`{"name":"` + strings.Repeat("é", 101) + `"}`:                  "/name max_length",
		`{"name":"a\u0000b"}`:                                          "/name encoding",
		`{"name":"x","parent_id":"null"}`:                              "/parent_id format",
		`{"name":"x","parent_id":"{` + unknownID + `}"}`:               "/parent_id format",
		`{"name":"x","parent_id":1}`:                                   "/parent_id type",
		`{"name":"x","access":"secret"}`:                               "/access enum",
		`{"name":"x","access":"Public"}`:                               "/access enum",
		`{"name":"x","access":null}`:                                   "/access enum",
		`{"name":"x","hashtags":"a"}`:                                  "/hashtags type",
		`{"name":"x","hashtags":null}`:                                 "/hashtags nullable",
		`{"name":"x","hashtags":[""]}`:                                 "/hashtags/0 min_length",
		`{"name":"x","hashtags":["#"]}`:                                "/hashtags/0 pattern",
		`{"name":"x","hashtags":["a b"]}`:                              "/hashtags/0 pattern",
		`{"name":"x","hashtags":["a","#a#b"]}`:                         "/hashtags/1 pattern",
		`{"name":"x","hashtags":[1]}`:                                  "/hashtags/0 type",
		`{"name":"x","colour":"red"}`:                                  "/colour unknown_member",
		`{"name":"x","Name":"y"}`:                                      "/Name unknown_member",
		`{"name":"x","hash":"abc"}`:                                    "/hash unknown_member",
		`{"name":"x","organisation_id":"` + unknownID + `"}`:           "/organisation_id unknown_member",
		`{"name":"x","hashtags":["` + strings.Repeat("a", 101) + `"]}`: "/hashtags/0 max_length",
		`{"name":"x","hashtags":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 101), ",") + `]}`: "/hashtags max_items",
	}
	create := maps.Clone(invalidBodies)
	create[`{}`] = "/name required"
	create[`{"name":"x","password":"long enough"}`] = "/password unknown_member"
	change := maps.Clone(invalidBodies)
	maps.Copy(change, map[string]string{
		`{"password":"1234567"}`:                                           "/password min_length",
		`{"password":null}`:                                                "/password nullable",
		`{"password":"` + strings.Repeat("a", 1001) + `"}`:                 "/password max_length",
		`{"display_settings":[]}`:                                          "/display_settings type",
		`{"display_settings":"{}"}`:                                        "/display_settings type",
		`{"display_settings":{"theme":"pink"}}`:                            "/display_settings/theme enum",
		`{"display_settings":{"metrics":["love"]}}`:                        "/display_settings/metrics/0 enum",
		`{"display_settings":{"show_accounts":"yes"}}`:                     "/display_settings/show_accounts type",
		`{"display_settings":{"sort":{"by":"name"}}}`:                      "/display_settings/sort/by enum",
		`{"display_settings":{"x":1,"x":2}}`:                               "/display_settings/x duplicate_member",
		`{"display_settings":{"x":"` + strings.Repeat("a", 16<<10) + `"}}`: "/display_settings max_length",
	})
	for method, cases := range map[string]map[string]string{http.MethodPost: create, http.MethodPatch: change} {
		target := "/collections"
		if method == http.MethodPatch {
			target += "/" + id.String()
		}
		for body, want := range cases {
			p := c.send(method, target, body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Len(t, p.Errors, 1, "%s %s: %s", method, body, p.Detail)
			require.Equal(t, want, *p.Errors[0].Pointer+" "+p.Errors[0].Code, "%s %s", method, body)
		}
	}
	require.Equal(t, "Launch", c.collectionNames(""), "a refused request must not create or change a collection")
	for _, path := range []string{"x", "null", "{" + id.String() + "}", strings.ReplaceAll(id.String(), "-", ""), "urn:uuid:" + id.String()} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			p := c.send(method, "/collections/"+path, nil).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
			require.Equal(t, "collection_id", *p.Errors[0].Name)
		}
	}
	require.Equal(t, id, decode[client.Collection](c.send(http.MethodGet, "/collections/"+strings.ToUpper(id.String()), nil).requireStatus(http.StatusOK)).ID)
}

// Requirements in docs/coverage.md: 2.1-07, 3-08, 3-09, 4.1-20, 4.1-21, 4.1-22, 4.1-23, 4.1-24, 4.1-25
func TestUpdateCollection_changesOnlyTheMembersInTheBody(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		parent, id := c.createNamedCollection("Parent"), c.createCollection(map[string]any{"name": "Launch", "hashtags": []string{"one"}})
		want := c.readCollection(id)
		change := func(body string) {
			t.Helper()
			got := c.patchCollection(id, body).requireStatus(http.StatusNoContent)
			require.Empty(t, got.body)
			require.Empty(t, got.Header.Get("Content-Type"))
			now := c.readCollection(id)
			if want.Hash == nil {
				want.Hash = now.Hash
			}
			require.Equal(t, want, now)
		}
		change(`{}`)
		want.ParentID = &parent
		change(`{"parent_id":"` + parent.String() + `"}`)
		want.Name = "Spring"
		change(`{"name":"Spring"}`) // the body has no parent_id, so the parent stays the same
		want.ParentID = nil
		change(`{"parent_id":null}`)
		want.Hashtags = []string{"three", "two"}
		change(`{"hashtags":["#Two","three"]}`)
		want.Hashtags = []string{}
		change(`{"hashtags":[]}`)
		change(`{"password":"12345678"}`) // GET does not return the password, so a new password must not change the response to GET
		require.Nil(t, want.Hash)
		want.Access = client.AccessProtected
		change(`{"access":"protected"}`)
		require.Regexp(t, `^[A-Za-z0-9]{14}$`, *want.Hash)
		want.Access = client.AccessPrivate
		change(`{"access":"private"}`) // the collection keeps the hash of its share page, which it got when it became protected
		want.Access = client.AccessPublic
		change(`{"access":"public"}`)
		// The server returns display_settings as they were sent, but without white space. The members keep their order, and a number that is too
		// long for a float keeps all its digits.
		want.DisplaySettings = json.RawMessage(`{"theme":"dark","zz":{"big":12345678901234567891,"list":[1,null,"a/b"]},"sort":{"by":"latest_views","direction":"asc","then":"x"},"title":"T"}`)
		change(`{"display_settings": ` + string(want.DisplaySettings) + `}`)
		change(`{"name":"Spring"}`)
		want.DisplaySettings = json.RawMessage(`{}`)
		change(`{"display_settings":{ }}`)
		want.DisplaySettings = json.RawMessage(`null`)
		change(`{"display_settings":null}`)
	})
}

// Requirements in docs/coverage.md: 3-08, 4.1-23, 8-04
func TestUpdateCollection_protectedAccessRequiresAPassword(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		id := c.createNamedCollection("Launch")
		p := c.patchCollection(id, map[string]any{"access": "protected", "name": "x"}).requireProblem(http.StatusConflict, server.CodePasswordRequired)
		require.Equal(t, "/access", *p.Errors[0].Pointer)
		require.Equal(t, "Launch", c.readCollection(id).Name, "the refused request must not change the collection")
		const password = "päss wörd" // this password has 9 characters and 11 bytes
		c.patchCollection(id, map[string]any{"access": "protected", "password": password}).requireStatus(http.StatusNoContent)
		for _, path := range []string{"/collections", "/collections/" + id.String()} {
			body := string(c.send(http.MethodGet, path, nil).requireStatus(http.StatusOK).body)
			require.NotContains(t, body, "password")
			require.NotContains(t, body, "argon2")
		}
		require.NotContains(t, a.log.String(), password)
		kept, err := a.Org(c.org.ID).Collection(t.Context(), id, false)
		require.NoError(t, err)
		require.Contains(t, *kept.PasswordHash, "$argon2id$")
		ok, err := store.PasswordMatches(t.Context(), password, *kept.PasswordHash)
		require.NoError(t, err)
		require.True(t, ok)
		t.Run("a later PATCH without a password", func(t *testing.T) {
			c.patchCollection(id, map[string]any{"name": "Other"}).requireStatus(http.StatusNoContent)
			c.patchCollection(id, map[string]any{"access": "private"}).requireStatus(http.StatusNoContent)
			c.patchCollection(id, map[string]any{"access": "protected"}).requireStatus(http.StatusNoContent)
		})
		t.Run("a password of 8 characters, counted as characters and not as bytes", func(t *testing.T) {
			c.patchCollection(id, map[string]any{"password": "éééééééé"}).requireStatus(http.StatusNoContent)
			c.patchCollection(id, map[string]any{"password": "ééééééé"}).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
		})
	})
}

func TestUpdateCollection_refusesAParentThatCreatesACycle(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		one := c.createNamedCollection("1")
		two := c.createNamedCollection("2", one)
		three := c.createNamedCollection("3", two)
		for id, parents := range map[uuid.UUID][]uuid.UUID{one: {one, two, three}, two: {two, three}} {
			for _, parent := range parents {
				p := c.patchCollection(id, map[string]any{"parent_id": parent, "name": "x"}).requireProblem(http.StatusConflict, server.CodeCollectionCycle)
				require.Equal(t, "/parent_id", *p.Errors[0].Pointer)
				require.Contains(t, p.Detail, parent.String())
			}
		}
		p := c.patchCollection(two, map[string]any{"parent_id": unknownID}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Equal(t, "/parent_id", *p.Errors[0].Pointer)
		p = c.patchCollection(uuid.MustParse(unknownID), map[string]any{"parent_id": one}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		require.Empty(t, p.Errors, "the fault must have no pointer, because the unknown id is in the path and not in the body")
		c.patchCollection(uuid.MustParse(unknownID), map[string]any{"parent_id": unknownID}).requireProblem(http.StatusNotFound, server.CodeNotFound)
		c.patchCollection(three, map[string]any{"parent_id": one}).requireStatus(http.StatusNoContent)
		require.Equal(t, "3,2", c.collectionNames("parent_id="+one.String()))
	})
}

func TestUpdateCollection_refusesCollectionsNestedDeeperThan16Levels(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		chain := []uuid.UUID{c.createNamedCollection("1")}
		for n := 2; n <= 16; n++ {
			chain = append(chain, c.createNamedCollection(fmt.Sprint(n), chain[len(chain)-1]))
		}
		p := c.send(http.MethodPost, "/collections", map[string]any{"name": "17", "parent_id": chain[15]}).requireProblem(http.StatusConflict, server.CodeCollectionTooDeep)
		require.Equal(t, "/parent_id", *p.Errors[0].Pointer)
		require.Contains(t, p.Detail, "16")
		top := c.createNamedCollection("top")
		c.patchCollection(top, map[string]any{"parent_id": chain[15]}).requireProblem(http.StatusConflict, server.CodeCollectionTooDeep)
		c.patchCollection(chain[0], map[string]any{"parent_id": top}).requireProblem(http.StatusConflict, server.CodeCollectionTooDeep)
		c.patchCollection(chain[1], map[string]any{"parent_id": top}).requireStatus(http.StatusNoContent)
		require.Len(t, c.collections("parent_id="+top.String()+"&include_children=true").Data, 15)
	})
}

// Requirements in docs/coverage.md: 3-10, 3-11, 4.1-18, 4.1-19
func TestDeleteCollection_keepsVideosAndMovesChildrenToTheParent(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, a *app) {
		c := a.newCaller(t, store.TierPremium)
		video := c.track(tiktokLink)
		account := *c.video(video.String()).LinkedAccountID
		top := c.createNamedCollection("top")
		middle := c.createNamedCollection("middle", top)
		low := c.createNamedCollection("low", middle)
		c.addVideos(middle, video)
		c.addAccounts(middle, account)
		got := c.send(http.MethodDelete, "/collections/"+middle.String(), nil).requireStatus(http.StatusOK)
		require.JSONEq(t, `{"success":true,"deleted_id":"`+middle.String()+`"}`, string(got.body))
		require.Equal(t, top, *c.readCollection(low).ParentID, "children must move to the parent of the deleted collection")
		require.Empty(t, c.video(video.String()).LabelIds)
		require.False(t, c.video(video.String()).Removed)
		require.Empty(t, c.listVideos("collections="+middle.String()).Data)
		for method, body := range map[string]any{http.MethodGet: nil, http.MethodPatch: map[string]any{}, http.MethodDelete: nil} {
			p := c.send(method, "/collections/"+middle.String(), body).requireProblem(http.StatusNotFound, server.CodeNotFound)
			require.Contains(t, p.Detail, middle.String())
		}
		c.send(http.MethodDelete, "/collections/"+top.String(), nil).requireStatus(http.StatusOK)
		require.Nil(t, c.readCollection(low).ParentID, "children of a deleted root collection must become root collections")
	})
}

// Requirements in docs/coverage.md: 4.1-17
func TestDeleteCollection_bodyCanBeMissingOrAnEmptyObject(t *testing.T) {
	t.Parallel()
	a := newApp(t, newSQLite(t))
	c := a.newCaller(t, store.TierPremium)
	remove := func(body any, headers ...string) response {
		t.Helper()
		return c.send(http.MethodDelete, "/collections/"+c.createNamedCollection("x").String(), body, headers...)
	}
	remove(nil).requireStatus(http.StatusOK)
	remove(nil, "Content-Type", "application/json").requireStatus(http.StatusOK)
	remove("").requireStatus(http.StatusOK)
	remove("", "Content-Type", "text/plain").requireStatus(http.StatusOK)
	remove("{}").requireStatus(http.StatusOK)
	remove(" {\n} ", "Content-Type", "application/json; charset=utf-8").requireStatus(http.StatusOK)
	remove("{}", "Content-Type", "text/plain").requireProblem(http.StatusUnsupportedMediaType, server.CodeUnsupportedMedia)
	for _, body := range []string{"null", "[]", `{"id":1}`, "{} {}"} {
		remove(body).requireProblem(http.StatusBadRequest, server.CodeInvalidRequest)
	}
}

// sortedIDs returns a copy of ids in ascending order.
func sortedIDs(ids []uuid.UUID) []uuid.UUID {
	return slices.SortedFunc(slices.Values(ids), func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
}
