package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	openapi_types "github.com/oapi-codegen/runtime/types"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

// collectionsCommands are the commands for collections. They call the API.
type collectionsCommands struct {
	List   collectionsList   `cmd:"" help:"List collections with their hashtags."`
	Create collectionsCreate `cmd:"" help:"Create a collection."`
	Add    collectionsAdd    `cmd:"" help:"Add videos and accounts to a collection."`
	Remove collectionsRemove `cmd:"" help:"Remove videos and accounts from a collection. They stay tracked."`
}

type collectionsList struct {
	apiCommand
	JSON bool `name:"json" help:"Print one JSON object a collection, as the API returns it."`
}

// Run prints all collections, including subcollections, as a table, or as one JSON object a line.
func (c *collectionsList) Run(ctx context.Context, p boot.Process) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	columns := []column{{title: "NAME", wide: true}, {title: "HASHTAGS", wide: true}, {title: "ACCESS"}, {title: "ID", extra: true}}
	all := api.AllCollections(ctx, client.ListCollectionsOptions{IncludeChildren: true, Limit: pageSize(0)})
	return printEntries(p.Stdout, all, c.JSON, columns, func(collection client.Collection) []string {
		return []string{plainText(collection.Name), plainText(strings.Join(collection.Hashtags, ", ")), string(collection.Access), collection.ID.String()}
	})
}

type collectionsCreate struct {
	apiCommand
	Name    string   `arg:"" help:"Name of the collection."`
	Parent  string   `placeholder:"NAME|ID" help:"Collection above the new one."`
	Hashtag []string `placeholder:"TAG" help:"Hashtag whose videos are in the collection. Repeat it for several hashtags."`
	JSON    bool     `name:"json" help:"Print the JSON object of the API."`
}

// Run creates the collection and prints its id.
func (c *collectionsCreate) Run(ctx context.Context, p boot.Process) error {
	api, err := c.connect()
	if err != nil {
		return err
	}
	options := client.CreateCollectionOptions{Name: c.Name, Hashtags: c.Hashtag}
	if c.Parent != "" {
		if options.ParentID, err = findCollection(ctx, api, c.Parent); err != nil {
			return err
		}
	}
	created, err := api.CreateCollection(ctx, options)
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(p.Stdout, created)
	}
	_, err = fmt.Fprintf(p.Stdout, "created  %s  %s\n", plainText(created.Name), created.ID)
	return err
}

// membersCommand is the common part of the commands that add videos and accounts to a collection or remove them.
type membersCommand struct {
	apiCommand
	Collection string   `arg:"" help:"Name or id of the collection."`
	Videos     []string `arg:"" optional:"" name:"video" help:"Ids or links of videos."`
	Account    []string `sep:"none" placeholder:"ID|LINK" help:"Id or link of an account. Repeat it for several accounts."`
	JSON       bool     `name:"json" help:"Print the JSON objects of the API."`
}

// maxMembers is the largest number of videos or accounts in one request that changes a collection.
const maxMembers = 100

