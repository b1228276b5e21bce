package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/reeltally/reeltally/gen/client"
)

// getFromAPI sends a GET request to the API and decodes the JSON response into result, a pointer.
func (v *visit) getFromAPI(path string, query url.Values, result any) error {
	target := path
	given := url.Values{}
	// Leave out query parameters with an empty value.
	for name, values := range query {
		if len(values) > 0 && values[0] != "" {
			given[name] = values
		}
	}
	if len(given) > 0 {
		target += "?" + given.Encode()
	}
	_, err := v.callAPI(APIRequest{Method: http.MethodGet, Target: target}, result)
	return err
}

// sendJSON sends body as JSON to the API and returns the response status. It decodes the JSON
// response into result, a pointer, unless result is nil.
func (v *visit) sendJSON(method, path string, body, result any) (status int, err error) {
	encoded, err := encodeJSON(body)
	if err != nil {
		return 0, err
	}
	response, err := v.callAPI(APIRequest{Method: method, Target: path, Body: encoded}, result)
	return response.Status, err
}

// patch sends a PATCH request with body as JSON. If the item has changed since it had the given ETag, the API refuses the request with status 412. Without
// an ETag, the request overwrites earlier changes of the same members.
func (v *visit) patch(path, etag string, body any) error {
	encoded, err := encodeJSON(body)
	if err != nil {
		return err
	}
	_, err = v.callAPI(APIRequest{Method: http.MethodPatch, Target: path, Body: encoded, IfMatch: etag}, nil)
	return err
}

// encodeJSON returns value as JSON. Unlike json.Marshal, it does not escape the characters <, > and &, so a json.RawMessage in the value
// keeps them.
func encodeJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// sendJSONOnce sends a POST request for a form. If the visitor sends the same form again, the API repeats its
// first response, with null in place of secrets, and creates nothing new.
func (v *visit) sendJSONOnce(path string, body, result any) error {
	encoded, err := encodeJSON(body)
	if err != nil {
		return err
	}
	request := APIRequest{Method: http.MethodPost, Target: path, Body: encoded}
	// If the form has no key, the API does not detect that the form is sent twice.
	if key := v.r.PostFormValue("key"); key != "" {
		hash := sha256.Sum256(slices.Concat(encoded, []byte(key))) // the hash includes the body, because a visitor can go back, change the form and send the changed form with the same key
		request.IdempotencyKey = hex.EncodeToString(hash[:])
	}
	_, err = v.callAPI(request, result)
	return err
}

// getCollection reads the collection at path from the API. It also returns the ETag of the response.
func (v *visit) getCollection(path string) (found client.Collection, etag string, err error) {
	response, err := v.callAPI(APIRequest{Method: http.MethodGet, Target: path}, &found)
	return found, response.Header.Get("ETag"), err
}

// callAPI sends a request to the API. It decodes the JSON response into result, a pointer, unless result is nil. It returns a problem
// document (RFC 9457) as a *Problem. Any other response, whatever its status, is not an error.
func (v *visit) callAPI(request APIRequest, result any) (Response, error) {
	response, err := v.Backend.Do(v.id, v.r, request)
	if err != nil {
		return Response{}, err
	}
	if response.Header.Get("Content-Type") == "application/problem+json" {
		var p client.Problem
		if err := json.Unmarshal(response.Body, &p); err != nil {
			return Response{}, fmt.Errorf("cannot decode the response to %s %s with status %d: %w", request.Method, request.Target, response.Status, err)
		}
		problem := &Problem{Status: response.Status, Code: p.Code, Title: p.Title, Detail: p.Detail, Faults: p.Errors}
		if seconds, err := parseSeconds(response.Header.Get("Retry-After")); err == nil {
			problem.RetryAfter = seconds
		}
		return response, problem
	}
	// A bulk request whose links are all refused gets status 422 without a problem document.
	if result == nil || len(response.Body) == 0 {
		return response, nil
	}
	if err := json.Unmarshal(response.Body, result); err != nil {
		return Response{}, fmt.Errorf("cannot decode the response to %s %s with status %d: %w", request.Method, request.Target, response.Status, err)
	}
	return response, nil
}
