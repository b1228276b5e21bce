"""Changes and deletes a collection with its current ETag and with an ETag that is no longer current.

The arguments are the id of a collection, and the address of a server whose responses have no ETag. Prints the names that the collection had, the
statuses of the refused requests, and the error for a missing ETag.
"""

import sys

from reeltally import ReelTally, ReelTallyError

collection_id, address = sys.argv[1:]
reeltally = ReelTally()
collection, etag = reeltally.get_collection_with_etag(collection_id)
print(collection["name"])
reeltally.update_collection(collection_id, {"name": "New"}, if_match=etag)
changed, current = reeltally.get_collection_with_etag(collection_id, include_counts=True)
print(changed["name"])
try:
    reeltally.update_collection(collection_id, {"name": "Lost"}, if_match=etag)
except ReelTallyError as error:
    print(error.status)
try:
    reeltally.delete_collection(collection_id, if_match=etag)
except ReelTallyError as error:
    print(error.status)
if reeltally.delete_collection(collection_id, if_match=current)["success"]:
    print("deleted")
try:
    ReelTally(address).get_collection_with_etag(collection_id)
except ReelTallyError as error:
    print(error.status, error)
