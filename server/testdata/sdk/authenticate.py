"""Sends one request, and prints whether the server accepted or refused it."""

from reeltally import ReelTally, ReelTallyError

try:
    ReelTally().authenticate()
    print("accepted")
except ReelTallyError:
    print("refused")
