"""What Schemathesis is told about refusals. The script check hands it this file."""

import uuid

import schemathesis
from schemathesis.specs.openapi.checks import positive_data_acceptance

# Faults that no schema can express. A request that fits the schemas may still be refused for these, and for no others.
BEYOND_SCHEMAS = frozenset({
    "conflict",  # two parameters that exclude each other
    "encoding",  # NUL in a string, invalid UTF-8
    "invalid_cursor",  # cursors are made by the server alone
    "invalid_url",
    "range",  # an end before its beginning, or a day that the tier does not reach
    "unsupported_link",
    "unsupported_platform",
    "wrong_kind",
})


# Dates and times have formats, which know no first and last year; the contract names them in words.
YEARS = "in the years 1970 to 2999"


@schemathesis.hook
def before_call(context, case, kwargs):
    """Make what is meant to be valid answerable: without a made-up cursor, with which no list would ever answer, and with a key of its own."""
    if not (case.meta and case.meta.generation.mode.is_positive):
        return
    if case.query:
        case.query.pop("cursor", None)
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid.uuid4())


@schemathesis.check
def accepts_valid_data(ctx, response, case):
    """Valid data is accepted, as positive_data_acceptance wants it, unless the problem names a fault beyond schemas."""
    kind = response.headers.get("content-type", [""])[0].partition(";")[0]
    if response.status_code == 400 and kind == "application/problem+json":
        problem = response.json()
        faults = [fault for fault in problem.get("errors", []) if YEARS not in fault["detail"]]
        codes = {fault["code"] for fault in faults}
        if not problem.get("errors"):
            codes = {problem["code"]}
        if codes <= BEYOND_SCHEMAS:
            return None
    # The answer to a bulk request of which nothing could be done, entry by entry; or a key that came with another body before.
    if response.status_code == 422 and (kind == "application/json" or response.json()["code"] == "idempotency_key_reused"):
        return None
    # No generated If-Match names the present state.
    if response.status_code == 412:
        return None
    return positive_data_acceptance(ctx, response, case)
