"""Sends one request with the timeout of the first argument, in seconds, and prints the organisation of the answer or the error."""

import sys

from reeltally import ReelTally, ReelTallyError

try:
    print(ReelTally(timeout=float(sys.argv[1]), max_retries=0).authenticate()["organisation"])
except ReelTallyError as error:
    print(error)
