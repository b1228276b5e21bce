// Writes all videos as CSV to standard output.
import { pipeline } from "node:stream/promises";
import { ReelTally } from "@reeltally/client";

await pipeline(new ReelTally().download("/videos", { limit: 5000 }), process.stdout);
