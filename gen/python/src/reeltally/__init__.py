"""Client of ReelTally, which tracks short-form videos and the accounts that post them."""

from . import types
from ._client import Client, ReelTallyError
from .api import ReelTally

__all__ = ["Client", "ReelTally", "ReelTallyError", "types"]
