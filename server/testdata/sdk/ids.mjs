// This program prints the ids of all videos, one on each line.
import { ReelTally } from "@reeltally/client";

for await (const video of new ReelTally().allVideos({ order_by: "created_at", limit: 200 })) console.log(video.ad_id);
