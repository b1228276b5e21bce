"""Prints the ids of all videos, one a line."""

from reeltally import ReelTally

for video in ReelTally().all_videos(order_by="created_at", limit=200):
    print(video["ad_id"])
