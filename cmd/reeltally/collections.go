package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

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
}

// Run adds the named videos and accounts to the collection.
func (c *collectionsAdd) Run(ctx context.Context, p boot.Process) error {
	return c.changeMembers(ctx, p, "added", func(api *client.ReelTally, collection uuid.UUID, ids []uuid.UUID) (any, int32, error) {
		response, err := api.AddCollectionVideos(ctx, collection, client.AddCollectionVideosOptions{VideoIds: ids})
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
