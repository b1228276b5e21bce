"""What the operations have in common: authentication, retries, errors, pages and downloads."""

from __future__ import annotations

import calendar
import email.utils
import http.client
import json
import os
import random
import re
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

# These are the formats in which Client.download writes lists and histories.
CSV = "text/csv"
CSV_SEMICOLON = "text/csv; delimiter=semicolon"
NDJSON = "application/x-ndjson"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

_RETRIED = {429, 502, 503, 504}
_MAX_ERROR_BODY = 200  # maximum length of the attribute body of an error


class ReelTallyError(Exception):
    """The error of a response that is not successful or has an unexpected type, or of a request that got no complete response. Compare `code`, not
    the message."""

    def __init__(self, status: int, problem: Mapping[str, Any], retry_after: float | None, *, content_type: str = "", body: str = "") -> None:
        super().__init__(problem.get("detail") or problem.get("title") or f"the server answered with status {status}")
        self.status = status
        """The status of HTTP. It is 0 if there was no complete response; `__cause__` is then the error of the network. It is 2xx if the response has
        an unexpected type, for example because a proxy answered with a login page."""
        self.content_type = content_type
        """The header Content-Type of the response, or ""."""
        self.body = body
        """The first characters of the body of the response, at most 200."""
        self.code: str = problem.get("code", "")
        """The code of the error, such as rate_limited. It is "" if a proxy answered, or if there was no complete response."""
        self.title: str = problem.get("title", "")
        self.request_id: str = problem.get("request_id", "")
        """The id of the request in the log of the server."""
        self.errors: list[dict[str, Any]] = problem.get("errors", [])
        """The faults of a request with status 400."""
        self.retry_after = retry_after
        """The seconds after which the request can be repeated, or None."""


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Follows no redirects, so that they are errors. urllib would send a GET request instead of a POST request, without the body. The response to the
    GET request would look like a success."""

    def http_error_302(self, req: Any, fp: Any, code: int, msg: str, headers: Any) -> None:
        return None

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class Client:
    """Sends requests. Its methods can be called by several threads at the same time."""

    def __init__(self, base_url: str | None = None, token: str | None = None, *, max_retries: int = 4, max_wait: float = 90, timeout: float = 60) -> None:
        """Without base_url and token, they are the environment variables REELTALLY_URL and REELTALLY_TOKEN. A request is repeated up to max_retries times
        after 429, 502, 503, 504 and failures of the network, after a wait of at most max_wait seconds. An attempt fails if the server sends
        nothing for timeout seconds. If an earlier attempt with the same Idempotency-Key still runs or was interrupted, the request is repeated for
        up to max_wait seconds, unless max_retries is 0."""
        base_url = os.environ.get("REELTALLY_URL") if base_url is None else base_url
        token = os.environ.get("REELTALLY_TOKEN") if token is None else token
        base_url, token = (base_url or "").strip(), (token or "").strip()  # a value from a file can end with a line break
        if not base_url:
            raise ValueError("base_url is missing or empty: pass it, or set REELTALLY_URL")
        if not re.match("https?://[^/]", base_url, re.IGNORECASE):
            raise ValueError(f"base_url is {base_url!r}: it must begin with https:// or http://, such as https://reeltally.example.com")
        if not token:
            raise ValueError("token is missing or empty: pass it, or set REELTALLY_TOKEN")
        self.base_url = base_url.rstrip("/")
        self.max_retries = max_retries
        self.max_wait = max_wait
        self.timeout = timeout
        self._token = token
        self._opener = urllib.request.build_opener(_NoRedirects)

    def request(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None, keyed: bool = False,
                idempotency_key: str | None = None, if_match: str | None = None, headers: Mapping[str, str] | None = None, accept: str = "application/json") -> Any:
        """Sends a request and returns the decoded JSON."""
        return self._send(_content_of, method, path, query, body, keyed, idempotency_key, if_match, headers, accept)

    def request_with_etag(self, method: str, path: str, *, query: Mapping[str, Any] | None = None, body: Any = None, keyed: bool = False,
                          idempotency_key: str | None = None, if_match: str | None = None, headers: Mapping[str, str] | None = None,
                          accept: str = "application/json") -> tuple[Any, str]:
        """Sends a request and returns the decoded JSON and the ETag of the response. A response without an ETag is a ReelTallyError."""
        content, etag = self._send(lambda response: (_content_of(response), _etag_of(response)), method, path, query, body, keyed, idempotency_key, if_match, headers, accept)
        return content, etag

    def _send(self, read: Callable[[Any], Any], method: str, path: str, query: Mapping[str, Any] | None, body: Any, keyed: bool,
              idempotency_key: str | None, if_match: str | None, headers: Mapping[str, str] | None, accept: str) -> Any:
        """Sends a request and returns what read returns for its response."""
        sent = {"Accept": accept, "User-Agent": "reeltally-python", **(headers or {})}
        if keyed:
            sent["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        if if_match is not None:
            sent["If-Match"] = if_match
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        request = self._request(method, self.base_url + path + _query_text(query or {}), sent, data)
        repeatable = keyed or method != "POST"  # a POST without a key may have taken effect although its response was lost
        return self._repeat(request, repeatable, read)

    def download(self, path: str, file: BinaryIO, query: Mapping[str, Any] | None = None, *, format: str = CSV) -> http.client.HTTPMessage:
        """Writes a list or history to a binary file in another format than JSON, as it arrives, so it needs little memory. The path is that of the
        operation, such as /videos. In CSV and NDJSON, all pages are read, and the line with the column names is written only once. In XLSX, one
        page is read. The result has the headers of the last page: after the path /history/export, Exported-Until is the value of updated_since for the
        next download. The request is repeated until a response begins, but not after that."""
        columns = None
        url = self.base_url + path + _query_text(query or {})
        while True:
            request = self._request("GET", url, {"Accept": format, "User-Agent": "reeltally-python"})
            with self._repeat(request, True, lambda response: response) as response:
                if format.startswith(CSV):
                    line = _received(response.readline)
                    if columns is None:
                        file.write(line)
                    elif columns != line:
                        raise ValueError("the columns changed during the download; start it again")
                    columns = line
                while chunk := _received(lambda: response.read(65536)):
                    file.write(chunk)
                if response.length:
                    raise _no_answer(http.client.IncompleteRead(b"", response.length))
                headers: http.client.HTTPMessage = response.headers
            following = re.search(r'<([^>]*)>;\s*rel="?next"?', headers.get("Link", ""))
            if following is None or not (format.startswith(CSV) or format == NDJSON):
                return headers
            # Copy only the query: another host must not get the token, whatever host the header Link names.
            url = urllib.parse.urlsplit(url)._replace(query=urllib.parse.urlsplit(following[1]).query).geturl()

    def _request(self, method: str, url: str, headers: dict[str, str], data: bytes | None = None) -> urllib.request.Request:
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        request.add_header("Authorization", f"Bearer {self._token}")
        return request

    def _repeat(self, request: urllib.request.Request, repeatable: bool, read: Callable[[Any], Any]) -> Any:
        """Sends a request and returns what read returns for its response. If the request or read fails, it repeats both."""
        attempt = 0
        key_wait = 0.0  # sum of the waits because an earlier attempt with this Idempotency-Key still ran or was interrupted
        key_retries = 0  # number of these waits
        while True:
            wait = min(8.0, 0.5 * 2**attempt) * random.uniform(0.5, 1)
            try:
                try:
                    response = self._opener.open(request, timeout=self.timeout)
                    if not _is_expected(response, request):
                        raise _type_error_of(response)
                    return read(response)
                except urllib.error.HTTPError as refused:
                    if refused.code != 422 or refused.headers.get_content_type() != "application/json":
                        raise
                    return _content_of(refused)  # the response to a bulk request is a result: it says for each entry why it failed
            except urllib.error.HTTPError as refused:
                error = _error_of(refused, self._redirect_message(refused, request))
                wait = error.retry_after if error.retry_after is not None else wait
                if error.code == "idempotency_key_in_use":
                    key_wait += wait
                    key_retries += 1
                    if self.max_retries <= 0 or key_wait > self.max_wait:
                        raise error from None
                else:
                    again = error.status == 429 or (repeatable and error.status in _RETRIED)
                    if not again or attempt - key_retries >= self.max_retries or wait > self.max_wait:
                        raise error from None
            except (OSError, http.client.HTTPException) as failure:  # the network failed, or the response was cut
                if not repeatable or attempt - key_retries >= self.max_retries:
                    raise _no_answer(failure) from failure
            time.sleep(wait)
            attempt += 1

    def _redirect_message(self, response: urllib.error.HTTPError, request: urllib.request.Request) -> str | None:
        """Returns a message that names the address to which a response redirects, or None if the response is no redirect. The message never contains the
        token."""
        location = response.headers.get("Location")
        if not 300 <= response.code < 400 or response.code == 304 or location is None:
            return None
        try:
            target = _shown_address(urllib.parse.urljoin(request.full_url, location))
        except ValueError:  # the Location is not an address
            return None
        requested = _shown_address(request.full_url)
        # The path of the operation, such as /videos, is not a part of the address of the server.
        operation = requested.removeprefix(_shown_address(self.base_url))
        if target.endswith(operation) and target != requested:
            target, advice = target.removesuffix(operation), "; use this as the address"
        else:
            advice = ": is a proxy or a login page in between?"
        return f"the server redirects to {target.replace(self._token, '…')}{advice}"

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


def _shown_address(url: str) -> str:
    """Returns an address for messages. It leaves out the user, the query and the fragment, because they can contain secrets."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _is_expected(response: Any, request: urllib.request.Request) -> bool:
    """Returns true if a successful response has a type that the header Accept of the request names. Otherwise, the response may be the page of a
    proxy. A response without content has no type."""
    if _is_empty(response):
        return request.get_method() != "GET"
    accepted = [_media_type(part) for part in (request.get_header("Accept") or "*/*").split(",")]
    return any("*" in media_type or media_type == _media_type(response.headers.get("Content-Type", "")) for media_type in accepted)


