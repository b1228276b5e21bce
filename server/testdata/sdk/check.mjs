// This program calls every hand-written function of the client library, and prints the results.
import { ReelTally, ReelTallyError } from "@reeltally/client";

const reeltally = new ReelTally();
const out = {};
out.organisation = (await reeltally.authenticate()).organisation.name; // the test answers the first request with 429; the client retries
out.created = (await reeltally.createCollection({ name: "Launch" })).id; // the test drops the first response; the client retries
out.collections = [];
for await (const collection of reeltally.allCollections()) out.collections.push(collection.name);
const tracked = await reeltally.trackVideos({ links: process.argv.slice(2) });
out.statuses = tracked.results.map(result => result.status);
out.failed = (await reeltally.trackVideos({ links: ["https://example.com/1"] })).success;
out.ids = [];
for await (const video of reeltally.allVideos({ order_by: "created_at", limit: 3 })) out.ids.push(video.ad_id);
out.byLink = (await reeltally.getVideo(process.argv[2])).ad_id;
out.first = (await reeltally.listVideos({ collections: ["none", "other"], include_removed: true })).data.length;
await reeltally.updateCollection(out.created, { name: "Launch 2" });
out.errors = [];
for (const call of [() => reeltally.getVideo(out.created), () => reeltally.listVideos({ limit: 0 })]) {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof ReelTallyError)) throw error;
    out.errors.push({ status: error.status, code: error.code, request: error.requestId !== "", names: error.errors.map(fault => fault.name) });
  }
}
console.log(JSON.stringify(out));
