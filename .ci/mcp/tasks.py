"""python3 tasks.py URL TOKEN [TASK...]

Completes tasks of an assistant with the official Python client of the Model Context Protocol. The server must use the sandbox.
tasks.mjs completes the same tasks. Without a TASK, the script completes all tasks. The exit status is 1 if a task fails.
"""

import asyncio
import sys
from datetime import UTC, datetime, timedelta

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client


async def call(client, name, **arguments):
    """Call a tool and return the structured content of its result."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, f"{name}: {result.content}"
    return result.structured_content


def day(ago):
    """Return the UTC day that is the given number of days ago, such as 2026-02-22."""
    return (datetime.now(UTC) - timedelta(days=ago)).strftime("%Y-%m-%d")


async def track(client):
    tracked = await call(client, "track_video", link="https://www.youtube.com/shorts/pYtHoNcLiEE", collection_ids=None)
    for _ in range(12):
        video = await call(client, "get_video", ad_id=tracked["videoId"])
        if video["latest_views"] is not None:
            return f"{video['ad_link']} has {video['latest_views']} views"
        await asyncio.sleep(2)
    raise AssertionError("the tracked video has no numbers after 24 seconds")


async def top_gainers(client):
    page = await call(client, "list_videos", order_by="increase_7d", limit=5, has_metrics=True, fields=["ad_link", "latest_views", "increase_7d"])
    assert len(page["data"]) == 5
    increases = [v["increase_7d"] for v in page["data"]]
    known = [i for i in increases if i is not None]
    assert increases[: len(known)] == sorted(known, reverse=True), increases
    return f"{page['data'][0]['ad_link']} gained {increases[0]} % in 7 days"


async def weekly_report(client):
    prompt = await client.get_prompt("weekly_report", {"end_date": day(1)})
    instructions = prompt.messages[0].content.text
    assert f"START is {day(7)} and END is {day(1)}." in instructions, instructions
    assert "get_organisation_history" in instructions and "list_videos" in instructions, instructions
    points = (await call(client, "get_organisation_history", start_date=day(7), end_date=day(1)))["items"]
    assert len(points) > 1, "the week has fewer than two points"
    last, first = points[0], points[-1]
    assert last["date"] >= first["date"] and last["views"] >= 0
    page = await call(client, "list_videos", uploaded_at_start=day(7), uploaded_at_end=day(1), order_by="latest_views", limit=10)
    total = page["pagination"]["total"]
    assert len(page["data"]) == min(10, total)
    return f"{last['views'] - first['views']} more views from {first['date']} to {last['date']}; {total} new videos"


async def compare_accounts(client):
    page = await call(client, "list_accounts", include_linked=True, order_by="total_views", limit=2, fields=["account_id"])
    first, second = [await call(client, "get_account", account_id=a["account_id"]) for a in page["data"]]
    assert first["account_id"] != second["account_id"]
    assert first["total_views"] >= second["total_views"]
    return "; ".join(f"{a['username']} has {a['total_views']} views, median {a['median_views']}" for a in (first, second))


async def missing_number(client):
    await call(client, "track_videos", links=[f"https://www.youtube.com/shorts/pYtHoNcL{i}" for i in range(100, 180, 4)])
    page = await call(client, "list_videos", order_by="created_at", limit=20, fields=["ad_link", "latest_views", "fetch_status", "fetch_detail"])
    missing = [v for v in page["data"] if v["latest_views"] is None]
    assert missing, "every new video has numbers already"
    for video in missing:
        assert video["fetch_status"] != "ok" and video["fetch_detail"], video
    return f"{missing[0]['ad_link']} has no views: {missing[0]['fetch_status']}: {missing[0]['fetch_detail']}"


TASKS = {f.__name__: f for f in (track, top_gainers, weekly_report, compare_accounts, missing_number)}


async def main(url, token, *names):
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http:
        async with Client(streamable_http_client(f"{url}/mcp", http_client=http)) as client:
            await client.list_tools()  # after this call, the client checks results against the output schemas of the tools
            for name in names or TASKS:
                print(f"Python: {name}: {await TASKS[name](client)}")


asyncio.run(main(*sys.argv[1:]))
