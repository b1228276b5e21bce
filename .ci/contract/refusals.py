"""What Schemathesis is told about refusals. The script check hands it this file."""

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


@schemathesis.hook
def before_call(context, case, kwargs):
    """Leave a made-up cursor out of a request that is meant to be valid: with it, no list would ever answer."""
    if case.meta and case.meta.generation.mode.is_positive and case.query:
        case.query.pop("cursor", None)


@schemathesis.check
def accepts_valid_data(ctx, response, case):
    """Valid data is accepted, as positive_data_acceptance wants it, unless the problem names a fault beyond schemas."""
    kind = response.headers.get("content-type", [""])[0].partition(";")[0]
    if response.status_code == 400 and kind == "application/problem+json":
        problem = response.json()
        codes = {fault["code"] for fault in problem.get("errors", [])} or {problem["code"]}
        if codes <= BEYOND_SCHEMAS:
            return None
    # The answer to a bulk request of which nothing could be done, entry by entry.
    if response.status_code == 422 and kind == "application/json":
        return None
    # No generated If-Match names the present state.
    if response.status_code == 412:
        return None
    return positive_data_acceptance(ctx, response, case)
