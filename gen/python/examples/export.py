"""Writes all videos as CSV to standard output."""

from reeltally import ReelTally

print(ReelTally().text("/videos", {"limit": 5000}), end="")
