package graph

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/reeltally/reeltally/collector/fetch"
	"github.com/reeltally/reeltally/collector/source"
)

// Some data of a Facebook page requires the page's own access token. The client gets these page
// tokens from me/accounts and caches them in memory.

const (
	pagesPerCall = 100
	maxPageCalls = 50
)

// pageTokens is a cache of the access tokens of Facebook pages.
type pageTokens struct {
	mu    sync.Mutex
	known map[string]string // maps a page id to the token of the page; nil until the first request
}

// noPageTokens has the error codes which mean that a token cannot list pages with me/accounts. An example is
// the token of a page.
var noPageTokens = ErrorClasses{{Main: codeParameter}: source.Unsupported}.WithPermissions(source.Unsupported)

// GetWithPageToken does the same as Get, but with the token of a page, or with the configured token if Meta returns no token of the page. If Meta refuses
// the token of the page, GetWithPageToken requests the page tokens again. It then retries once with the new token of the page, or with the configured
// token if Meta no longer returns a token of the page. If the token of the page is the same as before, GetWithPageToken does not retry.
func (c *Client) GetWithPageToken(ctx context.Context, budget *source.CallBudget, page, path string, classes ErrorClasses, parameters ...string) (Answer, error) {
	token, err := c.pageToken(ctx, budget, page, "")
	if err != nil {
		return Answer{}, err
	}
	res, err := c.getWithToken(ctx, budget, token, path, classes, parameters...)
	if f, ok := errors.AsType[*source.Failure](err); !ok || f.Class != source.AuthFailed || token == c.token {
		return res, err
	}
	renewed, tokenErr := c.pageToken(ctx, budget, page, token)
	switch {
	case tokenErr != nil:
		return Answer{}, tokenErr
	case renewed == token:
		return res, err
	}
	return c.getWithToken(ctx, budget, renewed, path, classes, parameters...)
}

// pageToken returns the token of a page, or the configured token if Meta returns none. Meta has just refused
// refusedToken; it is "" if Meta has refused no token. pageToken requests the page tokens if it does not have them yet, or if the token that it has for the
// page is refusedToken.
func (c *Client) pageToken(ctx context.Context, budget *source.CallBudget, pageID, refusedToken string) (string, error) {
	c.pages.mu.Lock()
	defer c.pages.mu.Unlock()
	if c.pages.known == nil || refusedToken != "" && c.pages.known[pageID] == refusedToken {
		known, err := c.fetchPageTokens(ctx, budget)
		if err != nil {
			return "", err
		}
		c.pages.known = known
	}
	if token := c.pages.known[pageID]; token != "" {
		return token, nil
	}
	return c.token, nil
}

// fetchPageTokens requests me/accounts and returns a map from page ids to page tokens. It returns an empty map if the configured token
// cannot list pages.
func (c *Client) fetchPageTokens(ctx context.Context, budget *source.CallBudget) (map[string]string, error) {
	known := map[string]string{}
	after := ""
	for range maxPageCalls {
		parameters := []string{"fields", "id,name,access_token", "limit", strconv.Itoa(pagesPerCall)}
		if after != "" {
			parameters = append(parameters, "after", after)
		}
		// Meta returns the pages on which the owner of the configured token has a role.
		res, err := c.Get(ctx, budget, "me/accounts", noPageTokens, parameters...)
		if _, ok := AsTargetError(err); ok {
			return known, nil
		}
		if err != nil {
			return nil, err
		}
		var answer List
		if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
			return nil, ErrFormat
		}
		for _, raw := range *answer.Data {
			var page struct {
				ID    fetch.ID `json:"id"`
				Token string   `json:"access_token"`
			}
			if json.Unmarshal(raw, &page) == nil && page.ID != "" && page.Token != "" {
				known[string(page.ID)] = page.Token
			}
		}
		next := answer.NextCursor(true)
		if next == "" || next == after {
			break
		}
		after = next
	}
	return known, nil
}
