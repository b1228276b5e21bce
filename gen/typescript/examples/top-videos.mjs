// Prints the five videos with the most views, and their views on the last seven days.
import { ReelTally } from "@reeltally/client";

const reeltally = new ReelTally(); // reads REELTALLY_URL and REELTALLY_TOKEN
const since = new Date(Date.now() - 7 * 86_400_000).toISOString().slice(0, 10);
const { data: top } = await reeltally.listVideos({ order_by: "latest_views", limit: 5 });
for (const video of top) {
  const history = await reeltally.getVideoHistory(video.ad_id, { start_date: since });
  console.log(video.latest_views, video.ad_link, history.map(point => point.views).join(" "));
}
