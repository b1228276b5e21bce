package server_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/gen/client"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/ingest"
	"github.com/reeltally/reeltally/store/queue"
)

// textKind says what a text in a request is, for example a video id, a link or a hashtag.
type textKind string

// The kinds of texts. A freeText identifies nothing. A text of any other kind identifies an item of an organisation, such as a video, an
// account or a token.
const (
	videoID        textKind = "video id"
	videoLink      textKind = "video link"
	accountID      textKind = "account id"
	accountLinks   textKind = "account link"
	collectionID   textKind = "collection id"
	collectionName textKind = "collection name"
	username       textKind = "username"
	hashtag        textKind = "hashtag"
	captionWord    textKind = "word of a caption"
	pageCursor     textKind = "cursor"
	entityTag      textKind = "entity tag"
	shareHash      textKind = "share hash"
	reportID       textKind = "report id"
	tokenID        textKind = "token id"
	webhookID      textKind = "webhook id"
	deliveryID     textKind = "delivery id"
	webhookURL     textKind = "webhook URL"
	organisationID textKind = "organisation id"
	freeText       textKind = "text"
)

// itemKinds contains all text kinds except freeText. The order is fixed, so that the same seed generates the same requests.
var itemKinds = []textKind{videoID, videoLink, accountID, accountLinks, collectionID, collectionName, username, hashtag, captionWord,
	pageCursor, entityTag, shareHash, reportID, tokenID, webhookID, deliveryID, webhookURL, organisationID}

// kindsByField maps the name of a text field to the kinds of text that the field accepts. Each text
// field of the API needs an entry.
var kindsByField = map[string][]textKind{
	"ad_id": {videoID, videoLink}, "video_ids": {videoID},
	"account_id": {accountID, accountLinks}, "account_ids": {accountID}, "linked_account_id": {accountID},
	"collection_id": {collectionID}, "collection_ids": {collectionID}, "label_ids": {collectionID}, "parent_id": {collectionID},
	"collections": {collectionName, collectionID}, "collection_names": {collectionName}, "name": {collectionName},
	"username": {username}, "hashtag": {hashtag}, "hashtags": {hashtag}, "q": {captionWord}, "cursor": {pageCursor}, "If-Match": {entityTag},
	"hash": {shareHash}, "organisation_id": {organisationID}, "token_id": {tokenID}, "report_id": {reportID}, "continues_report_id": {reportID},
	"webhook_id": {webhookID}, "delivery_id": {deliveryID}, "url": {webhookURL},
	"title": {freeText}, "description": {freeText}, "password": {freeText}, "Idempotency-Key": {freeText},

	// The entry "videos link" is for the field "link" of operations whose path contains "videos".
	"videos link": {videoLink}, "videos links": {videoLink}, "videos id": {videoID, videoLink}, "videos ids": {videoID, videoLink},
	"accounts link": {accountLinks}, "accounts links": {accountLinks}, "accounts id": {accountID, accountLinks}, "accounts ids": {accountID, accountLinks},
}

// kindsOfField returns the kinds of text that the field with the given name accepts, or nil if kindsByField has no entry for the field.
func kindsOfField(op *contractOperation, name string) []textKind {
	if found, ok := kindsByField[name]; ok {
		return found
	}
	for _, kind := range []string{"videos", "accounts"} {
		if slices.Contains(op.segments, kind) {
			return kindsByField[kind+" "+name]
		}
	}
	return nil
}

// inventory has the texts that identify the items of one organisation, such as ids and links of videos. The key
// is the kind of text.
type inventory map[textKind][]string

// numberedVideoLink returns a video link that contains the number n. n%4 selects the platform.
func numberedVideoLink(n int) string {
	switch n % 4 {
	case 0:
		return videoURL(n)
	case 1:
		return fmt.Sprintf("https://www.youtube.com/shorts/v%dAAAAAA", n)
	case 2:
		return fmt.Sprintf("https://www.instagram.com/reel/C%010d/", n)
	}
	return fmt.Sprintf("https://www.facebook.com/reel/%d", 1139247760000000+n)
}

