"""Tells Schemathesis for which valid requests an error response is correct. The script `check` passes this file to Schemathesis."""

import uuid

import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

# These are the error codes of rules that a schema of OpenAPI cannot express. If a request matches the schemas, the server may refuse it with
# status 400 only for these codes, or for a year that is not allowed (see YEARS).
BEYOND_SCHEMAS = frozenset({
    "character",  # a character that x-text forbids; patterns forbid only those in ASCII, because PHP compares patterns with single bytes
    "conflict",  # two parameters that exclude each other
    "encoding",  # NUL in a string, invalid UTF-8
    "invalid_cursor",  # only the server can create cursors
    "invalid_url",
    "range",  # an end before its beginning, or a day that the tier does not show
    "unsupported_link",
    "unsupported_platform",
    "wrong_kind",
})


# The error for a year that is not allowed contains this text. A schema cannot limit years, so the contract states the limits in a description.
YEARS = "in the years 1970 to 2999"


@schemathesis.hook
def before_call(context, case, kwargs):
    """Remove invented cursors from valid requests, because every list refuses them, and give each request its own Idempotency-Key."""
    if not (case.meta and case.meta.generation.mode.is_positive):
        return
    if case.query:
        case.query.pop("cursor", None)
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid.uuid4())


@schemathesis.check
def accepts_valid_data(ctx, response, case):
    """Do the check positive_data_acceptance, which requires that valid data is accepted, but allow the errors that are correct for valid data."""
    kind = response.headers.get("content-type", [""])[0].partition(";")[0]
    if response.status_code == 400 and kind == "application/problem+json":
        problem = response.json()
        faults = [fault for fault in problem.get("errors", []) if YEARS not in fault["detail"]]
        codes = {fault["code"] for fault in faults}
        if not problem.get("errors"):
            codes = {problem["code"]}
        if codes <= BEYOND_SCHEMAS:
            return None
    # 422 is correct if a bulk request failed for every item, or if its Idempotency-Key was used before with another body.
    if response.status_code == 422 and (kind == "application/json" or response.json()["code"] == "idempotency_key_reused"):
        return None
    # 412 is correct, because a generated If-Match header never has the current version.
    if response.status_code == 412:
        return None
    return positive_data_acceptance(ctx, response, case)
