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

// What belongs to a page is asked for with the page's own token. Who has a role on a page, a person or a system user, is given
// its token; it is kept in memory alone, and asked for again when the platform refuses it.

const (
	pagesListed = 100 // a call
	pageCalls   = 50
)

// pageTokens are the tokens of pages, by the pages' ids.
type pageTokens struct {
	mu    sync.Mutex
	known map[string]string // nil until they have been asked for
}

// noRole are the answers to a token that is itself a page's, to which no other page is given, and to one that may not list pages.
var noRole = func() Verdicts {
	v := Verdicts{{Main: codeParameter}: source.Unsupported, {Main: codePermission}: source.Unsupported}
	for code := firstPermission; code <= lastPermission; code++ {
		v[Code{Main: code}] = source.Unsupported
	}
	return v
}()

// GetAsPage is Get with the token of a page, where the client's own one gives it. A page's token that is refused is asked for
// anew, once.
func (c *Client) GetAsPage(ctx context.Context, budget *source.CallBudget, page, path string, verdicts Verdicts, parameters ...string) (Answer, error) {
	token, err := c.pageToken(ctx, budget, page, "")
	if err != nil {
		return Answer{}, err
	}
	res, err := c.get(ctx, budget, token, path, verdicts, parameters...)
	if f, ok := errors.AsType[*source.Failure](err); !ok || f.Class != source.AuthFailed || token == c.token {
		return res, err
	}
	again, failed := c.pageToken(ctx, budget, page, token)
	switch {
	case failed != nil:
		return Answer{}, failed
	case again == token:
		return res, err
	}
	return c.get(ctx, budget, again, path, verdicts, parameters...)
}

// pageToken is the token by which a page is asked, the client's own where it gives none for the page. One that was refused, ""
// for none, is not believed.
func (c *Client) pageToken(ctx context.Context, budget *source.CallBudget, page, refused string) (string, error) {
	c.pages.mu.Lock()
	defer c.pages.mu.Unlock()
	if c.pages.known == nil || refused != "" && c.pages.known[page] == refused {
		known, err := c.askPageTokens(ctx, budget)
		if err != nil {
			return "", err
		}
		c.pages.known = known
	}
	if token := c.pages.known[page]; token != "" {
		return token, nil
	}
	return c.token, nil
}

func (c *Client) askPageTokens(ctx context.Context, budget *source.CallBudget) (map[string]string, error) {
	known := map[string]string{}
	after := ""
	for range pageCalls {
		parameters := []string{"fields", "id,name,access_token", "limit", strconv.Itoa(pagesListed)}
		if after != "" {
			parameters = append(parameters, "after", after)
		}
		res, err := c.Get(ctx, budget, "me/accounts", noRole, parameters...)
		if _, ok := AsRefusal(err); ok {
			return known, nil
		}
		if err != nil {
			return nil, err
		}
		var answer List
		if json.Unmarshal(res.Body, &answer) != nil || answer.Data == nil {
			return nil, ErrShape
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
		next := answer.After(true)
		if next == "" || next == after {
			break
		}
		after = next
	}
	return known, nil
}
