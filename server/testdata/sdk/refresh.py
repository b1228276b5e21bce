"""Refreshes a video. The server answers without content."""

from reeltally import ReelTally

ReelTally().refresh_video({"link": "01938c33-1c9e-7b54-a0d2-7f6e5d4c3b2a"})
print("refreshed")
