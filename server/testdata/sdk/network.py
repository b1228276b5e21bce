"""Creates a collection, and prints as JSON whether it was created, or the error.

It also prints whether the library refuses an empty token, and how it refuses an address without a scheme.
"""

import json
import os

from reeltally import ReelTally, ReelTallyError

try:
    ReelTally(os.environ["REELTALLY_URL"], "")
    refused = False
except ValueError:
    refused = True
try:
    ReelTally("localhost:8080", "rt_x")
    address = ""
except ValueError as error:
    address = f"{type(error).__name__}: {error}"
try:
    ReelTally().create_collection({"name": "Launch"})
    print(json.dumps({"created": True, "refused": refused, "address": address}))
except ReelTallyError as error:
    print(json.dumps({"status": error.status, "code": error.code, "message": str(error), "cause": error.__cause__ is not None, "refused": refused, "address": address}))
