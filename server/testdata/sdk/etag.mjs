// This program changes and deletes a collection with its current ETag and with an ETag that is no longer current. Its arguments are the id of a
// collection, and the address of a server whose responses have no ETag. It prints the names that the collection had, the statuses of the refused
// requests, and the error for a missing ETag.
import { ReelTally } from "@reeltally/client";

const [id, address] = process.argv.slice(2);
const reeltally = new ReelTally();
const [collection, etag] = await reeltally.getCollectionWithETag(id);
console.log(collection.name);
await reeltally.updateCollection(id, { name: "New" }, { ifMatch: etag });
const [changed, current] = await reeltally.getCollectionWithETag(id, { include_counts: true });
console.log(changed.name);
await reeltally.updateCollection(id, { name: "Lost" }, { ifMatch: etag }).catch(error => console.log(error.status));
await reeltally.deleteCollection(id, undefined, { ifMatch: etag }).catch(error => console.log(error.status));
if ((await reeltally.deleteCollection(id, {}, { ifMatch: current })).success) console.log("deleted");
await new ReelTally({ baseUrl: address }).getCollectionWithETag(id).catch(error => console.log(error.status, error.message));
