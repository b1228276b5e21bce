"""What the operations have in common: authentication, retries, errors and pages."""

from __future__ import annotations

import http.client
import json
import os
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_RETRIED = {429, 502, 503, 504}


class ReelTallyError(Exception):
    """The error of a response that is not successful. Compare `code`, not the message."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None) -> None:
        super().__init__(problem.get("detail") or problem.get("title") or f"the server answered with status {status}")
        self.status = status
        """The status of HTTP."""
        self.code: str = problem.get("code", "")
        """The code of the error, such as rate_limited. It is "" if a proxy answered."""
        self.title: str = problem.get("title", "")
        self.request_id: str = problem.get("request_id", "")
        """The id of the request in the log of the server."""
        self.errors: list[dict[str, Any]] = problem.get("errors", [])
        """The faults of a request with status 400."""
        self.retry_after = retry_after
        """The seconds after which the request can be repeated, or None."""


class Client:
    """Sends requests. Its methods can be called by several threads at the same time."""

    def __init__(self, base_url: str | None = None, token: str | None = None, *, max_retries: int = 4, max_wait: float = 90, timeout: float = 60) -> None:
        """Without base_url and token, they are the environment variables REELTALLY_URL and REELTALLY_TOKEN. A request is repeated up to max_retries times
        after 429, 502, 503, 504 and failures of the network, after a wait of at most max_wait seconds. An attempt may take timeout seconds."""
        base_url = base_url or os.environ.get("REELTALLY_URL")
        token = token or os.environ.get("REELTALLY_TOKEN")
        if not base_url:
            raise ValueError("base_url is missing: pass it, or set REELTALLY_URL")
        if not token:
            raise ValueError("token is missing: pass it, or set REELTALLY_TOKEN")
        self.base_url = base_url.rstrip("/")
        self.max_retries = max_retries
        self.max_wait = max_wait
        self.timeout = timeout
        self._authorization = f"Bearer {token}"

    def request(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None, keyed: bool = False,
                idempotency_key: str | None = None, headers: Mapping[str, str] | None = None, accept: str = "application/json") -> Any:
        """Sends a request and returns the decoded JSON."""
        sent = {"Accept": accept, "User-Agent": "reeltally-python", **(headers or {})}
        if keyed:
            sent["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        request = urllib.request.Request(self.base_url + path + _query_text(query or {}), data=data, headers=sent, method=method)
        request.add_unredirected_header("Authorization", self._authorization)  # the token is not sent to the target of a redirect
        repeatable = keyed or method != "POST"  # a POST without a key may have taken effect although its answer was lost
        attempt = 0
        while True:
            wait = min(8.0, 0.5 * 2**attempt) * random.uniform(0.5, 1)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as response:
                    return _content_of(response)
            except urllib.error.HTTPError as refused:
                if refused.code == 422 and refused.headers.get_content_type() == "application/json":
                    return _content_of(refused)  # the answer to a bulk request is a result: it says for each entry why it failed
                error = _error_of(refused)
                again = error.status == 429 or error.code == "idempotency_key_in_use" or (repeatable and error.status in _RETRIED)
                wait = error.retry_after if error.retry_after is not None else wait
                if not again or attempt >= self.max_retries or wait > self.max_wait:
                    raise error from None
            except (OSError, http.client.HTTPException):  # the network failed, or the answer was cut
                if not repeatable or attempt >= self.max_retries:
                    raise
            time.sleep(wait)
            attempt += 1

    def text(self, path: str, query: Mapping[str, Any] | None = None, *, accept: str = "text/csv") -> str:
        """Reads a list or history as a text in another format: text/csv or application/x-ndjson."""
        return str(self.request("GET", path, query=query, accept=accept))

    def pages(self, read: Callable[[str | None], dict[str, Any]], cursor: str | None = None) -> Iterator[Any]:
        """Yields the entries of all pages that read returns, from the given cursor on."""
        while True:
            page = read(cursor)
            yield from page["data"]
            cursor = page.get("pagination", page).get("next_cursor")
            if cursor is None:
                return


def quote(text: str) -> str:
    """Returns a text for a part of a path."""
    return urllib.parse.quote(text, safe="")


def _query_text(query: Mapping[str, Any]) -> str:
    parts = []
    for name, value in query.items():
        if value is None:
            continue
        items = value if isinstance(value, (list, tuple)) else [value]
        parts.append(name + "=" + ",".join(quote(str(item).lower() if isinstance(item, bool) else str(item)) for item in items))
    return "?" + "&".join(parts) if parts else ""


def _content_of(response: Any) -> Any:
    content = response.read()
    if not content:
        return None
    if response.headers.get_content_type() == "application/json":
        return json.loads(content)
    return content.decode()


def _error_of(response: urllib.error.HTTPError) -> ReelTallyError:
    with response:
        try:
            problem = json.loads(response.read())
        except ValueError:  # a proxy answered
            problem = {}
    retry_after = response.headers.get("Retry-After")
    seconds = float(retry_after) if retry_after and retry_after.isdigit() else None
    return ReelTallyError(response.code, problem if isinstance(problem, dict) else {}, seconds)
