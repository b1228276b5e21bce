"""Changes a collection and a webhook, whose ids are the arguments of this program.

First it changes only their name and address, and prints their other members. Then it removes these other members.
"""

import sys

from reeltally import ReelTally

collection, webhook = sys.argv[1:]
client = ReelTally()
client.update_collection(collection, {"name": "Changed"})
kept = client.get_collection(collection)
changed = client.update_webhook(webhook, {"url": "https://example.com/changed"})
print(kept["parent_id"], kept["share_expires_at"], changed["description"])
client.update_collection(collection, {"parent_id": None, "share_expires_at": None, "hashtags": []})
client.update_webhook(webhook, {"description": "", "event_types": []})
