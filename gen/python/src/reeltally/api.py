# Generated from openapi.yaml by gen/sdk. Do not edit.
"""The operations of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, cast

from . import types as t
from ._client import Client, quote


class ReelTally(Client):
    """A client of the API of a ReelTally server."""

    def add_collection_accounts(self, collection_id: str, body: t.CollectionAccountsRequest, *, idempotency_key: str | None = None) -> t.AddedAccounts:
        """Add accounts to a collection. `POST /collections/{collection_id}/accounts`"""
        return cast("t.AddedAccounts", self.request("POST", f"/collections/{quote(collection_id)}/accounts", body=body, keyed=True, idempotency_key=idempotency_key))

    def add_collection_videos(self, collection_id: str, body: t.CollectionVideosRequest, *, idempotency_key: str | None = None) -> t.AddedVideos:
        """Add videos to a collection. `POST /collections/{collection_id}/videos`"""
        return cast("t.AddedVideos", self.request("POST", f"/collections/{quote(collection_id)}/videos", body=body, keyed=True, idempotency_key=idempotency_key))

    def authenticate(self) -> t.Authentication:
        """Read the identity of a token. `GET /authenticate`"""
        return cast("t.Authentication", self.request("GET", "/authenticate"))

    def create_collection(self, body: t.CreateCollectionRequest, *, idempotency_key: str | None = None) -> t.CreatedCollection:
        """Create a collection. `POST /collections`"""
        return cast("t.CreatedCollection", self.request("POST", "/collections", body=body, keyed=True, idempotency_key=idempotency_key))

    def create_report(self, collection_id: str, body: t.CreateReportRequest, *, idempotency_key: str | None = None) -> t.ReportSummary:
        """Create a report of a collection that never changes. `POST /collections/{collection_id}/reports`"""
        return cast("t.ReportSummary", self.request("POST", f"/collections/{quote(collection_id)}/reports", body=body, keyed=True, idempotency_key=idempotency_key))

    def create_token(self, body: t.CreateTokenRequest, *, idempotency_key: str | None = None) -> t.CreatedToken:
        """Create a token. `POST /tokens`"""
        return cast("t.CreatedToken", self.request("POST", "/tokens", body=body, keyed=True, idempotency_key=idempotency_key))

    def create_webhook(self, body: t.CreateWebhookRequest, *, idempotency_key: str | None = None) -> t.CreatedWebhook:
        """Create a webhook. `POST /webhooks`"""
        return cast("t.CreatedWebhook", self.request("POST", "/webhooks", body=body, keyed=True, idempotency_key=idempotency_key))

    def delete_collection(self, collection_id: str, body: t.EmptyObject | None = None, *, if_match: str | None = None) -> t.DeletedCollection:
        """Delete a collection. `DELETE /collections/{collection_id}`"""
        return cast("t.DeletedCollection", self.request("DELETE", f"/collections/{quote(collection_id)}", body=body, if_match=if_match))

    def delete_webhook(self, webhook_id: str) -> None:
        """Delete a webhook. `DELETE /webhooks/{webhook_id}`"""
        self.request("DELETE", f"/webhooks/{quote(webhook_id)}")

    def export_history(self, *, updated_since: str | None = None, limit: int | None = None, cursor: str | None = None) -> t.HistoryExport:
        """Export the stored points of all videos. `GET /history/export`"""
        return cast("t.HistoryExport", self.request("GET", "/history/export", query={"updated_since": updated_since, "limit": limit, "cursor": cursor}))

    def all_history(self, *, updated_since: str | None = None, limit: int | None = None, cursor: str | None = None) -> Iterator[t.ExportedPoint]:
        """Reads all pages of export_history, one after the other, and yields their entries. It leaves out exported_until: if you export repeatedly, use export_history, and send its exported_until as updated_since in the next export."""
        return self.pages(lambda after: cast(dict[str, Any], self.export_history(updated_since=updated_since, limit=limit, cursor=after)), cursor)

    def get_account(self, account_id: str) -> t.Account:
        """Read one account. `GET /accounts/{account_id}`"""
        return cast("t.Account", self.request("GET", f"/accounts/{quote(account_id)}"))

    def get_account_history(self, account_id: str, *, start_date: str | None = None, end_date: str | None = None, include: list[t.HistoryInclude] | None = None) -> t.AccountHistory:
        """Read the daily points of an account. `GET /accounts/{account_id}/history`"""
        return cast("t.AccountHistory", self.request("GET", f"/accounts/{quote(account_id)}/history", query={"start_date": start_date, "end_date": end_date, "include": include}))

    def get_account_statistics(self) -> t.Statistics:
        """Count the accounts. `GET /statistics/accounts`"""
        return cast("t.Statistics", self.request("GET", "/statistics/accounts"))

    def get_collection(self, collection_id: str, *, include_counts: bool | None = None) -> t.Collection:
        """Read one collection. `GET /collections/{collection_id}`"""
        return cast("t.Collection", self.request("GET", f"/collections/{quote(collection_id)}", query={"include_counts": include_counts}))

    def get_collection_with_etag(self, collection_id: str, *, include_counts: bool | None = None) -> tuple[t.Collection, str]:
        """Does the same as get_collection, and also returns the ETag. A change with this ETag as if_match fails with the status 412 if the item has changed since this read."""
        return cast("tuple[t.Collection, str]", self.request_with_etag("GET", f"/collections/{quote(collection_id)}", query={"include_counts": include_counts}))

    def get_collection_history(self, collection_id: str, *, start_date: str | None = None, end_date: str | None = None, include_children: bool | None = None) -> t.CollectionHistory:
        """Read the daily totals of a collection. `GET /collections/{collection_id}/history`"""
        return cast("t.CollectionHistory", self.request("GET", f"/collections/{quote(collection_id)}/history", query={"start_date": start_date, "end_date": end_date, "include_children": include_children}))

    def get_collection_statistics(self, collection_id: str, *, start_date: str | None = None, end_date: str | None = None, include_children: bool | None = None) -> t.CollectionStatistics:
        """Read the totals and gained views of a collection. `GET /collections/{collection_id}/statistics`"""
        return cast("t.CollectionStatistics", self.request("GET", f"/collections/{quote(collection_id)}/statistics", query={"start_date": start_date, "end_date": end_date, "include_children": include_children}))

    def get_organisation_history(self, *, start_date: str | None = None, end_date: str | None = None) -> t.OrganisationHistory:
        """Read the daily points of the organisation. `GET /organisation/history`"""
        return cast("t.OrganisationHistory", self.request("GET", "/organisation/history", query={"start_date": start_date, "end_date": end_date}))

    def get_report(self, report_id: str, *, include_videos: bool | None = None, include_points: bool | None = None) -> t.Report:
        """Read a report. `GET /reports/{report_id}`"""
        return cast("t.Report", self.request("GET", f"/reports/{quote(report_id)}", query={"include_videos": include_videos, "include_points": include_points}))

    def get_video(self, ad_id: str) -> t.Video:
        """Read one video. `GET /videos/{ad_id}`"""
        return cast("t.Video", self.request("GET", f"/videos/{quote(ad_id)}"))

    def get_video_history(self, ad_id: str, *, start_date: str | None = None, end_date: str | None = None, include: list[t.HistoryInclude] | None = None) -> t.VideoHistory:
        """Read the daily points of a video. `GET /videos/{ad_id}/history`"""
        return cast("t.VideoHistory", self.request("GET", f"/videos/{quote(ad_id)}/history", query={"start_date": start_date, "end_date": end_date, "include": include}))

    def get_video_statistics(self) -> t.Statistics:
        """Count the videos. `GET /statistics/videos`"""
        return cast("t.Statistics", self.request("GET", "/statistics/videos"))

    def get_webhook(self, webhook_id: str) -> t.Webhook:
        """Read a webhook. `GET /webhooks/{webhook_id}`"""
        return cast("t.Webhook", self.request("GET", f"/webhooks/{quote(webhook_id)}"))

    def list_account_videos(self, account_id: str, *, start_date: str | None = None, end_date: str | None = None, page: int | None = None, limit: int | None = None, cursor: str | None = None, order_by: t.AccountVideoOrder | None = None, order_direction: t.OrderDirection | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> t.AccountVideoPage:
        """List the videos of an account. `GET /accounts/{account_id}/videos`"""
        return cast("t.AccountVideoPage", self.request("GET", f"/accounts/{quote(account_id)}/videos", query={"start_date": start_date, "end_date": end_date, "page": page, "limit": limit, "cursor": cursor, "order_by": order_by, "order_direction": order_direction, "include_removed": include_removed, "fetch_status": fetch_status, "paginated": True}))

    def all_account_videos(self, account_id: str, *, start_date: str | None = None, end_date: str | None = None, limit: int | None = None, cursor: str | None = None, order_by: t.AccountVideoOrder | None = None, order_direction: t.OrderDirection | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> Iterator[t.Video]:
        """Reads all pages of list_account_videos, one after the other, and yields their entries."""
        return self.pages(lambda after: cast(dict[str, Any], self.list_account_videos(account_id, start_date=start_date, end_date=end_date, limit=limit, cursor=after, order_by=order_by, order_direction=order_direction, include_removed=include_removed, fetch_status=fetch_status)), cursor)

    def list_accounts(self, *, page: int | None = None, limit: int | None = None, cursor: str | None = None, order_by: t.AccountOrder | None = None, order_direction: t.OrderDirection | None = None, platform: t.Platform | None = None, username: str | None = None, collections: list[str] | None = None, link: str | None = None, include_linked: bool | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> t.AccountPage:
        """List tracked accounts. `GET /accounts`"""
        return cast("t.AccountPage", self.request("GET", "/accounts", query={"page": page, "limit": limit, "cursor": cursor, "order_by": order_by, "order_direction": order_direction, "platform": platform, "username": username, "collections": collections, "link": link, "include_linked": include_linked, "include_removed": include_removed, "fetch_status": fetch_status, "paginated": True}))

    def all_accounts(self, *, limit: int | None = None, cursor: str | None = None, order_by: t.AccountOrder | None = None, order_direction: t.OrderDirection | None = None, platform: t.Platform | None = None, username: str | None = None, collections: list[str] | None = None, link: str | None = None, include_linked: bool | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> Iterator[t.Account]:
        """Reads all pages of list_accounts, one after the other, and yields their entries."""
        return self.pages(lambda after: cast(dict[str, Any], self.list_accounts(limit=limit, cursor=after, order_by=order_by, order_direction=order_direction, platform=platform, username=username, collections=collections, link=link, include_linked=include_linked, include_removed=include_removed, fetch_status=fetch_status)), cursor)

    def list_collection_accounts(self, collection_id: str, *, page: int | None = None, limit: int | None = None, cursor: str | None = None, order_by: t.AccountOrder | None = None, order_direction: t.OrderDirection | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> t.CollectionAccountPage:
        """List the accounts of a collection. `GET /collections/{collection_id}/accounts`"""
        return cast("t.CollectionAccountPage", self.request("GET", f"/collections/{quote(collection_id)}/accounts", query={"page": page, "limit": limit, "cursor": cursor, "order_by": order_by, "order_direction": order_direction, "include_removed": include_removed, "fetch_status": fetch_status}))

    def all_collection_accounts(self, collection_id: str, *, limit: int | None = 5000, cursor: str | None = None, order_by: t.AccountOrder | None = None, order_direction: t.OrderDirection | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> Iterator[t.Account]:
        """Reads all pages of list_collection_accounts, one after the other, and yields their entries."""
        return self.pages(lambda after: cast(dict[str, Any], self.list_collection_accounts(collection_id, limit=limit, cursor=after, order_by=order_by, order_direction=order_direction, include_removed=include_removed, fetch_status=fetch_status)), cursor)

    def list_collection_videos(self, collection_id: str, *, page: int | None = None, limit: int | None = None, cursor: str | None = None, order_by: t.CollectionVideoOrder | None = None, order_direction: t.OrderDirection | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> t.CollectionVideoPage:
        """List the videos of a collection. `GET /collections/{collection_id}/videos`"""
        return cast("t.CollectionVideoPage", self.request("GET", f"/collections/{quote(collection_id)}/videos", query={"page": page, "limit": limit, "cursor": cursor, "order_by": order_by, "order_direction": order_direction, "include_removed": include_removed, "fetch_status": fetch_status}))

    def all_collection_videos(self, collection_id: str, *, limit: int | None = 5000, cursor: str | None = None, order_by: t.CollectionVideoOrder | None = None, order_direction: t.OrderDirection | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> Iterator[t.Video]:
        """Reads all pages of list_collection_videos, one after the other, and yields their entries."""
        return self.pages(lambda after: cast(dict[str, Any], self.list_collection_videos(collection_id, limit=limit, cursor=after, order_by=order_by, order_direction=order_direction, include_removed=include_removed, fetch_status=fetch_status)), cursor)

    def list_collections(self, *, parent_id: str | None = None, include_children: bool | None = None, page: int | None = None, limit: int | None = None, cursor: str | None = None, order_by: t.CollectionOrder | None = None, order_direction: t.OrderDirection | None = None) -> t.CollectionList:
        """List collections. `GET /collections`"""
        return cast("t.CollectionList", self.request("GET", "/collections", query={"parent_id": parent_id, "include_children": include_children, "page": page, "limit": limit, "cursor": cursor, "order_by": order_by, "order_direction": order_direction, "paginated": True}))

    def all_collections(self, *, parent_id: str | None = None, include_children: bool | None = None, limit: int | None = None, cursor: str | None = None, order_by: t.CollectionOrder | None = None, order_direction: t.OrderDirection | None = None) -> Iterator[t.Collection]:
        """Reads all pages of list_collections, one after the other, and yields their entries."""
        return self.pages(lambda after: cast(dict[str, Any], self.list_collections(parent_id=parent_id, include_children=include_children, limit=limit, cursor=after, order_by=order_by, order_direction=order_direction)), cursor)

    def list_events(self, *, types: list[t.EventType] | None = None, limit: int | None = None, cursor: str | None = None) -> t.EventFeed:
        """Read the event feed. `GET /events`"""
        return cast("t.EventFeed", self.request("GET", "/events", query={"types": types, "limit": limit, "cursor": cursor}))

    def list_reports(self, collection_id: str, *, page: int | None = None, limit: int | None = None, cursor: str | None = None, order_direction: t.OrderDirection | None = None) -> t.ReportPage:
        """List the reports of a collection. `GET /collections/{collection_id}/reports`"""
        return cast("t.ReportPage", self.request("GET", f"/collections/{quote(collection_id)}/reports", query={"page": page, "limit": limit, "cursor": cursor, "order_direction": order_direction}))

    def all_reports(self, collection_id: str, *, limit: int | None = 5000, cursor: str | None = None, order_direction: t.OrderDirection | None = None) -> Iterator[t.ReportSummary]:
        """Reads all pages of list_reports, one after the other, and yields their entries."""
        return self.pages(lambda after: cast(dict[str, Any], self.list_reports(collection_id, limit=limit, cursor=after, order_direction=order_direction)), cursor)

    def list_tokens(self) -> t.TokenList:
        """List the tokens of the organisation. `GET /tokens`"""
        return cast("t.TokenList", self.request("GET", "/tokens"))

    def list_videos(self, *, page: int | None = None, limit: int | None = None, cursor: str | None = None, order_by: t.VideoOrder | None = None, order_direction: t.OrderDirection | None = None, username: str | None = None, linked_account_id: str | None = None, uploaded_at_start: str | None = None, uploaded_at_end: str | None = None, latest_updated_at_start: str | None = None, latest_updated_at_end: str | None = None, ad_info_shop: bool | None = None, ad_product_id_shop: bool | None = None, has_metrics: bool | None = None, collections: list[str] | None = None, link: str | None = None, platform: t.Platform | None = None, hashtag: str | None = None, q: str | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> t.VideoPage:
        """List tracked videos. `GET /videos`"""
        return cast("t.VideoPage", self.request("GET", "/videos", query={"page": page, "limit": limit, "cursor": cursor, "order_by": order_by, "order_direction": order_direction, "username": username, "linked_account_id": linked_account_id, "uploaded_at_start": uploaded_at_start, "uploaded_at_end": uploaded_at_end, "latest_updated_at_start": latest_updated_at_start, "latest_updated_at_end": latest_updated_at_end, "ad_info_shop": ad_info_shop, "ad_product_id_shop": ad_product_id_shop, "has_metrics": has_metrics, "collections": collections, "link": link, "platform": platform, "hashtag": hashtag, "q": q, "include_removed": include_removed, "fetch_status": fetch_status}))

    def all_videos(self, *, limit: int | None = None, cursor: str | None = None, order_by: t.VideoOrder | None = None, order_direction: t.OrderDirection | None = None, username: str | None = None, linked_account_id: str | None = None, uploaded_at_start: str | None = None, uploaded_at_end: str | None = None, latest_updated_at_start: str | None = None, latest_updated_at_end: str | None = None, ad_info_shop: bool | None = None, ad_product_id_shop: bool | None = None, has_metrics: bool | None = None, collections: list[str] | None = None, link: str | None = None, platform: t.Platform | None = None, hashtag: str | None = None, q: str | None = None, include_removed: bool | None = None, fetch_status: t.FetchStatus | None = None) -> Iterator[t.Video]:
        """Reads all pages of list_videos, one after the other, and yields their entries."""
        return self.pages(lambda after: cast(dict[str, Any], self.list_videos(limit=limit, cursor=after, order_by=order_by, order_direction=order_direction, username=username, linked_account_id=linked_account_id, uploaded_at_start=uploaded_at_start, uploaded_at_end=uploaded_at_end, latest_updated_at_start=latest_updated_at_start, latest_updated_at_end=latest_updated_at_end, ad_info_shop=ad_info_shop, ad_product_id_shop=ad_product_id_shop, has_metrics=has_metrics, collections=collections, link=link, platform=platform, hashtag=hashtag, q=q, include_removed=include_removed, fetch_status=fetch_status)), cursor)

    def list_webhook_deliveries(self, webhook_id: str, *, page: int | None = None, limit: int | None = None, cursor: str | None = None, order_direction: t.OrderDirection | None = None) -> t.WebhookDeliveryPage:
        """List the deliveries to a webhook. `GET /webhooks/{webhook_id}/deliveries`"""
        return cast("t.WebhookDeliveryPage", self.request("GET", f"/webhooks/{quote(webhook_id)}/deliveries", query={"page": page, "limit": limit, "cursor": cursor, "order_direction": order_direction}))

    def all_webhook_deliveries(self, webhook_id: str, *, limit: int | None = 5000, cursor: str | None = None, order_direction: t.OrderDirection | None = None) -> Iterator[t.WebhookDelivery]:
        """Reads all pages of list_webhook_deliveries, one after the other, and yields their entries."""
        return self.pages(lambda after: cast(dict[str, Any], self.list_webhook_deliveries(webhook_id, limit=limit, cursor=after, order_direction=order_direction)), cursor)

    def list_webhooks(self) -> t.WebhookList:
        """List the webhooks of the organisation. `GET /webhooks`"""
        return cast("t.WebhookList", self.request("GET", "/webhooks"))

    def refresh_account(self, body: t.RefreshAccountRequest, *, idempotency_key: str | None = None) -> t.RefreshNotDue | None:
        """Fetch an account now. `POST /refresh/accounts`"""
        return cast("t.RefreshNotDue | None", self.request("POST", "/refresh/accounts", body=body, keyed=True, idempotency_key=idempotency_key))

    def refresh_video(self, body: t.RefreshVideoRequest, *, idempotency_key: str | None = None) -> t.RefreshNotDue | None:
        """Fetch a video now. `POST /refresh/videos`"""
        return cast("t.RefreshNotDue | None", self.request("POST", "/refresh/videos", body=body, keyed=True, idempotency_key=idempotency_key))

    def remove_collection_accounts(self, collection_id: str, body: t.CollectionAccountsRequest) -> t.RemovedAccounts:
        """Remove accounts from a collection. `DELETE /collections/{collection_id}/accounts`"""
        return cast("t.RemovedAccounts", self.request("DELETE", f"/collections/{quote(collection_id)}/accounts", body=body))

    def remove_collection_videos(self, collection_id: str, body: t.RemoveCollectionVideosRequest) -> t.RemovedVideos:
        """Remove videos from a collection. `DELETE /collections/{collection_id}/videos`"""
        return cast("t.RemovedVideos", self.request("DELETE", f"/collections/{quote(collection_id)}/videos", body=body))

    def replay_webhook_delivery(self, webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None) -> t.WebhookDelivery:
        """Send the event of a delivery again. `POST /webhooks/{webhook_id}/deliveries/{delivery_id}/replay`"""
        return cast("t.WebhookDelivery", self.request("POST", f"/webhooks/{quote(webhook_id)}/deliveries/{quote(delivery_id)}/replay", keyed=True, idempotency_key=idempotency_key))

    def revoke_token(self, token_id: str) -> None:
        """Revoke a token. `DELETE /tokens/{token_id}`"""
        self.request("DELETE", f"/tokens/{quote(token_id)}")

    def rotate_webhook_secret(self, webhook_id: str, *, idempotency_key: str | None = None) -> t.WebhookSecret:
        """Replace the secret of a webhook. `POST /webhooks/{webhook_id}/rotate-secret`"""
        return cast("t.WebhookSecret", self.request("POST", f"/webhooks/{quote(webhook_id)}/rotate-secret", keyed=True, idempotency_key=idempotency_key))

    def stop_account(self, body: t.StopAccountRequest, *, idempotency_key: str | None = None) -> t.StoppedAccount:
        """Stop tracking an account, by id or link. `DELETE /accounts`"""
        return cast("t.StoppedAccount", self.request("DELETE", "/accounts", body=body, keyed=True, idempotency_key=idempotency_key))

    def stop_account_by_id(self, account_id: str, *, idempotency_key: str | None = None) -> t.StoppedAccount:
        """Stop tracking an account, by id. `DELETE /accounts/{account_id}`"""
        return cast("t.StoppedAccount", self.request("DELETE", f"/accounts/{quote(account_id)}", keyed=True, idempotency_key=idempotency_key))

    def stop_accounts(self, body: t.StopAccountsRequest, *, idempotency_key: str | None = None) -> t.StopResult:
        """Stop tracking many accounts. `DELETE /accounts/bulk`"""
        return cast("t.StopResult", self.request("DELETE", "/accounts/bulk", body=body, keyed=True, idempotency_key=idempotency_key))

    def stop_video(self, body: t.StopVideoRequest, *, idempotency_key: str | None = None) -> t.Message:
        """Stop tracking a video, by id or link. `DELETE /videos`"""
        return cast("t.Message", self.request("DELETE", "/videos", body=body, keyed=True, idempotency_key=idempotency_key))

    def stop_video_by_id(self, ad_id: str, *, idempotency_key: str | None = None) -> t.Message:
        """Stop tracking a video, by id. `DELETE /videos/{ad_id}`"""
        return cast("t.Message", self.request("DELETE", f"/videos/{quote(ad_id)}", keyed=True, idempotency_key=idempotency_key))

    def stop_videos(self, body: t.StopVideosRequest, *, idempotency_key: str | None = None) -> t.StopResult:
        """Stop tracking many videos. `DELETE /videos/bulk`"""
        return cast("t.StopResult", self.request("DELETE", "/videos/bulk", body=body, keyed=True, idempotency_key=idempotency_key))

    def test_webhook(self, webhook_id: str, *, idempotency_key: str | None = None) -> t.WebhookDelivery:
        """Send a test event to a webhook. `POST /webhooks/{webhook_id}/test`"""
        return cast("t.WebhookDelivery", self.request("POST", f"/webhooks/{quote(webhook_id)}/test", keyed=True, idempotency_key=idempotency_key))

    def track_account(self, body: t.TrackAccountRequest, *, idempotency_key: str | None = None) -> t.TrackAccountResult:
        """Track an account. `POST /accounts`"""
        return cast("t.TrackAccountResult", self.request("POST", "/accounts", body=body, keyed=True, idempotency_key=idempotency_key))

    def track_accounts(self, body: t.TrackAccountsRequest, *, idempotency_key: str | None = None) -> t.TrackAccountsResult:
        """Track many accounts. `POST /accounts/bulk`"""
        return cast("t.TrackAccountsResult", self.request("POST", "/accounts/bulk", body=body, keyed=True, idempotency_key=idempotency_key))

    def track_video(self, body: t.TrackVideoRequest, *, idempotency_key: str | None = None) -> t.TrackVideoResult:
        """Track a video. `POST /videos`"""
        return cast("t.TrackVideoResult", self.request("POST", "/videos", body=body, keyed=True, idempotency_key=idempotency_key))

    def track_videos(self, body: t.TrackVideosRequest, *, idempotency_key: str | None = None) -> t.TrackVideosResult:
        """Track many videos. `POST /videos/bulk`"""
        return cast("t.TrackVideosResult", self.request("POST", "/videos/bulk", body=body, keyed=True, idempotency_key=idempotency_key))

    def update_collection(self, collection_id: str, body: t.UpdateCollectionRequest, *, if_match: str | None = None) -> None:
        """Change a collection. `PATCH /collections/{collection_id}`"""
        self.request("PATCH", f"/collections/{quote(collection_id)}", body=body, if_match=if_match)

    def update_report(self, report_id: str, body: t.UpdateReportRequest) -> None:
        """Change the share page of a report. `PATCH /reports/{report_id}`"""
        self.request("PATCH", f"/reports/{quote(report_id)}", body=body)

    def update_webhook(self, webhook_id: str, body: t.UpdateWebhookRequest) -> t.Webhook:
        """Change a webhook. `PATCH /webhooks/{webhook_id}`"""
        return cast("t.Webhook", self.request("PATCH", f"/webhooks/{quote(webhook_id)}", body=body))
