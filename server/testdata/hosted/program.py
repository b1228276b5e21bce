"""Could belong to a customer of a hosted service: calls every operation of the service's API, which ReelTally has too.

Only the address and the token are those of the server under test.
"""

import json
import os
import urllib.parse
import urllib.request
from datetime import datetime


def call(method, path, body=None):
    request = urllib.request.Request(
        os.environ["REELTALLY_URL"] + path,
        method=method,
        headers={"Authorization": "Bearer " + os.environ["REELTALLY_TOKEN"], "Content-Type": "application/json"},
        data=None if body is None else json.dumps(body).encode(),
    )
    with urllib.request.urlopen(request) as response:
        text = response.read()
    return json.loads(text) if text else None


link = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234"
quoted = urllib.parse.quote(link, safe="")
collection = call("POST", "/collections", {"name": "Launch", "access": "private"})["id"]
video = call("POST", "/videos", {"link": link, "collection_ids": [collection], "collection_names": ["Spring"]})
assert "/video/tiktok/" in video["directUrl"], video
assert "already" in call("POST", "/videos", {"link": link})["error"]
bulk = call("POST", "/videos/bulk", {"links": ["https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/9bZkp7q19f0"]})
assert bulk["success"] and bulk["summary"]["succeeded"] == 2 and bulk["trackingEnqueued"] and isinstance(bulk["warnings"], list), bulk
others = [result["videoId"] for result in bulk["results"]]

listed = call("GET", "/videos?order_by=latest_views&order_direction=asc&limit=2&collections=Launch")
assert listed["pagination"]["total"] == 1 and listed["filters"]["collections"] == ["Launch"], listed
one = call("GET", "/videos/" + quoted)
assert one["ad_id"] == video["videoId"] and set(one["label_names"]) == {"Launch", "Spring"}, one
assert datetime.fromisoformat(one["created_at"])
assert isinstance(call("GET", f"/videos/{quoted}/history"), list)
account = one["linked_account_id"]
assert [v["ad_id"] for v in call("GET", f"/accounts/{account}/videos")] == [video["videoId"]]

assert call("GET", "/collections")["count"] == 2
call("PATCH", f"/collections/{collection}", {"name": "Launch 2"})
found = call("GET", f"/collections/{collection}?include_counts=true")
assert found["name"] == "Launch 2" and found["video_count"] == 1, found
assert call("POST", f"/collections/{collection}/videos", {"video_ids": others})["videos_added"] == 2
assert call("GET", f"/collections/{collection}/videos?limit=2")["pagination"]["total_pages"] == 2
assert call("DELETE", f"/collections/{collection}/videos", {"video_ids": others})["videos_removed"] == 2
assert call("POST", f"/collections/{collection}/accounts", {"account_ids": [account]})["accounts_added"] == 1
assert call("GET", f"/collections/{collection}/accounts")["pagination"]["total"] == 1
assert call("DELETE", f"/collections/{collection}/accounts", {"account_ids": [account]})["accounts_removed"] == 1

assert call("DELETE", "/videos", {"id": link})["message"]
assert call("DELETE", "/videos/" + others[0])["message"]
assert call("DELETE", "/videos/bulk", {"ids": others[1:]})["summary"]["succeeded"] == 1
assert call("DELETE", f"/collections/{collection}", {})["deleted_id"] == collection
assert call("GET", "/videos/" + video["videoId"])["removed"]
print("done")
