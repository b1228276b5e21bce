package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/reeltally/reeltally/cmd/internal/boot/boottest"
	"github.com/reeltally/reeltally/store"
	"github.com/reeltally/reeltally/store/storetest"
)

func TestOrgRename_changesTheNameAndWarnsIfItIsTaken(t *testing.T) {
	t.Parallel()
	_, operator := newDatabase(t)
	operator("org", "create", "--name", "Second")
	status, stdout, stderr := operator("org", "rename", "Second", " Über & Co ")
	require.Zero(t, status, stderr)
	require.Empty(t, stderr)
	require.Regexp(t, `^Organisation Second \([0-9a-f-]{36}\) is now named Über & Co\.\n$`, stdout)
	status, _, stderr = operator("org", "rename", "Über & Co", "Über & Co")
	require.Zero(t, status, stderr)
	require.Empty(t, stderr, "an organisation can keep its name")
	status, _, stderr = operator("org", "rename", "Über & Co", "N")
	require.Zero(t, status, stderr)
	require.Contains(t, stderr, "Another organisation has the name N too")
	status, _, stderr = operator("org", "rename", "N", "X")
	require.Equal(t, 1, status)
	require.Contains(t, stderr, `2 organisations are named "N"`)
	status, _, stderr = operator("org", "rename", "N", " ")
	require.Equal(t, 2, status)
	require.Contains(t, stderr, "NEW-NAME")
	require.Contains(t, stderr, "1 to 100 characters")
}

func TestOrgDelete_needsTheExactNameWithoutATerminal(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			db := storetest.New(t, engine)
			doomed, kept := storetest.CreateOrgWithData(t, db), storetest.NewFreeOrg(t, db)
			operator := func(args ...string) (int, string, string) {
				return boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL}, args...)
			}
			for _, args := range [][]string{{}, {"--confirm", "tester"}, {"--confirm", ""}, {"--confirm", doomed.ID().String()}, {"--confirm", "Free"}} {
				status, stdout, stderr := operator(append([]string{"org", "delete", "Tester"}, args...)...)
				require.Equal(t, 2, status, stderr)
				require.Empty(t, stdout)
				require.Contains(t, stderr, "nothing was deleted")
				require.Contains(t, stderr, "--confirm")
				require.Contains(t, stderr, `"Tester"`)
			}
			require.Equal(t, 3, storetest.TrackedVideos(t, doomed))

			status, stdout, stderr := operator("org", "delete", doomed.ID().String(), "--confirm", "Tester")
			require.Zero(t, status, stderr)
			require.Regexp(t, `^Deleted the organisation Tester \([0-9a-f-]{36}\): \d+ rows\. Backups, exports and logs can still contain its data\.\n$`, stdout)
			require.Contains(t, stderr, `"msg":"task ended","task":"delete"`)
			all, err := db.Organisations(t.Context())
			require.NoError(t, err)
			require.Len(t, all, 1)
			require.Equal(t, kept.ID(), all[0].ID)

			status, _, stderr = operator("org", "delete", "Tester", "--confirm", "Tester")
			require.Equal(t, 1, status)
			require.Contains(t, stderr, "no such organisation: Tester")
		})
	}
}

func TestOrgDelete_continuesAnInterruptedDeletion(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o := storetest.CreateOrgWithData(t, db)
	operator := func(args ...string) (int, string, string) {
		return boottest.Run(t, run, nil, map[string]string{"REELTALLY_DATABASE_URL": db.URL}, args...)
	}
	db.Guard.BeforeStatement("DELETE FROM videos", func() { panic("interrupted") })
	require.Panics(t, func() { _ = db.DeleteOrganisation(t.Context(), o.ID(), func(int64) {}) })

	status, stdout, stderr := operator("org", "list")
	require.Zero(t, status, stderr)
	require.Contains(t, stdout, "being deleted since 20")
	status, stdout, stderr = operator("org", "list", "--json")
	require.Zero(t, status, stderr)
	var listed []orgJSON
	require.NoError(t, json.Unmarshal([]byte(stdout), &listed))
	require.NotNil(t, listed[0].DeletingSince)
	for _, args := range []string{"org rename Tester N", "org set-tier Tester basic", "token create --org Tester --name N", "export --org Tester", "login-link --org Tester"} {
		status, _, stderr = operator(strings.Fields(args)...)
		require.Equal(t, 1, status, args)
		require.Contains(t, stderr, "is being deleted; to finish its deletion, run: reeltally org delete "+o.ID().String(), args)
	}
	status, _, stderr = operator("org", "delete", "Tester", "--confirm", "Tester")
	require.Zero(t, status, stderr)
	_, err := db.Organisation(t.Context(), o.ID())
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestOrgDelete_asksForTheNameOnATerminal(t *testing.T) {
	t.Parallel()
	db := storetest.New(t, "sqlite")
	o := storetest.CreateOrgWithData(t, db)
	answer := func(text, end string) (status int, shown string) {
		screen, keyboard, terminal := openTerminal(t)
		done := make(chan int)
		go func() {
			done <- runOnTerminal(t, terminal, map[string]string{"REELTALLY_DATABASE_URL": db.URL}, "org", "delete", "Tester")
		}()
		require.Eventually(t, func() bool {
			return strings.HasSuffix(screen.String(), "Type the name of the organisation to delete it: ")
		}, startTimeout, 10*time.Millisecond)
		_, err := io.WriteString(keyboard, text+"\r")
		require.NoError(t, err)
		status = <-done
		screen.Await(t, startTimeout, end)
		return status, screen.String()
	}
	for _, wrong := range []string{"", "y", "tester"} {
		status, shown := answer(wrong, "nothing was deleted")
		require.Equal(t, 1, status, shown)
		require.Contains(t, shown, "with 3 videos, 1 account, 2 collections, 0 reports and 0 tokens.")
		require.Contains(t, shown, "This cannot be undone.")
		require.Contains(t, shown, "reeltally backup --out FILE")
	}
	require.Equal(t, 3, storetest.TrackedVideos(t, o))
	status, shown := answer("Tester", "Deleted the organisation Tester")
	require.Zero(t, status, shown)
	_, err := db.Organisation(t.Context(), o.ID())
	require.ErrorIs(t, err, store.ErrNotFound)
}
