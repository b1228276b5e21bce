// This program refreshes a video. The server answers without content.

import { ReelTally } from "@reeltally/client";

await new ReelTally().refreshVideo({ link: "01938c33-1c9e-7b54-a0d2-7f6e5d4c3b2a" });
console.log("refreshed");
