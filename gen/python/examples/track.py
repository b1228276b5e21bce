"""Tracks the links in the arguments and prints the result for each."""

import sys

from reeltally import ReelTally, ReelTallyError

try:
    answer = ReelTally().track_videos({"links": sys.argv[1:]})
except ReelTallyError as error:
    sys.exit(f"{error.code}: {error}")
for result in answer["results"]:
    print(result["status"], result["url"])
for warning in answer["warnings"]:
    print(warning, file=sys.stderr)
