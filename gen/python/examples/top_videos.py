"""Prints the five videos with the most views, and their views on the last seven days."""

from datetime import date, timedelta

from reeltally import ReelTally

reeltally = ReelTally()  # reads REELTALLY_URL and REELTALLY_TOKEN
since = str(date.today() - timedelta(days=7))
for video in reeltally.list_videos(order_by="latest_views", limit=5)["data"]:
    history = reeltally.get_video_history(video["ad_id"], start_date=since)
    print(video["latest_views"], video["ad_link"], *[point["views"] for point in history])
