"""Calls five operations, and prints as JSON the error of each call. It raises any error that does not come from the library."""

import io
import json
from collections.abc import Callable

from reeltally import ReelTally, ReelTallyError

reeltally = ReelTally()
file = io.BytesIO()
calls: list[Callable[[], object]] = [
    lambda: reeltally.list_events(),
    lambda: list(reeltally.all_videos()),
    lambda: reeltally.track_videos({"links": ["https://www.tiktok.com/@one/video/7338812345678901234"]}),
    lambda: reeltally.delete_webhook("01938c33-1c9e-7b54-a0d2-7f6e5d4c3b2a"),
    lambda: reeltally.download("/videos", file),
]
errors: list[dict[str, object]] = []
for call in calls:
    try:
        call()
        errors.append({})
    except ReelTallyError as error:
        errors.append({"status": error.status, "code": error.code, "contentType": error.content_type, "body": error.body, "message": str(error)})
assert file.getvalue() == b""
print(json.dumps(errors))
