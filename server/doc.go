// Package server implements the HTTP API of openapi.yaml: the REST operations, the Model Context Protocol at /mcp, health checks,
// documentation pages and webhooks. It also serves the pages of the dashboard, which package web builds.
//
// Main types: Server answers requests. Options configures a Server. Caller is the authenticated sender of a request. Error is an error
// response with its code. View hides metrics from tiers that must not see them. RateStore counts requests.
//
// Start reading in routes.go, which lists the middleware in order. A request such as GET /videos/{ad_id} takes these steps:
//
//  1. routes.go: echo finds the route. middleware.go sets the request id, time limit, headers and body limit, logs the request and recovers
//     panics.
//  2. auth.go: the bearer token is looked up, and the Caller is stored in the request's context. If the token is invalid, the response is
//     401.
//  3. ratelimit.go: the request is counted for the organisation and the operation. Above the limit, the response is 429. If the token lacks
//     the operation's scope, the response is 403 (auth.go). inflight.go: the request waits if the organisation has too many concurrent requests.
//  4. validate.go and syntax.go: path, query and body are validated. If they violate the contract, the response is 400, 413 or 415.
//  5. convert.go chooses the format of the response, such as JSON or CSV. idempotency.go and conditional.go handle Idempotency-Key, ETag
//     and If-None-Match.
//  6. gen/api: the generated code decodes the request into api.GetVideoRequestObject and calls the operation.
//  7. videos.go: Server.GetVideo reads the video with Org.Video of package store, which queries the data of one organisation only.
//  8. videojson.go: appendVideo writes the JSON of the video and sets the metrics to null if the caller's View is masked (mask.go).
//
// answerList in list.go answers all lists. The type resource in tracking.go tracks and stops videos and accounts. errors.go maps all error
// codes to statuses and writes the error responses of handlers. openapi.yaml declares the rate group, scope and masking of each operation,
// and contract.go reads them when the server starts.
//
// signin.go, share.go, thumbnails.go and dashboard.go contain what the pages of the dashboard need from the server besides the API.
//
// To add an operation, describe it in openapi.yaml with its x- members and run `make gen`. Then implement the method that the compiler
// reports as missing, and test it. The test suite fails if a declared status is never tested.
package server
