package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/reeltally/reeltally/cmd/internal/boot"
	"github.com/reeltally/reeltally/gen/client"
)

// apiCommand is embedded in the commands that call the API of a server.
type apiCommand struct {
	URL   string      `name:"url" setting:"REELTALLY_URL" placeholder:"URL" help:"Address of the server. Without it, the address that \"reeltally login\" stored."`
	Token boot.Secret `setting:"REELTALLY_TOKEN" placeholder:"TOKEN" help:"Token of the API. Without it, the token that \"reeltally login\" stored. Other users of the machine can see arguments; prefer the variable."`
	loginFile
}

// connect returns a client for the server. The address and the token come from the flags, or from the file of
// `reeltally login` if a flag is missing.
func (c apiCommand) connect() (*client.ReelTally, error) {
	address, token := strings.TrimRight(c.URL, "/"), c.Token.Reveal()
	if address == "" || token == "" {
		saved, err := c.readLogin()
		if err != nil {
			return nil, err
		}
		if address == "" {
			address = saved.URL
		}
		// Send a stored token only to the server for which it was stored.
		if token == "" && address == saved.URL {
			token = saved.Token
		}
	}
	if address == "" {
		return nil, boot.UsageError{Err: errors.New("the address of the server is unknown: run \"reeltally login\", or set REELTALLY_URL and REELTALLY_TOKEN")}
	}
	if err := boot.CheckBaseURL("REELTALLY_URL", address); err != nil {
		return nil, err
	}
	if token == "" {
		return nil, boot.UsageError{Err: fmt.Errorf("there is no token for %s: run \"reeltally login --url %s\", or set REELTALLY_TOKEN", address, address)}
	}
	return client.New(address, token)
}

// maxLinks is the largest number of links or ids in one request of the API.
const maxLinks = 500

// maxPage is the largest number of entries of a page of the API.
const maxPage = 5000

// argumentsOrLines returns the arguments or else the non-blank lines of standard input. If both are
// missing, the error names argumentNoun, a plural such as "links".
func argumentsOrLines(arguments []string, stdin io.Reader, argumentNoun string) ([]string, error) {
	if len(arguments) == 0 && stdin != nil {
		in := bufio.NewScanner(stdin)
		in.Buffer(nil, maxLine)
		for in.Scan() {
			if line := strings.TrimSpace(in.Text()); line != "" {
				arguments = append(arguments, line)
			}
		}
		if err := in.Err(); err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
	}
	if len(arguments) == 0 {
		return nil, boot.UsageError{Err: fmt.Errorf("no %s were given: pass them as arguments, or write them to standard input, each on its own line", argumentNoun)}
	}
	return arguments, nil
}

// pageSize returns the number of entries of a list that a command gets with one request. The parameter limit
// says how many entries the command needs; 0 means all entries.
func pageSize(limit int) int32 {
	if limit == 0 || limit > maxPage {
		limit = maxPage
	}
	return int32(limit)
}

// orderDirection returns the value of the API parameter for the direction of a list. For the descending direction it returns "", because
// descending is the default of the API.
func orderDirection(ascending bool) client.OrderDirection {
	if ascending {
		return client.OrderDirectionAsc
	}
	return ""
}

// firstEntries returns the first entries of a list. The parameter limit is the maximum number of entries; 0 means all entries.
func firstEntries[T any](entries iter.Seq2[T, error], limit int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for entry, err := range entries {
			if n++; !yield(entry, err) || n == limit {
				return
			}
		}
	}
}

// warnIfMasked returns the entries of a list unchanged. It writes one warning to w if the
// organisation's tier hides the metrics of an entry.
func warnIfMasked[T any](w io.Writer, entries iter.Seq2[T, error], isMasked func(T) *bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		warned := false
		for entry, err := range entries {
			if masked := isMasked(entry); err == nil && masked != nil && *masked && !warned {
				warned = true
				_, _ = fmt.Fprintln(w, tierWarning)
			}
			if !yield(entry, err) {
				return
			}
		}
	}
}

// printEntries prints entries as JSON, one object a line, or as a table.
func printEntries[T any](w io.Writer, entries iter.Seq2[T, error], asJSON bool, columns []column, row func(T) []string) error {
	var rows [][]string
	for entry, err := range entries {
		if err != nil {
			return err
		}
		if asJSON {
			if err := writeJSON(w, entry); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, row(entry))
	}
	if asJSON {
		return nil
	}
	return writeColumns(w, columns, rows)
}
