"""Calls every hand-written function of the client library, and prints the results."""

import json
import sys
from typing import Any, Callable

from reeltally import ReelTally, ReelTallyError

reeltally = ReelTally()
out: dict[str, Any] = {}
out["organisation"] = reeltally.authenticate()["organisation"]["name"]  # the test answers the first request with 429; the client retries
out["created"] = reeltally.create_collection({"name": "Launch"})["id"]  # the test drops the first response; the client retries
out["collections"] = [collection["name"] for collection in reeltally.all_collections()]
tracked = reeltally.track_videos({"links": sys.argv[1:]})
out["statuses"] = [result["status"] for result in tracked["results"]]
out["failed"] = reeltally.track_videos({"links": ["https://example.com/1"]})["success"]
out["ids"] = [video["ad_id"] for video in reeltally.all_videos(order_by="created_at", limit=3)]
out["byLink"] = reeltally.get_video(sys.argv[1])["ad_id"]
out["first"] = len(reeltally.list_videos(collections=["none", "other"], include_removed=True)["data"])
reeltally.update_collection(out["created"], {"name": "Launch 2"})
calls: list[Callable[[], object]] = [lambda: reeltally.get_video(out["created"]), lambda: reeltally.list_videos(limit=0)]
out["errors"] = []
for call in calls:
    try:
        call()
    except ReelTallyError as error:
        names = [fault.get("name") for fault in error.errors]
        out["errors"].append({"status": error.status, "code": error.code, "request": error.request_id != "", "names": names})
print(json.dumps(out))
