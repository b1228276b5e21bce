// Package server answers the requests of openapi.yaml.
//
// The route of a request, GET /videos/{ad_id} for example:
//
//  1. routes.go: echo finds the template of the path; request id, log, recover, body limit.
//  2. auth.go: the bearer token becomes a Caller in the request's context; 401 ends here.
//  3. ratelimit.go: one call is counted for the organisation and operation; 429 ends here, then 403 for a missing scope.
//  4. validate.go: path, query and body are held against the contract; 400, 413, 415 end here.
//  5. gen/api: the generated code binds them to api.GetVideoRequestObject and calls
//  6. videos.go: Server.GetVideo reads the request, calls
//  7. store/videos.go: Org.Video, one query of one organisation, and
//  8. videos.go: ToAPIVideo builds the answer as the caller's View lets it be seen (mask.go).
//
// Every error of steps 1 to 8 ends in errors.go, the only place that knows statuses and writes error bodies. What
// an operation is (its limit, its scope, whether it masks) stands in openapi.yaml alone; operations.go reads it at the start.
//
// To add an operation: write it in openapi.yaml with its x- facts, `make gen`, implement the method that the compiler asks
// for in the file of its tag, and test it in that file's test: the suite fails while a declared answer was never seen.
package server