// changeMembers adds or removes the named videos and accounts. sendVideos and sendAccounts each send
// one request and return the response and the number of changes.
func (c *membersCommand) changeMembers(ctx context.Context, p boot.Process, verb string, sendVideos, sendAccounts func(api *client.ReelTally, collection uuid.UUID, ids []uuid.UUID) (any, int32, error)) error {
	if len(c.Videos) == 0 && len(c.Account) == 0 {
		return boot.UsageError{Err: errors.New("no video or account is named: name videos as arguments, and accounts with --account")}
	}
	api, err := c.connect()
	if err != nil {
		return err
	}
	collection, err := findCollection(ctx, api, c.Collection)
	if err != nil {
		return err
	}
	videoIDs, err := memberIDs(c.Videos, func(link string) (uuid.UUID, error) {
		video, err := api.GetVideo(ctx, link)
		return video.AdID, err
	})
	if err != nil {
		return err
	}
	accountIDs, err := memberIDs(c.Account, func(link string) (uuid.UUID, error) {
		account, err := api.GetAccount(ctx, link)
		return account.AccountID, err
	})
	if err != nil {
		return err
	}
	for _, members := range []struct {
		noun string
		ids  []uuid.UUID
		send func(api *client.ReelTally, collection uuid.UUID, ids []uuid.UUID) (any, int32, error)
	}{{"video", videoIDs, sendVideos}, {"account", accountIDs, sendAccounts}} {
		for batch := range slices.Chunk(members.ids, maxMembers) {
			response, changed, err := members.send(api, collection, batch)
			if err != nil {
				return err
			}
			if c.JSON {
				err = writeJSON(p.Stdout, response)
			} else {
				_, err = fmt.Fprintf(p.Stdout, "%s  %s\n", verb, numberWithNoun(changed, members.noun))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// memberIDs returns the ids of videos or accounts that the user has named by id or by link. The function findID asks the server for the id of a link.
func memberIDs(named []string, findID func(link string) (uuid.UUID, error)) (ids []uuid.UUID, err error) {
	for _, name := range named {
		id, invalid := uuid.Parse(name)
		if invalid != nil {
			if id, err = findID(name); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

type collectionsAdd struct {
	membersCommand
	CountsFrom day `placeholder:"DATE" help:"First UTC day whose gains count in the collection, for example 2026-10-01. It also becomes the day of videos that are in the collection already. Without it, new videos count from now on."`
}

// Run adds the named videos and accounts to the collection.
func (c *collectionsAdd) Run(ctx context.Context, p boot.Process) error {
	var countsFrom openapi_types.Date
	if c.CountsFrom.isGiven {
		if len(c.Account) > 0 {
			return boot.UsageError{Err: errors.New("--counts-from cannot be used with --account: only videos have such a day, so name the videos of the account")}
		}
		countsFrom.Time = c.CountsFrom.Time()
	}
	return c.changeMembers(ctx, p, "added", func(api *client.ReelTally, collection uuid.UUID, ids []uuid.UUID) (any, int32, error) {
		response, err := api.AddCollectionVideos(ctx, collection, client.AddCollectionVideosOptions{VideoIds: ids, CountsFrom: countsFrom})
		return response, response.VideosAdded, err
	}, func(api *client.ReelTally, collection uuid.UUID, ids []uuid.UUID) (any, int32, error) {
		response, err := api.AddCollectionAccounts(ctx, collection, client.AddCollectionAccountsOptions{AccountIds: ids})
		return response, response.AccountsAdded, err
	})
}

type collectionsRemove struct {
	membersCommand
}

// Run removes the named videos and accounts from the collection.
func (c *collectionsRemove) Run(ctx context.Context, p boot.Process) error {
	return c.changeMembers(ctx, p, "removed", func(api *client.ReelTally, collection uuid.UUID, ids []uuid.UUID) (any, int32, error) {
		response, err := api.RemoveCollectionVideos(ctx, collection, client.RemoveCollectionVideosOptions{VideoIds: ids})
		return response, response.VideosRemoved, err
	}, func(api *client.ReelTally, collection uuid.UUID, ids []uuid.UUID) (any, int32, error) {
		response, err := api.RemoveCollectionAccounts(ctx, collection, client.RemoveCollectionAccountsOptions{AccountIds: ids})
		return response, response.AccountsRemoved, err
	})
}

// findCollection returns the id of the collection with this name or id. It requests a collection with this id directly: the list of collections would
// not be enough, because it has only one collection for the tiers "limited" and "basic".
func findCollection(ctx context.Context, api *client.ReelTally, nameOrID string) (uuid.UUID, error) {
	id, idErr := uuid.Parse(nameOrID)
	if idErr == nil {
		collection, err := api.GetCollection(ctx, id, client.GetCollectionOptions{})
		var refused *client.Error
		switch {
		case err == nil:
			return collection.ID, nil
		case !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound:
			return uuid.Nil, err
		}
		// The name of a collection can have the form of an id.
	}
	var found []uuid.UUID
	masked := false
	for collection, err := range api.AllCollections(ctx, client.ListCollectionsOptions{IncludeChildren: true}) {
		if err != nil {
			return uuid.Nil, err
		}
		if collection.Name == nameOrID {
			found = append(found, collection.ID)
		}
		masked = masked || collection.MetricsMasked != nil
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return uuid.Nil, fmt.Errorf("%d collections are named %q; use the id of one of them", len(found), nameOrID)
	case masked && idErr == nil:
		return uuid.Nil, fmt.Errorf("there is no collection with the id %s", nameOrID)
	case masked:
		return uuid.Nil, fmt.Errorf("the tier of this organisation shows only one collection in the list, and its name is not %q; use the id of the collection", nameOrID)
	}
	return uuid.Nil, unknownCollectionError(nameOrID)
}

// checkCollections returns an error if a name or id belongs to no collection. For an unknown
// collection, the API would return an empty list.
func checkCollections(ctx context.Context, api *client.ReelTally, namesOrIDs []string) error {
	if len(namesOrIDs) == 0 {
		return nil
	}
	unknown := slices.Clone(namesOrIDs)
	for collection, err := range api.AllCollections(ctx, client.ListCollectionsOptions{IncludeChildren: true, Limit: maxPage}) {
		if err != nil {
			return err
		}
		if collection.MetricsMasked != nil {
			// With the tier "limited" or "basic", the API returns only one collection of the organisation, so
			// it is not known which names exist.
			return nil
		}
		unknown = slices.DeleteFunc(unknown, func(nameOrID string) bool { return nameOrID == collection.Name || nameOrID == collection.ID.String() })
	}
	if len(unknown) > 0 {
		return unknownCollectionError(unknown[0])
	}
	return nil
}

// unknownCollectionError returns the error for a collection that does not exist.
func unknownCollectionError(nameOrID string) error {
	return fmt.Errorf("there is no collection %q; \"reeltally collections list\" shows all", nameOrID)
}
