package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// These are the formats in which Download reads lists and histories.
const (
	CSV          = "text/csv"
	CSVSemicolon = "text/csv; delimiter=semicolon" // for spreadsheets that write decimals with a comma
	NDJSON       = "application/x-ndjson"          // only for /history/export
	XLSX         = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

// nextPage matches the address of the next page in the header Link.
var nextPage = regexp.MustCompile(`<([^>]*)>;\s*rel="?next"?`)

// Download writes a list or history to w and returns the headers of the last page. In formats other
// than CSV and NDJSON, it reads only one page. operationPath is a path such as "/videos".
func (c *ReelTally) Download(ctx context.Context, w io.Writer, operationPath string, query url.Values, format string) (http.Header, error) {
	isCSV := strings.HasPrefix(format, CSV)
	address, err := url.Parse(strings.TrimSuffix(c.Raw.Server, "/") + operationPath)
	if err != nil {
		return nil, err
	}
	address.RawQuery = query.Encode()
	for columns := ""; ; {
		response, err := c.requestFile(ctx, address.String(), format)
		if err != nil {
			return nil, err
		}
		// If the connection ends in the middle of the response, the request is not repeated, because the caller
		// already has a part of the response.
		err = copyPage(w, response.Body, isCSV, &columns)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, err
		}
		next := nextPage.FindStringSubmatch(response.Header.Get("Link"))
		if next == nil || !isCSV && format != NDJSON {
			// For /history/export, the header Exported-Until has the value of updated_since for the
			// next download.
			return response.Header, nil
		}
		following, err := url.Parse(next[1])
		if err != nil {
			return nil, err
		}
		address.RawQuery = following.RawQuery // copy only the query, because the host in the header Link may be wrong and must not get the token
	}
}

// AllJSON reads all pages of a list, one after the other, and returns the JSON of their entries. operationPath is a path such as "/videos". An error
// ends the sequence. If the response has no pages, because the query lacks paginated=true, AllJSON returns an error.
func (c *ReelTally) AllJSON(ctx context.Context, operationPath string, query url.Values) iter.Seq2[json.RawMessage, error] {
	type page struct {
		Data       []json.RawMessage `json:"data"`
		Pagination *struct {
			NextCursor *string `json:"next_cursor"`
		} `json:"pagination"`
		NextCursor json.RawMessage `json:"next_cursor"` // in lists without pagination
		HasMore    *bool           `json:"has_more"`    // in lists whose cursor is never null
	}
	return allPages(query.Get("cursor"), func(cursor string) ([]json.RawMessage, *string, error) {
		own := url.Values{}
		maps.Copy(own, query)
		if cursor != "" {
			own.Set("cursor", cursor)
		}
		address := strings.TrimSuffix(c.Raw.Server, "/") + operationPath + "?" + own.Encode()
		found, err := decodeResult[page](c.requestFile(wholeResponse(ctx), address, mediaJSON)) //nolint:bodyclose // decodeResult closes the body
		switch {
		case err != nil:
			return nil, nil, err
		case found.Pagination != nil:
			return found.Data, found.Pagination.NextCursor, nil
		case found.NextCursor == nil:
			return nil, nil, fmt.Errorf("the response of %s has no pages; add paginated=true to the query, if the operation has this parameter", operationPath)
		case found.HasMore != nil && !*found.HasMore:
			return found.Data, nil, nil
		}
		var next *string
		err = json.Unmarshal(found.NextCursor, &next)
		return found.Data, next, err
	})
}

// requestFile sends a GET request for a file in the given format. If the status is not 200, or the response has another
// media type, it returns an *Error.
func (c *ReelTally) requestFile(ctx context.Context, address, format string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	for _, edit := range c.Raw.RequestEditors {
		if err := edit(ctx, r); err != nil {
			return nil, err
		}
	}
	r.Header.Set("Accept", format)
	response, err := c.Raw.Client.Do(r)
	if err != nil || response.StatusCode == http.StatusOK && hasType(response, format) {
		return response, err
	}
	body, err := readBody(response)
	if err != nil {
		return nil, err
	}
	return nil, responseError(response, body)
}

// copyPage writes one page to w. It writes the line of CSV column names only once and stores it in
// *headerLine.
func copyPage(w io.Writer, page io.Reader, isCSV bool, headerLine *string) error {
	body := bufio.NewReader(page)
	if isCSV {
		line, err := body.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		switch {
		case *headerLine == "":
			*headerLine = line
			if _, err := io.WriteString(w, line); err != nil {
				return err
			}
		case line != *headerLine:
			return errors.New("the columns changed during the download; start it again")
		}
	}
	_, err := io.Copy(w, body)
	return err
}
