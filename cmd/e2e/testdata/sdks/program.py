"""Uses the installed Python client.

Tracks 10,000 videos, lists some of them, reads all pages of the list, and exports the list to the file that the argument names. Prints how
many videos each step has handled.
"""

import sys

from reeltally import CSV, ReelTally
from reeltally.types import Video

VIDEOS = 10_000
PER_CALL = 500

reeltally = ReelTally()
tracked = 0
for first in range(0, VIDEOS, PER_CALL):
    links = [f"https://www.tiktok.com/@creator/video/73012345{n:011d}" for n in range(first, first + PER_CALL)]
    tracked += reeltally.track_videos({"links": links})["summary"]["succeeded"]

page = reeltally.list_videos(order_by="created_at", limit=5)

ids = set()
for video in reeltally.all_videos(limit=200):
    assert video["latest_views"] is None, video
    ids.add(video["ad_id"])

with open(sys.argv[1], "wb") as file:
    reeltally.download("/videos", file, {"limit": 5000}, format=CSV)
print(tracked, len(page["data"]), page["pagination"]["total"], len(ids))


# Each line with a comment "type: ignore" has a mistake. mypy --strict reports an error if a line with such a comment has no mistake, so mypy must
# find all of these mistakes.
def mistakes(video: Video) -> int:
    reeltally.list_videos(order_by="views")  # type: ignore[arg-type]
    reeltally.track_videos({})  # type: ignore[typeddict-item]
    return video["latest_views"]  # type: ignore[return-value]
