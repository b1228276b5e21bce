// The arguments of this program are the ids of a collection and a webhook. It changes the name of the collection and the URL of the webhook, and
// prints other members of both. Then it clears these members.
import { ReelTally } from "@reeltally/client";

const [collection, webhook] = process.argv.slice(2);
const client = new ReelTally();
await client.updateCollection(collection, { name: "Changed" });
const { parent_id, share_expires_at } = await client.getCollection(collection);
const { description } = await client.updateWebhook(webhook, { url: "https://example.com/changed" });
console.log(parent_id, share_expires_at, description);
await client.updateCollection(collection, { parent_id: null, share_expires_at: null, hashtags: [] });
await client.updateWebhook(webhook, { description: "", event_types: [] });
