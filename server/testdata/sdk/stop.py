"""Stops four videos with three operations. The first argument is the link of the first video, and the others are ids. The program prints as JSON the
result of the bulk operation."""

import json
import sys

from reeltally import ReelTally

link, id, *ids = sys.argv[1:]
reeltally = ReelTally()
reeltally.stop_video({"id": link})
reeltally.stop_video_by_id(id)
stopped = reeltally.stop_videos({"ids": ids})
print(json.dumps({"success": stopped["success"], "succeeded": stopped["summary"]["succeeded"]}))
