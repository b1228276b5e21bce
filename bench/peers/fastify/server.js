// This server is a list of videos as it is usually written with fastify and pg. The benchmark compares ReelTally with it. Each request reads the
// rows of the page and counts the matching rows, both at the same time. The server reads ReelTally's database in REELTALLY_DATABASE_URL, and
// prints its address.
import Fastify from "fastify";
import pg from "pg";

const pool = new pg.Pool({ connectionString: process.env.REELTALLY_DATABASE_URL });
const app = Fastify();

const columns = `organisation_id, id AS ad_id, platform, link AS ad_link, username, linked_account_id, created_at, removed, uploaded_at, song_name,
 song_link, video_length, title, not_safe, private, hidden_stats, ad_info_shop, ad_is_ad, ad_product_id_shop, latest_views, latest_likes,
 latest_comments, latest_bookmarks, latest_shares, latest_engagement, latest_updated_at, outlier_multiplier, increase_1d, increase_7d,
 increase_14d, increase_30d, views_gained_7d, fetch_status, fetch_reason, last_attempt_at, next_fetch_at`;

app.get("/:organisation/videos", async (request) => {
  const { organisation } = request.params;
  const [page, count] = await Promise.all([
    pool.query(`SELECT ${columns} FROM videos WHERE organisation_id = $1 AND NOT removed ORDER BY created_at DESC, id DESC LIMIT $2`, [
      organisation,
      Number(request.query.limit),
    ]),
    pool.query("SELECT COUNT(*) FROM videos WHERE organisation_id = $1 AND NOT removed", [organisation]),
  ]);
  return { data: page.rows, pagination: { total: Number(count.rows[0].count) } };
});

console.log(await app.listen({ host: "127.0.0.1", port: 0 }));
