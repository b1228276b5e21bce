// This program stops four videos with three operations. The first argument is the link of the first video, and the others are ids. It prints as JSON
// the result of the bulk operation.

import { ReelTally } from "@reeltally/client";

const [link, id, ...ids] = process.argv.slice(2);
const reeltally = new ReelTally();
await reeltally.stopVideo({ id: link });
await reeltally.stopVideoById(id);
const { success, summary } = await reeltally.stopVideos({ ids });
console.log(JSON.stringify({ success, succeeded: summary.succeeded }));
