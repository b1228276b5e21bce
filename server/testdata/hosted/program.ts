// This program is an example of a program that a customer has written for a hosted service. It calls every operation of the service's API. ReelTally
// has the same operations, so the test runs the program unchanged, with the address and a token of ReelTally.
import assert from "node:assert";

interface Collection { id: string; name: string; video_count?: number }
interface Video { ad_id: string; created_at: string; label_names: string[] | null; linked_account_id: string; removed: boolean }
interface Tracked { videoId: string; directUrl: string; error?: string }
interface Summary { total: number; succeeded: number; failed: number }
interface Bulk { success: boolean; summary: Summary; results: { videoId: string }[]; trackingEnqueued: boolean; warnings: string[] }
interface Page<T> { data: T[]; pagination: { total: number; page: number; limit: number; total_pages: number } }
interface Message { message: string }

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${process.env["REELTALLY_URL"]}${path}`, {
    method,
    headers: { Authorization: `Bearer ${process.env["REELTALLY_TOKEN"]}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert(response.ok, `${method} ${path}: ${response.status} ${text}`);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

const link = "https://www.tiktok.com/@northwind.studio/video/7338812345678901234";
const quoted = encodeURIComponent(link);
const { id: collection } = await call<Collection>("POST", "/collections", { name: "Launch", access: "private" });
const video = await call<Tracked>("POST", "/videos", { link, collection_ids: [collection], collection_names: ["Spring"] });
assert(video.directUrl.includes("/video/tiktok/"));
assert((await call<Tracked>("POST", "/videos", { link })).error?.includes("already"));
const bulk = await call<Bulk>("POST", "/videos/bulk", { links: ["https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/dQw4w9WgXcQ", "https://youtu.be/9bZkp7q19f0"] });
assert(bulk.success && bulk.summary.succeeded === 2 && bulk.trackingEnqueued);
assert(Array.isArray(bulk.warnings));
const others = bulk.results.map((result) => result.videoId);

const listed = await call<Page<Video> & { filters: { collections: string[] } }>("GET", "/videos?order_by=latest_views&order_direction=asc&limit=2&collections=Launch");
assert.equal(listed.pagination.total, 1);
assert.deepEqual(listed.filters.collections, ["Launch"]);
const one = await call<Video>("GET", `/videos/${quoted}`);
assert.equal(one.ad_id, video.videoId);
assert.deepEqual([...(one.label_names ?? [])].sort(), ["Launch", "Spring"]);
assert(!Number.isNaN(Date.parse(one.created_at)));
assert(Array.isArray(await call<{ date: string; views: number }[]>("GET", `/videos/${quoted}/history`)));
const account = one.linked_account_id;
assert.deepEqual((await call<Video[]>("GET", `/accounts/${account}/videos`)).map((v) => v.ad_id), [video.videoId]);

assert.equal((await call<{ data: Collection[]; count: number }>("GET", "/collections")).count, 2);
await call<undefined>("PATCH", `/collections/${collection}`, { name: "Launch 2" });
const found = await call<Collection>("GET", `/collections/${collection}?include_counts=true`);
assert(found.name === "Launch 2" && found.video_count === 1);
const path = `/collections/${collection}`;
assert.equal((await call<{ videos_added: number }>("POST", `${path}/videos`, { video_ids: others })).videos_added, 2);
assert.equal((await call<Page<Video>>("GET", `${path}/videos?limit=2`)).pagination.total_pages, 2);
assert.equal((await call<{ videos_removed: number }>("DELETE", `${path}/videos`, { video_ids: others })).videos_removed, 2);
assert.equal((await call<{ accounts_added: number }>("POST", `${path}/accounts`, { account_ids: [account] })).accounts_added, 1);
assert.equal((await call<Page<object>>("GET", `${path}/accounts`)).pagination.total, 1);
assert.equal((await call<{ accounts_removed: number }>("DELETE", `${path}/accounts`, { account_ids: [account] })).accounts_removed, 1);

assert((await call<Message>("DELETE", "/videos", { id: link })).message);
assert((await call<Message>("DELETE", `/videos/${others[0]}`)).message);
assert.equal((await call<Bulk>("DELETE", "/videos/bulk", { ids: others.slice(1) })).summary.succeeded, 1);
assert.equal((await call<{ success: boolean; deleted_id: string }>("DELETE", path, {})).deleted_id, collection);
assert((await call<Video>("GET", `/videos/${video.videoId}`)).removed);
console.log("done");
