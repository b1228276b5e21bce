package server_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// meaning is what a text in a request stands for.
type meaning string

// What an organisation has can be named by these; freeText names nothing.
const (
	videoID        meaning = "video id"
	videoLink      meaning = "video link"
	accountID      meaning = "account id"
	accountLinks   meaning = "account link"
	collectionID   meaning = "collection id"
	collectionName meaning = "collection name"
	username       meaning = "username"
	hashtag        meaning = "hashtag"
	captionWord    meaning = "word of a caption"
	pageCursor     meaning = "cursor"
	entityTag      meaning = "entity tag"
	shareHash      meaning = "share hash"
	tokenID        meaning = "token id"
	organisationID meaning = "organisation id"
	freeText       meaning = "text"
)

// meanings are all that name something, in a fixed order.
var meanings = []meaning{videoID, videoLink, accountID, accountLinks, collectionID, collectionName, username, hashtag, captionWord,
	pageCursor, entityTag, shareHash, tokenID, organisationID}

// naturalMeanings say what belongs into a slot of a request, by its name. A slot of text that is missing here fails the tests
// that generate requests: a new operation is covered by them once its slots are known. A name behind
// "videos" or "accounts" means different things in the paths of the two.
var naturalMeanings = map[string][]meaning{
	"ad_id": {videoID, videoLink}, "video_ids": {videoID},
	"account_id": {accountID, accountLinks}, "account_ids": {accountID}, "linked_account_id": {accountID},
	"collection_id": {collectionID}, "collection_ids": {collectionID}, "label_ids": {collectionID}, "parent_id": {collectionID},
	"collections": {collectionName, collectionID}, "collection_names": {collectionName}, "name": {collectionName},
	"username": {username}, "hashtag": {hashtag}, "hashtags": {hashtag}, "q": {captionWord}, "cursor": {pageCursor}, "If-Match": {entityTag},
	"hash": {shareHash}, "organisation_id": {organisationID}, "token_id": {tokenID},
	"title": {freeText}, "description": {freeText}, "password": {freeText}, "Idempotency-Key": {freeText},

	"videos link": {videoLink}, "videos links": {videoLink}, "videos id": {videoID, videoLink}, "videos ids": {videoID, videoLink},
	"accounts link": {accountLinks}, "accounts links": {accountLinks}, "accounts id": {accountID, accountLinks}, "accounts ids": {accountID, accountLinks},
}

// meaningsOf says what belongs into a slot of an operation; nil when nobody has said it.
func meaningsOf(op *contractOperation, name string) []meaning {
	if found, ok := naturalMeanings[name]; ok {
		return found
	}
	for _, kind := range []string{"videos", "accounts"} {
		if slices.Contains(op.segments, kind) {
			return naturalMeanings[kind+" "+name]
		}
	}
	return nil
}

// inventory is what an organisation has, by what it is.
type inventory map[meaning][]string

// videoLinkOf and accountLinkOf are the links of the n-th thing, of all platforms in turn.
func videoLinkOf(n int) string {
	switch n % 4 {
	case 0:
		return numbered(n)
	case 1:
		return fmt.Sprintf("https://www.youtube.com/shorts/v%dAAAAAA", n)
	case 2:
		return fmt.Sprintf("https://www.instagram.com/reel/C%010d/", n)
	}
	return fmt.Sprintf("https://www.facebook.com/reel/%d", 1139247760000000+n)
}

func accountLinkOf(n int) string {
	switch n % 4 {
	case 0:
		return fmt.Sprintf("https://www.tiktok.com/@user%d", n)
	case 1:
		return fmt.Sprintf("https://www.youtube.com/@user%d", n)
	case 2:
		return fmt.Sprintf("https://www.instagram.com/user%d/", n)
	}
	return fmt.Sprintf("https://www.facebook.com/user%d", n)
}

// stock gives organisations the same things, which bear the numbers from first on, of four digits, and lists them.
func (a *app) stock(first int, callers ...*caller) {
	a.t.Helper()
	for _, c := range callers {
		c.plant(first)
	}
	a.fetch(func(target queue.Target) ingest.VideoFacts {
		n, err := strconv.Atoi(lastNumber.FindStringSubmatch(target.ExternalID)[1])
		require.NoError(a.t, err)
		return ingest.VideoFacts{Username: new(fmt.Sprintf("user%d", n/10*10+n%4%3)), Title: new(fmt.Sprintf("word%d #tag%d", n, n)), Views: new(int64(n))}
	})
	a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return ingest.AccountFacts{Followers: new(int64(first))} })
	for _, c := range callers {
		c.own = c.inventory(first)
	}
}

// lastNumber is the number of a thing, in the platform's id.
var lastNumber = regexp.MustCompile(`(\d{4})\D*$`)

