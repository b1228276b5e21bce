// Writes all videos as CSV to standard output.
import { ReelTally } from "@reeltally/client";

process.stdout.write(await new ReelTally().text("/videos", { limit: 5000 }));
