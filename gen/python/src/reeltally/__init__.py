"""Client of ReelTally, which tracks short-form videos and the accounts that post them."""

from . import types
from ._client import CSV, CSV_SEMICOLON, NDJSON, XLSX, Client, ReelTallyError
from .api import ReelTally

__all__ = ["CSV", "CSV_SEMICOLON", "NDJSON", "XLSX", "Client", "ReelTally", "ReelTallyError", "types"]
