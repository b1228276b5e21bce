"""Calls a server with the client of openapi-python-client."""

import os

from reel_tally_api_client import AuthenticatedClient
from reel_tally_api_client.api.authentication import authenticate
from reel_tally_api_client.models import Authentication

with AuthenticatedClient(base_url=os.environ["CONTRACT_URL"], token=os.environ["CONTRACT_TOKEN"]) as client:
    answer = authenticate.sync(client=client)
if not isinstance(answer, Authentication):
    raise SystemExit(f"unexpected answer: {answer}")
print("called as", answer.organisation.name)