// plant makes collections and tracks videos and accounts.
func (c *caller) plant(first int) {
	c.t.Helper()
	var collections []string
	for i := range 3 {
		body := map[string]any{"name": fmt.Sprintf("Plans %d", first+i), "hashtags": []string{fmt.Sprintf("tag%d", first+i)}}
		if i == 2 {
			body["parent_id"] = collections[0]
		}
		collections = append(collections, c.collection(body).String())
	}
	c.send(http.MethodPatch, "/collections/"+collections[1], map[string]any{"access": "public"}).is(http.StatusNoContent)
	for i := range 6 {
		c.send(http.MethodPost, "/videos", map[string]any{"link": videoLinkOf(first + i), "collection_ids": collections[i%3 : i%3+1]}).is(http.StatusOK)
	}
	for i := range 3 {
		c.send(http.MethodPost, "/accounts", map[string]any{"link": accountLinkOf(first + i), "collection_ids": collections[:1]}).is(http.StatusOK)
	}
}

// inventory lists what was planted.
func (c *caller) inventory(first int) inventory {
	c.t.Helper()
	own := inventory{organisationID: {c.org.ID.String()}}
	for i := range 6 {
		own[videoLink] = append(own[videoLink], videoLinkOf(first+i))
	}
	for i := range 3 {
		own[accountLinks] = append(own[accountLinks], accountLinkOf(first+i))
	}
	for _, v := range decode[client.VideoPage](c.send(http.MethodGet, "/videos?order_by=created_at", nil).is(http.StatusOK)).Data {
		own[videoID], own[username] = append(own[videoID], v.AdID.String()), append(own[username], v.Username)
	}
	for _, a := range decode[[]client.Account](c.send(http.MethodGet, "/accounts?include_linked=true", nil).is(http.StatusOK)) {
		own[accountID] = append(own[accountID], a.AccountID.String())
	}
	for _, found := range decode[client.CollectionList](c.send(http.MethodGet, "/collections", nil).is(http.StatusOK)).Data {
		own[collectionID], own[collectionName] = append(own[collectionID], found.ID.String()), append(own[collectionName], found.Name)
		own[entityTag] = append(own[entityTag], c.send(http.MethodGet, "/collections/"+found.ID.String(), nil).is(http.StatusOK).Header.Get("ETag"))
		if found.Hash != nil {
			own[shareHash] = append(own[shareHash], *found.Hash)
		}
	}
	for i := range 3 {
		own[hashtag], own[captionWord] = append(own[hashtag], fmt.Sprintf("tag%d", first+i)), append(own[captionWord], fmt.Sprintf("word%d", first+i))
	}
	own[tokenID] = append(own[tokenID], decode[client.Authentication](c.send(http.MethodGet, "/authenticate", nil).is(http.StatusOK)).Token.ID.String())
	for _, op := range theContract().operations {
		if op.Operation.Parameters.GetByInAndName("query", "cursor") != nil {
			own[pageCursor] = append(own[pageCursor], c.cursorOf(op, own))
		}
	}
	for _, m := range meanings {
		require.NotEmpty(c.t, own[m], "there is no %s", m)
	}
	return own
}

// cursorOf returns a cursor of a list, asked for in the fewest words.
func (c *caller) cursorOf(op *contractOperation, own inventory) string {
	c.t.Helper()
	query := "?limit=1"
	if op.Operation.Parameters.GetByInAndName(openapi3.ParameterInQuery, "paginated") != nil {
		query += "&paginated=true"
	}
	targets := []string{op.Path}
	for _, p := range op.Operation.Parameters {
		if p.Value.In == openapi3.ParameterInPath {
			targets = nil
			for _, value := range own[meaningsOf(op, p.Value.Name)[0]] {
				targets = append(targets, strings.ReplaceAll(op.Path, "{"+p.Value.Name+"}", value))
			}
		}
	}
	for _, target := range targets {
		if found := nextCursor.FindSubmatch(c.send(http.MethodGet, target+query, nil).is(http.StatusOK).body); found != nil {
			return string(found[1])
		}
	}
	require.Fail(c.t, "there is no list of two", op.id)
	return ""
}

var nextCursor = regexp.MustCompile(`"next_cursor":"([^"]+)"`)

// twin lists things that nobody has, each of the same shape as the one in its place, and of the same rank among them in every order. The
// things bear numbers from first on, their twins from another on.
func (own inventory) twin(first, other int) inventory {
	var ids []string
	for _, m := range []meaning{videoID, accountID, collectionID, tokenID, organisationID} {
		ids = append(ids, own[m]...)
	}
	slices.Sort(ids)
	twinOf := map[string]string{}
	for _, id := range ids {
		twinOf[id] = store.NewID().String()
	}
	from, to := strconv.Itoa(first/10), strconv.Itoa(other/10)
	twins := inventory{}
	for m, values := range own {
		for _, value := range values {
			switch id, isID := twinOf[value]; {
			case isID:
				value = id
			case m == pageCursor, m == entityTag, m == shareHash:
				value = changed(value)
			default:
				value = strings.ReplaceAll(value, from, to)
			}
			twins[m] = append(twins[m], value)
		}
	}
	return twins
}

// changed is a text with another letter near its end: among others it stays where it was in their order.
func changed(s string) string {
	letters := []byte(s)
	at := len(letters) - 2
	if letters[at] == 'A' {
		letters[at] = 'B'
	} else {
		letters[at] = 'A'
	}
	return string(letters)
}