// numberedAccountLink returns an account link that contains the number n. n%4 selects the platform.
func numberedAccountLink(n int) string {
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

// createItems creates the same videos, accounts and collections for each caller, and sets
// caller.items. The links and names are numbered from firstNumber, which must have four digits.
func (a *app) createItems(firstNumber int, callers ...*caller) {
	a.t.Helper()
	for _, c := range callers {
		c.createCallerItems(firstNumber)
	}
	a.fetch(func(target queue.Target) ingest.VideoFacts {
		n, err := strconv.Atoi(trailingNumber.FindStringSubmatch(target.ExternalID)[1])
		require.NoError(a.t, err)
		return ingest.VideoFacts{Username: new(fmt.Sprintf("user%d", n/10*10+n%4%3)), Title: new(fmt.Sprintf("word%d #tag%d", n, n)), Views: new(int64(n))}
	})
	a.fetchProfiles(func(queue.Target) ingest.AccountFacts { return ingest.AccountFacts{Followers: new(int64(firstNumber))} })
	a.Clock.Advance(3 * time.Minute) // an export has only history points that are at least two minutes old
	for _, c := range callers {
		c.items = c.inventory(firstNumber)
	}
}

// trailingNumber matches the last four digits in the id that a platform gave to a video. Letters can follow these digits.
var trailingNumber = regexp.MustCompile(`(\d{4})\D*$`)

// createCallerItems creates three collections, six videos and three accounts. Their names and links contain consecutive numbers.
// firstNumber is the lowest of these numbers.
func (c *caller) createCallerItems(firstNumber int) {
	c.t.Helper()
	var collections []string
	for i := range 3 {
		body := map[string]any{"name": fmt.Sprintf("Plans %d", firstNumber+i), "hashtags": []string{fmt.Sprintf("tag%d", firstNumber+i)}}
		if i == 2 {
			body["parent_id"] = collections[0]
		}
		collections = append(collections, c.createCollection(body).String())
	}
	c.send(http.MethodPatch, "/collections/"+collections[1], map[string]any{"access": "public"}).requireStatus(http.StatusNoContent)
	for i := range 6 {
		c.send(http.MethodPost, "/videos", map[string]any{"link": numberedVideoLink(firstNumber + i), "collection_ids": collections[i%3 : i%3+1]}).requireStatus(http.StatusOK)
	}
	for i := range 3 {
		c.send(http.MethodPost, "/accounts", map[string]any{"link": numberedAccountLink(firstNumber + i), "collection_ids": collections[:1]}).requireStatus(http.StatusOK)
	}
}

// inventory returns the texts that identify the items of c. Before, createCallerItems must have created videos,
// accounts and collections with the same firstNumber. inventory itself creates items of other kinds, such as reports.
func (c *caller) inventory(firstNumber int) inventory {
	c.t.Helper()
	items := inventory{organisationID: {c.org.ID.String()}}
	for i := range 6 {
		items[videoLink] = append(items[videoLink], numberedVideoLink(firstNumber+i))
	}
	for i := range 3 {
		items[accountLinks] = append(items[accountLinks], numberedAccountLink(firstNumber+i))
	}
	for _, v := range decode[client.VideoPage](c.send(http.MethodGet, "/videos?order_by=created_at", nil).requireStatus(http.StatusOK)).Data {
		items[videoID], items[username] = append(items[videoID], v.AdID.String()), append(items[username], v.Username)
	}
	for _, a := range decode[[]client.Account](c.send(http.MethodGet, "/accounts?include_linked=true", nil).requireStatus(http.StatusOK)) {
		items[accountID] = append(items[accountID], a.AccountID.String())
	}
	for _, found := range decode[client.CollectionList](c.send(http.MethodGet, "/collections", nil).requireStatus(http.StatusOK)).Data {
		items[collectionID], items[collectionName] = append(items[collectionID], found.ID.String()), append(items[collectionName], found.Name)
		items[entityTag] = append(items[entityTag], c.send(http.MethodGet, "/collections/"+found.ID.String(), nil).requireStatus(http.StatusOK).Header.Get("ETag"))
		if found.Hash != nil {
			items[shareHash] = append(items[shareHash], *found.Hash)
		}
	}
	for i := range 3 {
		items[hashtag], items[captionWord] = append(items[hashtag], fmt.Sprintf("tag%d", firstNumber+i)), append(items[captionWord], fmt.Sprintf("word%d", firstNumber+i))
	}
	for range 2 { // two reports, so that the list of reports has a second page
		items[reportID] = append(items[reportID], c.createReport(uuid.MustParse(items[collectionID][0])).String())
	}
	items[tokenID] = append(items[tokenID], c.createToken("Script").ID.String()) // the requests of the tests may revoke this new token, but not c's own token
	hook := c.createWebhook("https://hooks.example.com/")
	items[webhookURL] = append(items[webhookURL], fmt.Sprintf("https://hooks.example.com/%d", firstNumber))
	items[webhookID] = append(items[webhookID], hook.ID.String())
	for range 2 { // two deliveries, so that the list of deliveries has a second page
		items[deliveryID] = append(items[deliveryID], c.testWebhook(hook.ID).ID.String())
	}
	for _, op := range sharedContract().operations {
		if op.Operation.Parameters.GetByInAndName("query", "cursor") != nil {
			items[pageCursor] = append(items[pageCursor], c.requestCursor(op, items))
		}
	}
	for _, m := range itemKinds {
		require.NotEmpty(c.t, items[m], "the inventory must contain a %s", m)
	}
	return items
}

// requestCursor sends a request with limit=1 to a list operation and returns next_cursor of the response.
func (c *caller) requestCursor(op *contractOperation, items inventory) string {
	c.t.Helper()
	query := "?limit=1"
	if op.Operation.Parameters.GetByInAndName(openapi3.ParameterInQuery, "paginated") != nil {
		query += "&paginated=true"
	}
	targets := []string{op.Path}
	for _, p := range op.Operation.Parameters {
		if p.Value.In == openapi3.ParameterInPath {
			targets = nil
			for _, value := range items[kindsOfField(op, p.Value.Name)[0]] {
				targets = append(targets, strings.ReplaceAll(op.Path, "{"+p.Value.Name+"}", value))
			}
		}
	}
	for _, target := range targets {
		if found := nextCursor.FindSubmatch(c.send(http.MethodGet, target+query, nil).requireStatus(http.StatusOK).body); found != nil {
			return string(found[1])
		}
	}
	require.Fail(c.t, "the list must have at least two rows, because otherwise no response has a next_cursor", op.id)
	return ""
}

var nextCursor = regexp.MustCompile(`"next_cursor":"([^"]+)"`)

// unknownItems returns a copy of items whose texts are changed, so that they identify no item. It replaces
// the number oldFirst by newFirst, oldFirst+1 by newFirst+1, and so on. oldFirst and newFirst must have four
// digits, and their last digits must be equal.
func (items inventory) unknownItems(oldFirst, newFirst int) inventory {
	var ids []string
	for _, m := range []textKind{videoID, accountID, collectionID, reportID, tokenID, webhookID, deliveryID, organisationID} {
		ids = append(ids, items[m]...)
	}
	// The new ids have the same order as the old ids.
	slices.Sort(ids)
	unknownIDOf := map[string]string{}
	for _, id := range ids {
		unknownIDOf[id] = store.NewID().String()
	}
	from, to := strconv.Itoa(oldFirst/10), strconv.Itoa(newFirst/10)
	unknown := inventory{}
	// The text of an unknown item is similar to the text that it replaces, so that both have nearly the same
	// position in every sort order.
	for m, values := range items {
		for _, value := range values {
			switch id, isID := unknownIDOf[value]; {
			case isID:
				value = id
			case m == pageCursor, m == entityTag, m == shareHash:
				value = changeOneCharacter(value)
			default:
				// Replace the first three digits of oldFirst by those of newFirst.
				value = strings.ReplaceAll(value, from, to)
			}
			unknown[m] = append(unknown[m], value)
		}
	}
	return unknown
}

// changeOneCharacter returns a copy of s in which the second-to-last character is different. The copy and s are close together in every sort
// order.
func changeOneCharacter(s string) string {
	letters := []byte(s)
	at := len(letters) - 2
	if letters[at] == 'A' {
		letters[at] = 'B'
	} else {
		letters[at] = 'A'
	}
	return string(letters)
}