def _is_empty(response: Any) -> bool:
    """Returns true for a successful response without content, such as the response to a refresh."""
    return response.status == 204 or (response.status == 202 and not response.headers.get("Content-Type"))


def _media_type(text: str) -> str:
    """Returns a type without its parameters, such as charset."""
    return text.split(";")[0].strip().lower()


def _content_of(response: Any) -> Any:
    with response:
        content = response.read()
    if _is_empty(response):
        return None
    if response.headers.get_content_type() != "application/json":
        return content.decode()
    try:
        return json.loads(content)
    except ValueError as failure:
        problem = {"detail": f"the server answered with status {response.status} and JSON that cannot be read: {failure}"}
        raise _response_error(response, content, problem) from failure


def _etag_of(response: Any) -> str:
    """Returns the ETag of a response whose content was already read."""
    etag: str | None = response.headers.get("ETag")
    if not etag:
        raise _response_error(response, b"", {"detail": f"the server answered with status {response.status} and no ETag: does a proxy remove it?"})
    return etag


def _received(read: Callable[[], bytes]) -> bytes:
    """Returns the result of a function that reads from the network. If the network fails, it raises a ReelTallyError."""
    try:
        return read()
    except (OSError, http.client.HTTPException) as failure:
        raise _no_answer(failure) from failure


