package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/internal/words"
	"github.com/reeltally/reeltally/store"
)

type deleteOrgCommand struct {
	databaseCommand
	boot.Logging
	Org     string  `arg:"" placeholder:"NAME|ID" help:"Name or id of the organisation."`
	Confirm *string `placeholder:"NAME" help:"Name of the organisation, to delete it without a question. Without a terminal, it is required."`
}

// Help returns the text that --help shows below the summary of the command.
func (deleteOrgCommand) Help() string {
	return "The deletion cannot be undone. Make a backup or an export first. The organisation's tokens, sessions and share pages stop working at once. " +
		"The data are deleted in short steps while servers and collectors continue to work. If the command is interrupted, run it again to continue.\n\n" +
		"Example: reeltally org delete 'Northwind Studio' --confirm 'Northwind Studio'"
}

// Run deletes the organisation if the user has confirmed its name.
func (c *deleteOrgCommand) Run(ctx context.Context, p boot.Process) error {
	return c.withStore(ctx, p, func(st *store.Store) error {
		org, err := findAnyOrganisation(ctx, st, c.Org)
		if err != nil {
			return err
		}
		size, err := st.OrganisationSize(ctx, org.ID)
		if err != nil {
			return err
		}
		if err := c.requireConfirmation(ctx, p, org, size); err != nil {
			return err
		}
		bar := newProgress(p.Stderr, c.Logger(p.Stderr), "delete", "rows", 0)
		var deleted int64
		err = st.DeleteOrganisation(ctx, org.ID, func(rows int64) {
			deleted = rows
			bar.showDone(ctx, rows, 0)
		})
		bar.finish(ctx)
		if errors.Is(err, context.Canceled) && ctx.Err() != nil {
			return fmt.Errorf("interrupted: the organisation cannot be used any more; to delete the rest of its data, run: reeltally org delete %s", org.ID)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(p.Stdout, "Deleted the organisation %s (%s): %s. Backups, exports and logs can still contain its data.\n", plainText(org.Name), org.ID, numberWithNoun(int(deleted), "row"))
		return err
	})
}

// requireConfirmation returns nil if --confirm is the organisation's name, or if the user types the name on the terminal. Otherwise it returns an
// error that says how to confirm.
func (c *deleteOrgCommand) requireConfirmation(ctx context.Context, p boot.Process, org store.Organisation, size store.OrganisationSize) error {
	if c.Confirm != nil {
		if *c.Confirm != org.Name {
			return boot.UsageError{Err: fmt.Errorf("nothing was deleted: --confirm is %q, but the name of the organisation %s is %q", *c.Confirm, org.ID, org.Name)}
		}
		return nil
	}
	terminal, ok := p.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return boot.UsageError{Err: fmt.Errorf("nothing was deleted: without a terminal, add --confirm with the name of the organisation, which is %q", org.Name)}
	}
	if _, err := io.WriteString(p.Stderr, deletionQuestion(org, size)); err != nil {
		return err
	}
	typed, err := readTypedLine(ctx, terminal)
	if err != nil {
		return fmt.Errorf("nothing was deleted: %w", err)
	}
	if strings.TrimSpace(typed) != org.Name {
		return errors.New("nothing was deleted: the typed text is not the name of the organisation")
	}
	return nil
}

// readTypedLine reads a line. It returns an error if ctx ends first.
func readTypedLine(ctx context.Context, r io.Reader) (line string, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		line, err = bufio.NewReader(io.LimitReader(r, maxLine)).ReadString('\n')
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err() // the end of the program ends the goroutine
	case <-done:
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return line, err
}

// deletionQuestion returns the text that asks the user to confirm the deletion of an organisation.
func deletionQuestion(org store.Organisation, size store.OrganisationSize) string {
	var b strings.Builder
	if org.DeletingSince != nil {
		fmt.Fprintf(&b, "The deletion of the organisation %s (%s) began at %s and is not finished. It still has ", plainText(org.Name), org.ID, formatInstant(org.DeletingSince, ""))
	} else {
		fmt.Fprintf(&b, "This deletes the organisation %s (%s) with ", plainText(org.Name), org.ID)
	}
	fmt.Fprintf(&b, "%s.\n", words.JoinWithAnd([]string{numberWithNoun(int(size.Videos), "video"), numberWithNoun(int(size.Accounts), "account"),
		numberWithNoun(int(size.Collections), "collection"), numberWithNoun(int(size.Reports), "report"), numberWithNoun(int(size.Tokens), "token")}))
	b.WriteString("All histories, share pages, webhooks and events of the organisation are deleted too. This cannot be undone.\n")
	if org.DeletingSince == nil {
		fmt.Fprintf(&b, "To keep a copy, press Ctrl-C and first run: reeltally backup --out FILE, or: reeltally export --org %s --include-removed --out FILE\n", org.ID)
	}
	b.WriteString("Type the name of the organisation to delete it: ")
	return b.String()
}
