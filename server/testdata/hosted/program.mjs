// This program is an example of a program that a customer has written for a hosted service. It calls every operation of the service's API. ReelTally
// has the same operations, so the test runs the program unchanged, with the address and a token of ReelTally.
import assert from "node:assert";

async function call(method, path, body) {
  const response = await fetch(process.env.REELTALLY_URL + path, {
    method,
    headers: { Authorization: `Bearer ${process.env.REELTALLY_TOKEN}`, "Content-Type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  assert(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

const link = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234";
const quoted = encodeURIComponent(link);
const { id: collection } = await call("POST", "/collections", { name: "Launch", access: "private" });
const video = await call("POST", "/videos", { link, collection_ids: [collection], collection_names: ["Spring"] });
assert(video.directUrl.includes("/video/tiktok/"));
assert((await call("POST", "/videos", { link })).error.includes("already"));
const bulk = await call("POST", "/videos/bulk", { links: ["https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/9bZkp7q19f0"] });
assert(bulk.success && bulk.summary.succeeded === 2 && bulk.trackingEnqueued);
assert(Array.isArray(bulk.warnings));
const others = bulk.results.map((result) => result.videoId);

const listed = await call("GET", "/videos?order_by=latest_views&order_direction=asc&limit=2&collections=Launch");
assert.equal(listed.pagination.total, 1);
assert.deepEqual(listed.filters.collections, ["Launch"]);
const one = await call("GET", `/videos/${quoted}`);
assert.equal(one.ad_id, video.videoId);
assert.deepEqual(one.label_names.toSorted(), ["Launch", "Spring"]);
assert(!Number.isNaN(Date.parse(one.created_at)));
assert(Array.isArray(await call("GET", `/videos/${quoted}/history`)));
const account = one.linked_account_id;
assert.deepEqual((await call("GET", `/accounts/${account}/videos`)).map((v) => v.ad_id), [video.videoId]);

assert.equal((await call("GET", "/collections")).count, 2);
await call("PATCH", `/collections/${collection}`, { name: "Launch 2" });
const found = await call("GET", `/collections/${collection}?include_counts=true`);
assert(found.name === "Launch 2" && found.video_count === 1);
assert.equal((await call("POST", `/collections/${collection}/videos`, { video_ids: others })).videos_added, 2);
assert.equal((await call("GET", `/collections/${collection}/videos?limit=2`)).pagination.total_pages, 2);
assert.equal((await call("DELETE", `/collections/${collection}/videos`, { video_ids: others })).videos_removed, 2);
assert.equal((await call("POST", `/collections/${collection}/accounts`, { account_ids: [account] })).accounts_added, 1);
assert.equal((await call("GET", `/collections/${collection}/accounts`)).pagination.total, 1);
assert.equal((await call("DELETE", `/collections/${collection}/accounts`, { account_ids: [account] })).accounts_removed, 1);

assert((await call("DELETE", "/videos", { id: link })).message);
assert((await call("DELETE", `/videos/${others[0]}`)).message);
assert.equal((await call("DELETE", "/videos/bulk", { ids: others.slice(1) })).summary.succeeded, 1);
assert.equal((await call("DELETE", `/collections/${collection}`, {})).deleted_id, collection);
assert((await call("GET", `/videos/${video.videoId}`)).removed);
console.log("done");
