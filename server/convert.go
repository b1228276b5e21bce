package server

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"
	"github.com/munnerz/goautoneg"

	"github.com/reeltally/reeltally/internal/words"
)

// This file chooses the format of responses. Every operation writes JSON. If the caller wants another
// format, convertedResponse converts the JSON.

// converter writes a JSON list in a format other than JSON, such as CSV.
type converter struct {
	contentType string
	suffix      string // suffix that makes the ETags of this format differ from the ETags of JSON
	convert     func(to io.Writer, from io.Reader, row *openapi3.Schema) error
}

// The media types of the formats other than JSON. Lists and histories can have these formats.
const (
	mediaCSV    = "text/csv"
	mediaNDJSON = "application/x-ndjson"
	mediaXLSX   = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

// semicolonCSV is the format of text/csv with the parameter delimiter=semicolon. The OpenAPI contract has it only as text/csv.
const semicolonCSV = mediaCSV + "; delimiter=semicolon"

// converters contains the converter of each format other than JSON. Except for semicolonCSV, the keys are the media types in the OpenAPI contract.
var converters = map[string]*converter{
	mediaCSV:     {mediaCSV + "; charset=utf-8; header=present", `-csv"`, convertToCSV},
	semicolonCSV: {mediaCSV + "; charset=utf-8; header=present; delimiter=semicolon", `-csv-semicolon"`, convertToSemicolonCSV},
	mediaNDJSON:  {mediaNDJSON, `-ndjson"`, convertToNDJSON},
	mediaXLSX:    {mediaXLSX, `-xlsx"`, convertToXLSX},
}

// chooseFormat is a middleware that converts responses to the format that Accept prefers. It answers
// with status 406 if Accept allows no format of the operation.
func (s *Server) chooseFormat(c echo.Context, op *operation, next echo.HandlerFunc) error {
	accept := strings.Join(c.Request().Header.Values("Accept"), ", ")
	format := acceptedFormat(accept, op.formats)
	switch format {
	case echo.MIMEApplicationJSON:
		return next(c)
	case "":
		return problem(CodeNotAcceptable, "Accept is %s, but this operation answers with %s.", words.Quote(accept), strings.Join(op.formats, " or "))
	}
	return convertListResponse(c, converters[format], op.row, next)
}

// acceptedFormat returns the format that the header Accept prefers, or "" if the header allows none of the formats. If the header is empty, it
// returns the first format. It returns semicolonCSV if the format is text/csv and the header has the parameter delimiter=semicolon.
func acceptedFormat(accept string, formats []string) string {
	if strings.TrimSpace(accept) == "" {
		return formats[0]
	}
	for _, accepted := range goautoneg.ParseAccept(strings.ToLower(accept)) { // ParseAccept sorts the formats by preference
		// A wildcard such as */* selects the first matching format.
		for _, format := range formats {
			kind, subtype, _ := strings.Cut(format, "/")
			if accepted.Q <= 0 || accepted.Type != kind && accepted.Type != "*" || accepted.SubType != subtype && accepted.SubType != "*" {
				continue
			}
			delimiter, has := accepted.Params["delimiter"]
			switch {
			case format != mediaCSV || !has || delimiter == "comma":
				return format
			case delimiter == "semicolon":
				return semicolonCSV
			}
		}
	}
	return ""
}

// rowSchema returns the schema of a list entry, or nil if the response contains no list. The list is
// the response or its member "data". If the response has alternatives (oneOf), the first alternative with a list counts.
func rowSchema(responseSchema *openapi3.Schema) *openapi3.Schema {
	if responseSchema.Type.Is("array") {
		return responseSchema.Items.Value
	}
	if data := responseSchema.Properties["data"]; data != nil && data.Value.Type.Is("array") {
		return data.Value.Items.Value
	}
	for _, either := range responseSchema.OneOf {
		if row := rowSchema(either.Value); row != nil {
			return row
		}
	}
	return nil
}

// convertListResponse calls the handler "next" and converts the JSON list in its response to the given
// format. entrySchema is the schema of a list entry.
func convertListResponse(c echo.Context, format *converter, entrySchema *openapi3.Schema, next echo.HandlerFunc) (err error) {
	h := c.Request().Header
	// An ETag of a converted list ends with the suffix of the format. Remove this suffix, because the operation compares the ETags of the caller
	// with the ETag of the JSON, which has no suffix. Drop ETags without the suffix, because they belong to other formats.
	if tags := h.Values("If-None-Match"); len(tags) > 0 && strings.TrimSpace(tags[0]) != "*" {
		h.Del("If-None-Match")
		for tag := range strings.SplitSeq(strings.Join(tags, ","), ",") {
			if tag, ok := strings.CutSuffix(trimEncodingSuffix(strings.TrimSpace(tag)), format.suffix); ok {
				h.Add("If-None-Match", tag+`"`)
			}
		}
	}
	response := c.Response()
	w := &convertedResponse{original: response.Writer, to: format, row: entrySchema}
	response.Writer = w
	finished := false
	defer func() {
		response.Writer = w.original
		if !finished { // the handler has panicked, so the response is incomplete
			_ = w.finish(errIncomplete)
		}
	}()
	err = next(c)
	finished = true
	if failed := w.finish(err); err == nil && failed != nil {
		panic(http.ErrAbortHandler) // ErrAbortHandler aborts the connection, which tells the client that the response is incomplete
	}
	return err
}

// errIncomplete ends the conversion of a response if the operation panics before the response is complete.
var errIncomplete = errors.New("the response is incomplete")

// convertedResponse is an http.ResponseWriter that converts JSON to another format while the JSON is
// written. Only responses with status 200 are converted.
type convertedResponse struct {
	original http.ResponseWriter
	to       *converter
	row      *openapi3.Schema
	json     *io.PipeWriter // pipe to which the operation writes JSON; nil if the response is not converted
	done     chan error     // when the conversion ends, it sends its error, or nil, to this channel
}

// Header returns the headers of the response.
func (w *convertedResponse) Header() http.Header { return w.original.Header() }

// WriteHeader sends the status. If the status is 200, it starts the conversion.
func (w *convertedResponse) WriteHeader(status int) {
	h := w.Header()
	if tag := h.Get("ETag"); tag != "" {
		h.Set("ETag", strings.TrimSuffix(tag, `"`)+w.to.suffix)
	}
	if status != http.StatusOK {
		w.original.WriteHeader(status)
		return
	}
	h.Set(echo.HeaderContentType, w.to.contentType)
	h.Del(echo.HeaderContentLength)
	w.original.WriteHeader(status) // the status is sent before the conversion starts, because a converter can write output before it reads any JSON
	read, write := io.Pipe()
	w.json, w.done = write, make(chan error, 1)
	go func() {
		err := w.to.convert(w.original, read, w.row)
		_ = read.CloseWithError(err) // if the conversion has failed, the operation's next write to the pipe also fails
		w.done <- err
	}()
}

// Write passes a part of the JSON to the converter. If the response is not converted, Write sends the part unchanged.
func (w *convertedResponse) Write(part []byte) (int, error) {
	if w.json == nil {
		return w.original.Write(part)
	}
	return w.json.Write(part)
}

// finish tells the converter that the JSON has ended, waits for the conversion and returns its error. operationErr is the error of the
// operation, or nil.
func (w *convertedResponse) finish(operationErr error) error {
	if w.json == nil {
		return nil
	}
	_ = w.json.CloseWithError(operationErr) // if operationErr is nil, the reader of the pipe gets io.EOF
	return <-w.done
}
