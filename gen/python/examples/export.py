"""Writes all videos as CSV to standard output."""

import sys

from reeltally import ReelTally

ReelTally().download("/videos", sys.stdout.buffer, {"limit": 5000})
