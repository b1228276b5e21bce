// This program uses the installed TypeScript client. It tracks 10,000 videos, lists some of them, reads all pages of the list, and exports the
// list to the file that its argument names. It prints how many videos each of these steps has handled.
import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { CSV, ReelTally, type Video } from "@reeltally/client";

const videos = 10_000;
const perCall = 500;
const [path] = process.argv.slice(2);
if (path === undefined) throw new Error("the path of the file is missing");

const reeltally = new ReelTally();
let tracked = 0;
for (let first = 0; first < videos; first += perCall) {
  const links = Array.from({ length: perCall }, (_, n) => `https://www.tiktok.com/@creator/video/73012345${String(first + n).padStart(11, "0")}`);
  tracked += (await reeltally.trackVideos({ links })).summary.succeeded;
}

const page = await reeltally.listVideos({ order_by: "created_at", limit: 5 });

const ids = new Set<string>();
for await (const video of reeltally.allVideos({ limit: 200 })) {
  if (video.latest_views !== null) throw new Error(`the video ${video.ad_id} was never fetched and has ${video.latest_views} views`);
  ids.add(video.ad_id);
}

await pipeline(reeltally.download("/videos", { limit: 5000 }, CSV), createWriteStream(path));
console.log(tracked, page.data.length, page.pagination.total, ids.size);

// The compiler must find each of these mistakes. It reports an error if the line below such a comment has no mistake.
export const mistakes = [
  // @ts-expect-error: a count can be null
  (video: Video): number => video.latest_views,
  // @ts-expect-error: an order that does not exist
  () => reeltally.listVideos({ order_by: "views" }),
  // @ts-expect-error: links are missing
  () => reeltally.trackVideos({}),
];