def _no_answer(failure: Exception) -> ReelTallyError:
    """Returns the error of a request that got no complete response."""
    reason = str(getattr(failure, "reason", None) or failure) or type(failure).__name__
    return ReelTallyError(0, {"detail": f"the server sent no complete response: {reason}"}, None)


def _type_error_of(response: Any) -> ReelTallyError:
    """Returns the error for a successful response with an unexpected type."""
    with response:
        content = response.read(4 * _MAX_ERROR_BODY)  # a character has at most 4 bytes
    content_type = response.headers.get("Content-Type", "")
    problem = {"detail": f'the server answered with status {response.status} and the unexpected Content-Type "{content_type}": '
               "is a proxy or a login page in between?"}
    return _response_error(response, content, problem)


def _error_of(response: urllib.error.HTTPError, redirect_message: str | None) -> ReelTallyError:
    content = b""
    with response:
        try:
            content = response.read()
            problem = json.loads(content)
        except (ValueError, OSError, http.client.HTTPException):  # a proxy answered, or the response is incomplete
            problem = {}
    if redirect_message is not None:
        problem = {"detail": redirect_message}
    return _response_error(response, content, problem if isinstance(problem, dict) else {})


def _retry_after(headers: http.client.HTTPMessage) -> float | None:
    """Returns the seconds that the header Retry-After says to wait. The header has a number of seconds or a time. A time is compared with the header Date
    of the response, because the clock of this machine can be wrong. The result is None if Retry-After is absent, invalid or zero, or if its time is not in
    the future."""
    text = headers.get("Retry-After", "")
    if text.isdecimal():
        return float(text) or None
    end, now = _timestamp(text), _timestamp(headers.get("Date", "")) or time.time()
    return end - now if end is not None and end > now else None


def _timestamp(text: str) -> float | None:
    """Returns a time of HTTP, such as Sun, 06 Nov 1994 08:49:37 GMT, as Unix time, or None if the text is no such time."""
    parsed = email.utils.parsedate(text)
    try:
        return None if parsed is None else float(calendar.timegm(parsed))
    except (ValueError, OverflowError):
        return None


def _response_error(response: Any, content: bytes, problem: Mapping[str, Any]) -> ReelTallyError:
    body = content.decode(errors="replace")[:_MAX_ERROR_BODY]
    return ReelTallyError(response.status, problem, _retry_after(response.headers), content_type=response.headers.get("Content-Type", ""), body=body)
