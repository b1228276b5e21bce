#!/usr/bin/env bash
# This program could belong to a customer of a hosted service. It calls every operation of the service's API, which ReelTally has
# too. Only the address and the token are those of the server under test.
set -euo pipefail

# call METHOD PATH [BODY] sends a request and prints the response body.
call() {
  curl -sS --fail-with-body -X "$1" "$REELTALLY_URL$2" -H "Authorization: Bearer $REELTALLY_TOKEN" -H 'Content-Type: application/json' ${3:+-d "$3"}
}
# member NAME reads JSON from standard input and prints the value of the first member with this name. The value must be a string.
member() { grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }
# has TEXT fails if standard input does not contain the text.
has() { grep -q -- "$1" <<<"$(cat)" || { echo "the response lacks $1" >&2; exit 1; }; }

link=https://www.tiktok.com/@northwind.studio/video/7338812345678901234
quoted=https%3A%2F%2Fwww.tiktok.com%2F%40northwind.studio%2Fvideo%2F7338812345678901234
collection=$(call POST /collections '{"name": "Launch", "access": "private"}' | member id)
video=$(call POST /videos "{\"link\": \"$link\", \"collection_ids\": [\"$collection\"], \"collection_names\": [\"Spring\"]}" | member videoId)
call POST /videos "{\"link\": \"$link\"}" | has already
bulk=$(call POST /videos/bulk '{"links": ["https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/9bZkp7q19f0"]}')
has '"succeeded":2' <<<"$bulk"
mapfile -t others < <(grep -o '"videoId":"[^"]*"' <<<"$bulk" | cut -d '"' -f 4)

call GET '/videos?order_by=latest_views&order_direction=asc&limit=2&collections=Launch' | has '"total":1'
one=$(call GET "/videos/$quoted")
has "\"ad_id\":\"$video\"" <<<"$one"
account=$(member linked_account_id <<<"$one")
call GET "/videos/$quoted/history" | has '^\['
call GET "/accounts/$account/videos" | has "\"ad_id\":\"$video\""

call GET /collections | has '"count":2'
call PATCH "/collections/$collection" '{"name": "Launch 2"}'
call GET "/collections/$collection?include_counts=true" | has '"video_count":1'
members="{\"video_ids\": [\"${others[0]}\", \"${others[1]}\"]}"
call POST "/collections/$collection/videos" "$members" | has '"videos_added":2'
call GET "/collections/$collection/videos?limit=2" | has '"total_pages":2'
call DELETE "/collections/$collection/videos" "$members" | has '"videos_removed":2'
call POST "/collections/$collection/accounts" "{\"account_ids\": [\"$account\"]}" | has '"accounts_added":1'
call GET "/collections/$collection/accounts" | has '"total":1'
call DELETE "/collections/$collection/accounts" "{\"account_ids\": [\"$account\"]}" | has '"accounts_removed":1'

call DELETE /videos "{\"id\": \"$link\"}" | has message
call DELETE "/videos/${others[0]}" | has message
call DELETE /videos/bulk "{\"ids\": [\"${others[1]}\"]}" | has '"succeeded":1'
call DELETE "/collections/$collection" '{}' | has "\"deleted_id\":\"$collection\""
call GET "/videos/$video" | has '"removed":true'
echo done
