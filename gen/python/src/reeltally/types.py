# Generated from openapi.yaml by gen/sdk. Do not edit.
"""The types of requests and responses. All times are strings in the format of RFC 3339. All days are strings in the format YYYY-MM-DD."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union


class Account(TypedDict):
    """A profile that posts videos."""

    # The id of the account.
    account_id: str
    # The canonical link of the account.
    account_link: str
    # The text in the profile of the account; null if there is none.
    bio: str | None
    # When the profile of the account was last fetched; null before the first fetch.
    checked_at: str | None
    # When the account was added to the organisation, by its link or through a video.
    created_at: str
    # `username` without the suffix that begins with `~`, for display.
    display_username: str
    # Whether the platform lists no video of the account.
    empty: bool
    # A sentence for people that explains `fetch_status`, or why it is null; null if there is no explanation.
    fetch_detail: str | None
    # The fetch status of the account; null if the account is only linked from videos.
    fetch_status: str | None
    # The ids of the collections that the account was added to; empty if the account was added to no collection. At most 10000 entries.
    label_ids: list[str] | None
    # The names of the collections in `label_ids`, in the same order. At most 10000 entries.
    label_names: list[str] | None
    # When a source was last asked for the account, with or without success.
    last_attempt_at: str | None
    # The UTC day of the latest upload among the account's tracked videos; null if no upload is known.
    last_uploaded_at: str | None
    # The latest known number of followers or subscribers of the account.
    latest_followers_count: int | None
    # The latest known number of accounts that the account follows.
    latest_following_count: int | None
    # The link in the profile of the account, as the platform gives it; null if there is none.
    link: str | None
    # The mean of the latest views of the account's tracked videos; null if none is known.
    mean_views: float | None
    # The median of the latest views of the account's tracked videos; null if none is known.
    median_views: float | None
    # The median of the latest views of the account's tracked videos with more than 0 views; null if none is known.
    median_views_non_zero: float | None
    # `true` if the organisation's tier hides the metrics; absent otherwise.
    metrics_masked: NotRequired[bool]
    # The highest latest views of a tracked video of the account; null if none is known.
    most_viewed: int | None
    # When the next fetch of the account is due; null if no fetch is planned or if the tier hides the time.
    next_fetch_at: str | None
    # The id of the organisation that tracks this video or account, or owns this collection.
    organisation_id: str
    # The percentage of videos that have at least 10 times the account's median of views.
    percent_outperform_10x: float | None
    # The percentage of videos that have at least 25 times the account's median of views.
    percent_outperform_25x: float | None
    # The platform of a video or account.
    platform: Platform
    # Whether the platform says that the account is private.
    private: bool
    # Whether the tracking of this video or account was stopped.
    removed: bool
    # The sum of the latest bookmarks of the account's tracked videos; null if none is known.
    total_bookmarks: int | None
    # The sum of the latest comments of the account's tracked videos; null if none is known.
    total_comments: int | None
    # The sum of the latest likes of the account's tracked videos; null if none is known.
    total_likes: int | None
    # The sum of the latest shares of the account's tracked videos; null if none is known.
    total_shares: int | None
    # The number of videos of the account that are being tracked; null only if the tier hides it.
    total_videos_tracked: int | None
    # The sum of the latest views of the account's tracked videos; null if none is known.
    total_views: int | None
    # Which existing videos of the account are tracked, as in the request that tracked the account; null if the account was never tracked itself.
    tracking_type: str | None
    # The handle of the account, in lower case, without `@`.
    username: str
    # The views that the account's videos gained up to the newest point of its history.
    views_gained_7d: int | None


class AccountHistoryPoint(TypedDict):
    """The numbers of an account at the end of a UTC day."""

    # The sum of the bookmarks of the account's tracked videos.
    bookmarks: int | None
    # The sum of the comments of the account's tracked videos.
    comments: int | None
    # The UTC day of the point.
    date: str
    # The sum of likes, comments, bookmarks and shares.
    engagements: int | None
    # When the source in `source` was asked; absent if the time is not known.
    fetched_at: NotRequired[str]
    # The number of followers or subscribers of the account.
    followers: int | None
    # The number of accounts that the account follows.
    following: int | None
    # The sum of the likes of the account's tracked videos.
    likes: int | None
    # `true` if the organisation's tier hides the counts; absent otherwise.
    metrics_masked: NotRequired[bool]
    # The quality of the counts of a point.
    quality: NotRequired[HistoryQuality]
    # The sum of the shares of the account's tracked videos.
    shares: int | None
    # The source that last changed the point; absent if the source is not known.
    source: NotRequired[str]
    # The number of videos of the account that were being tracked; null only if the tier hides it.
    videos: int | None
    # The sum of the views of the account's tracked videos.
    views: int | None


class AccountPage(TypedDict):
    """One page of accounts."""

    # The accounts, in the requested order. At most 5000 entries.
    data: list[Account]
    # Describes one page of a list.
    pagination: Pagination


class AccountVideoPage(TypedDict):
    """One page of the videos of an account."""

    # The videos, in the requested order. At most 5000 entries.
    data: list[Video]
    # Describes one page of a list.
    pagination: Pagination


class AddedAccounts(TypedDict):
    """The result of adding accounts to a collection."""

    # The number of accounts that had not been added to the collection before.
    accounts_added: int
    # The id of the collection.
    collection_id: str
    # Always `true`; a failed request has a problem as its response.
    success: bool


class AddedVideos(TypedDict):
    """The result of adding videos to a collection."""

    # The id of the collection.
    collection_id: str
    # Always `true`; a failed request has a problem as its response.
    success: bool
    # The number of videos that had not been added to the collection before.
    videos_added: int


class Authentication(TypedDict):
    """The identity of a token."""

    # An organisation.
    organisation: Organisation
    # The rate limits of this organisation's tier, one entry for each group of operations. At most 10 entries.
    rate_limits: list[RateLimit]
    # A token, without its secret.
    token: Token


class Collection(TypedDict):
    """A group of videos and accounts."""

    # Who can open the share page of a collection or report.
    access: Access
    # The number of accounts in the collection that are not removed; null if the tier hides it.
    account_count: NotRequired[int | None]
    # When the collection was created.
    created_at: str
    # The id of the token that created the collection.
    created_by: str
    # The display settings of the share page; null if there are none.
    display_settings: DisplaySettings | None
    # The last part of the share page's URL, `{app_url}/c/{hash}`.
    hash: str | None
    # The hashtags of the collection, in lower case and in the Unicode form NFC, with `σ` for `ς`, without `#`, in alphabetical order. At most 100 entries.
    hashtags: list[str]
    # The id of the collection.
    id: str
    # `true` if the organisation's tier hides the counts; absent otherwise.
    metrics_masked: NotRequired[bool]
    # The name of the collection.
    name: str
    # The id of the organisation that tracks this video or account, or owns this collection.
    organisation_id: str
    # The id of the parent collection; null if the collection has no parent.
    parent_id: str | None
    # When the share page closes; null if it stays open.
    share_expires_at: str | None
    # The number of videos in the collection that are not removed; null if the tier hides it.
    video_count: NotRequired[int | None]


class CollectionAccountPage(TypedDict):
    """One page of the accounts of a collection."""

    # The accounts, in the requested order. At most 5000 entries.
    data: list[Account]
    # Describes one page of a list.
    pagination: Pagination


class CollectionAccountsRequest(TypedDict):
    """The ids of accounts of the organisation."""

    # Account ids. At most 100 entries.
    account_ids: list[str]


class CollectionGain(TypedDict):
    """The views that a video of a collection gained in a period."""

    # The id of the video.
    ad_id: str
    # The canonical link of the video.
    ad_link: str
    # When the video came into the collection; the last moment of the day before `counts_from` if it was added with this member.
    added_at: str
    # The last day, up to the end of the period, for which the views are known; null if no views are known.
    end_day: str | None
    # `views_gained` in percent of `views_at_start`; null if these are 0 or unknown.
    increase: float | None
    # `true` if the video is no longer tracked.
    removed: bool
    # The day of `views_at_start`; null if no views are known.
    start_day: str | None
    # The views of the video on the last day of the period; null if unknown.
    views_at_end: int | None
    # The views from which the gain is counted; null if unknown.
    views_at_start: int | None
    # `views_at_end` minus `views_at_start`; null if one of them is unknown, or if `end_day` is not after `start_day`.
    views_gained: int | None


class CollectionHistoryPoint(TypedDict):
    """The sums over the videos of a collection on a UTC day."""

    # The sum of the known bookmarks of the videos; null if none is known.
    bookmarks: int | None
    # The number of videos without a point on this day or later, whose counts are those of their last point.
    carried: int | None
    # The sum of the known comments of the videos; null if none is known.
    comments: int | None
    # The UTC day.
    date: str
    # Likes, comments, bookmarks and shares together, without unknown ones; null if all four are unknown.
    engagements: int | None
    # The number of videos whose counts are computed from the points before and after this day.
    interpolated: int | None
    # The sum of the known likes of the videos; null if none is known.
    likes: int | None
    # The number of videos that were fetched on this day.
    measured: int | None
    # `true` if the organisation's tier hides the numbers; absent otherwise.
    metrics_masked: NotRequired[bool]
    # How many of the `measured` videos have a point in which the source has probably rounded a count.
    rounded: int | None
    # The sum of the known shares of the videos; null if none is known.
    shares: int | None
    # The number of videos whose bookmarks are unknown.
    unknown_bookmarks: int | None
    # The number of videos whose comments are unknown.
    unknown_comments: int | None
    # The number of videos whose likes are unknown.
    unknown_likes: int | None
    # The number of videos whose shares are unknown.
    unknown_shares: int | None
    # The number of videos whose views are unknown.
    unknown_views: int | None
    # The number of videos in the collection on this day.
    videos: int | None
    # The number of videos that were added on this day.
    videos_added: int | None
    # The sum of the known views of the videos; null if none is known.
    views: int | None
    # The sum of the falls of videos' views since the previous day, because of corrections, rounding or another source, as a negative number or 0.
    views_corrected: int | None
    # The views of the videos that were added on this day.
    views_from_added: int | None
    # The sum of the views of the videos whose views became known on this day.
    views_from_known: int | None
    # The growth of the videos' views since the last earlier day with known views, without the videos that were added on this day.
    views_gained: int | None
    # The number of videos without a point on this day or before.
    without_point: int | None


class CollectionList(TypedDict):
    """Collections, with `count` or, for `paginated=true`, with `pagination`."""

    # The number of collections in this response; absent with `paginated=true`.
    count: NotRequired[int]
    # The collections, in the requested order. At most 5000 entries.
    data: list[Collection]
    # Describes one page of a list.
    pagination: NotRequired[Pagination]


class CollectionStatistics(TypedDict):
    """The counts of a collection's videos added up at the end of a period, and the views that the videos gained in the period."""

    # The videos that gained the most views, the best first. At most 5 entries.
    best: list[CollectionGain]
    # The sum of the known bookmarks of the videos at the end of the period; null if none is known.
    bookmarks: int | None
    # The id of the collection.
    collection_id: str
    # The sum of the known comments of the videos at the end of the period; null if none is known.
    comments: int | None
    # The last day of the period.
    end_date: str
    # Likes, comments, bookmarks and shares together, without unknown ones; null if all four are unknown.
    engagements: int | None
    # `true` if the videos of the collections below are included.
    include_children: bool
    # `views_gained` in percent of `views_at_start`; null if these are 0 or unknown.
    increase: float | None
    # The sum of the known likes of the videos at the end of the period; null if none is known.
    likes: int | None
    # `true` if the organisation's tier hides the numbers; absent otherwise.
    metrics_masked: NotRequired[bool]
    # The sum of the known shares of the videos at the end of the period; null if none is known.
    shares: int | None
    # The first day of the period.
    start_date: str
    # The number of videos whose bookmarks are unknown at the end of the period.
    unknown_bookmarks: int | None
    # The number of videos whose comments are unknown at the end of the period.
    unknown_comments: int | None
    # The number of videos whose likes, comments, bookmarks and shares are all unknown at the end of the period.
    unknown_engagements: int | None
    # The number of videos whose gain is unknown.
    unknown_gains: int | None
    # The number of videos whose likes are unknown at the end of the period.
    unknown_likes: int | None
    # The number of videos whose shares are unknown at the end of the period.
    unknown_shares: int | None
    # The number of videos whose views are unknown at the end of the period.
    unknown_views: int | None
    # The number of videos that were in the collection at the end of the period.
    videos: int | None
    # The number of videos in the collection that are no longer tracked.
    videos_removed: int | None
    # The sum of the known views of the videos at the end of the period; null if none is known.
    views: int | None
    # The sum of the views from which the gains are counted; null if no gain is known.
    views_at_start: int | None
    # The sum of the falls of views from one day to the next in the period, as a negative number or 0.
    views_corrected: int | None
    # The sum of the gains of the videos; null if no gain is known.
    views_gained: int | None
    # The videos that gained the fewest views, the worst first. At most 5 entries.
    worst: list[CollectionGain]


class CollectionVideoPage(TypedDict):
    """One page of the videos of a collection."""

    # The videos, in the requested order. At most 5000 entries.
    data: list[Video]
    # Describes one page of a list.
    pagination: Pagination


class CollectionVideosRequest(TypedDict):
    """The ids of videos of the organisation, and from which day they count."""

    # The first UTC day whose gained views count in this collection, from 2005-01-01 to today.
    counts_from: NotRequired[str | None]
    # Video ids. At most 100 entries.
    video_ids: list[str]


class CreateCollectionRequest(TypedDict):
    """The collection to create."""

    # Who can open the share page of a collection or report.
    access: NotRequired[Access]
    # The hashtags of the collection, sent with or without `#`. At most 100 entries.
    hashtags: NotRequired[list[str]]
    # Its name.
    name: str
    # The id of the parent collection.
    parent_id: NotRequired[str | None]


class CreateReportRequest(TypedDict):
    """The period of the report."""

    # An earlier report of the collection, with the same `include_children`.
    continues_report_id: NotRequired[str | None]
    # The last day.
    end_date: NotRequired[str]
    # `true`: also count the videos of all collections below.
    include_children: NotRequired[bool]
    # The first day.
    start_date: NotRequired[str]


class CreateTokenRequest(TypedDict):
    """A new token."""

    # How many days the token is valid.
    expires_in_days: NotRequired[int | None]
    # Its name.
    name: str
    # The scopes of the token. At most 3 entries.
    scopes: Scopes


class CreateWebhookRequest(TypedDict):
    """A new webhook."""

    # A note about the webhook.
    description: NotRequired[str]
    # The types of events that are sent. At most 20 entries.
    event_types: NotRequired[list[EventType]]
    # The address to which events are sent: an https URL without user name and fragment.
    url: str


class CreatedCollection(TypedDict):
    """The new collection."""

    # Who can open the share page of a collection or report.
    access: Access
    # When the collection was created.
    created_at: str
    # The id of the collection.
    id: str
    # Its name.
    name: str
    # The id of the organisation that owns the collection.
    organisation_id: str


class CreatedToken(TypedDict):
    """A new token with its secret."""

    # When the token was created.
    created_at: str
    # When the token expires; null if it does not expire.
    expires_at: str | None
    # The id of the token.
    id: str
    # Its name.
    name: str
    # The scopes of the token. At most 3 entries.
    scopes: Scopes
    # The token itself, for the header Authorization.
    secret: str | None


class CreatedWebhook(TypedDict):
    """A new webhook with its secret."""

    # When the webhook was created.
    created_at: str
    # A note about the webhook.
    description: str
    # Why the webhook is disabled: `by_request`, `gone` if its server answered with status 410, or `failing` if all attempts failed for three days.
    disabled_reason: str | None
    # Whether events are sent.
    enabled: bool
    # The types of events that are sent. At most 20 entries.
    event_types: EventTypes
    # When the first of the failed attempts since the last success was made; null if the last attempt was successful, and before the first attempt.
    failing_since: str | None
    # Its id.
    id: str
    # When an event was last accepted; null if none was accepted yet.
    last_success_at: str | None
    # Until when requests are also signed with the previous secret; null if there is none.
    previous_secret_expires_at: str | None
    # The secret that signs the requests.
    secret: str | None
    # When the webhook was last changed by a request.
    updated_at: str
    # The address to which events are sent.
    url: str


class DateRange(TypedDict):
    """A range of UTC days."""

    # The last day of the range.
    end: str | None
    # The first day of the range.
    start: str | None


class DeletedCollection(TypedDict):
    """The deleted collection."""

    # The id of the deleted collection.
    deleted_id: str
    # Always `true`; a failed request has a problem as its response.
    success: bool


class DisplaySettings(TypedDict):
    """The display settings of the share page; null if there are none."""

    # A text below the heading of the share page.
    description: NotRequired[str]
    # The metrics that the share page shows, in this order. At most 20 entries.
    metrics: NotRequired[list[Literal["views", "likes", "comments", "bookmarks", "shares", "engagement", "outlier_multiplier", "increase_1d", "increase_7d", "increase_14d", "increase_30d", "views_gained_7d"]]]
    # Whether the share page lists the accounts.
    show_accounts: NotRequired[bool]
    # Whether the share page of a report shows captions.
    show_captions: NotRequired[bool]
    # Whether the share page shows a chart of the metrics over time.
    show_history: NotRequired[bool]
    # The order of the videos on the share page.
    sort: NotRequired[ShareOrder]
    # The colours of the share page: light, dark, or the setting of the visitor's system.
    theme: NotRequired[Literal["light", "dark", "auto"]]
    # The heading of the share page.
    title: NotRequired[str]


class Event(TypedDict):
    """Something that has happened."""

    # When the change happened.
    created_at: str
    # What the event is about.
    data: EventData
    # The id of the event.
    id: str
    # The place of the event in the event feed.
    position: int
    # What has happened.
    type: EventType


class EventAccount(TypedDict):
    """An account as it was after the event."""

    # The id of the account.
    account_id: str
    # The canonical link of the account.
    account_link: str
    # When the account was last fetched; null before the first fetch.
    checked_at: str | None
    # Whether a video or account can be fetched.
    fetch_status: FetchStatus
    # The followers.
    latest_followers_count: int | None
    # The accounts that the account follows.
    latest_following_count: int | None
    # True if the organisation's tier does not show metrics.
    metrics_masked: NotRequired[bool]
    # The platform of a video or account.
    platform: Platform
    # The state of the account before the event.
    previous: NotRequired[EventAccountState]
    # The handle of the account.
    username: str


class EventAccountState(TypedDict):
    """The state of the account before the event."""

    # When the account was last fetched; null before the first fetch.
    checked_at: str | None
    # Whether a video or account can be fetched.
    fetch_status: FetchStatus
    # The followers.
    latest_followers_count: int | None
    # The accounts that the account follows.
    latest_following_count: int | None


class EventData(TypedDict):
    """What the event is about."""

    # An account as it was after the event.
    account: NotRequired[EventAccount]
    # A threshold that a metric of the video has reached.
    threshold: NotRequired[EventThreshold]
    # A video as it was after the event.
    video: NotRequired[EventVideo]
    # A webhook.
    webhook: NotRequired[EventWebhook]


class EventFeed(TypedDict):
    """A part of the events of an organisation."""

    # The events, the oldest first. At most 1000 entries.
    data: list[Event]
    # True if there are more events now.
    has_more: bool
    # Send this value as `cursor` of the next request to get the events after those of this response.
    next_cursor: str


class EventThreshold(TypedDict):
    """A threshold that a metric of the video has reached."""

    # The name of the member of the video that has reached the threshold.
    member: Literal["latest_views", "outlier_multiplier"]
    # The threshold; null if the organisation's tier does not show metrics.
    value: int | None


class EventVideo(TypedDict):
    """A video as it was after the event."""

    # The id of the video.
    ad_id: str
    # The canonical link of the video.
    ad_link: str
    # Whether a video or account can be fetched.
    fetch_status: FetchStatus
    # The bookmarks.
    latest_bookmarks: int | None
    # The comments.
    latest_comments: int | None
    # Likes, comments, bookmarks and shares added up, as far as they are known.
    latest_engagement: int | None
    # The likes.
    latest_likes: int | None
    # The shares.
    latest_shares: int | None
    # When the metrics were fetched; null before the first fetch.
    latest_updated_at: str | None
    # The views.
    latest_views: int | None
    # The id of the account that posted the video; null while it is unknown.
    linked_account_id: str | None
    # True if the organisation's tier does not show metrics.
    metrics_masked: NotRequired[bool]
    # The views divided by the median views of the account's tracked videos.
    outlier_multiplier: float | None
    # The platform of a video or account.
    platform: Platform
    # The state of the video before the event.
    previous: NotRequired[EventVideoState]
    # True if the tracking of the video was stopped.
    removed: bool
    # The handle of the account; empty while it is unknown.
    username: str


class EventVideoState(TypedDict):
    """The state of the video before the event."""

    # Whether a video or account can be fetched.
    fetch_status: FetchStatus
    # The bookmarks.
    latest_bookmarks: int | None
    # The comments.
    latest_comments: int | None
    # Likes, comments, bookmarks and shares added up, as far as they are known.
    latest_engagement: int | None
    # The likes.
    latest_likes: int | None
    # The shares.
    latest_shares: int | None
    # When the metrics were fetched; null before the first fetch.
    latest_updated_at: str | None
    # The views.
    latest_views: int | None
    # The views divided by the median views of the account's tracked videos.
    outlier_multiplier: float | None


class EventWebhook(TypedDict):
    """A webhook."""

    # The id of the webhook.
    id: str
    # The `disabled_reason` of the webhook; null in a test.
    reason: str | None
    # The address to which events are sent.
    url: str


class ExportedPoint(TypedDict):
    """A stored point: the last counts that were fetched on a UTC day."""

    # The id of the video.
    ad_id: str
    # The canonical link of the video.
    ad_link: str
    # The number of bookmarks; null if the source did not give it, or if the tier masks it.
    bookmarks: int | None
    # The number of comments; null if the source did not give it, or if the tier masks it.
    comments: int | None
    # The UTC day of the point.
    date: str
    # When the source was asked; null if the tier masks it.
    fetched_at: str | None
    # The number of likes; null if the source did not give it, or if the tier masks it.
    likes: int | None
    # Present and `true` if the tier masks the counts.
    metrics_masked: NotRequired[Literal[True]]
    # The platform of a video or account.
    platform: Platform
    # `true` if the source has probably rounded a count; null if the tier masks it.
    rounded: bool | None
    # The number of shares; null if the source did not give it, or if the tier masks it.
    shares: int | None
    # The source that reported the counts; null if the tier masks it.
    source: str | None
    # The number of views; null if the source did not give it, or if the tier masks it.
    views: int | None


class Fault(TypedDict):
    """One fault of a request."""

    # The code of the fault, for programs.
    code: str
    # A message for people.
    detail: str
    # The part of the request that has the fault.
    location: Literal["body", "query", "path", "header"]
    # The name of the parameter or header that has the fault.
    name: NotRequired[str]
    # The place of the fault in the body, as a JSON pointer; empty if the fault concerns the whole body.
    pointer: NotRequired[str]


class HistoryExport(TypedDict):
    """A page of an export."""

    # The points of the videos of this page. At most 1000000 entries.
    data: list[ExportedPoint]
    # The end of the export: it has no point that was fetched later.
    exported_until: str
    # The cursor of the next page; null on the last page.
    next_cursor: str | None


class ListedToken(TypedDict):
    """A token in the list of tokens."""

    # When the token was created.
    created_at: str
    # True for the token that sent this request.
    current: bool
    # When the token expires; null if it does not expire.
    expires_at: str | None
    # The id of the token.
    id: str
    # When the token was last used, accurate to one minute; null if it was never used.
    last_used_at: str | None
    # Its name.
    name: str
    # When the token was revoked; null if it was not revoked.
    revoked_at: str | None
    # The scopes of the token. At most 3 entries.
    scopes: Scopes
    # Whether the token can be used: a revoked token is `revoked`, even if it has also expired.
    state: TokenState


class Message(TypedDict):
    """The result of a request, as a message for people."""

    # The message for people.
    message: str


class Organisation(TypedDict):
    """An organisation."""

    # The id of the organisation.
    id: str
    # Its name.
    name: str
    # The state of the organisation's subscription.
    subscription: Literal["active", "none"]
    # The tier of the organisation.
    tier: Literal["limited", "basic", "premium"]


class OrganisationHistoryPoint(TypedDict):
    """The numbers of an organisation's videos and accounts, and the sums of their counts, at the end of a UTC day."""

    # The number of tracked accounts.
    accounts: int | None
    # The sum of the bookmarks of the organisation's videos; null if none is known.
    bookmarks: int | None
    # The sum of the comments on the organisation's videos; null if none is known.
    comments: int | None
    # The UTC day of the point.
    date: str
    # Likes, comments, bookmarks and shares together, without unknown ones; null if all four are unknown.
    engagements: int | None
    # The sum of the followers of the organisation's accounts; null if none is known.
    followers: int | None
    # The sum of the numbers of accounts that the organisation's accounts follow; null if none is known.
    following: int | None
    # The sum of the likes of the organisation's videos; null if none is known.
    likes: int | None
    # `true` if the organisation's tier hides the counts; absent otherwise.
    metrics_masked: NotRequired[bool]
    # The sum of the shares of the organisation's videos; null if none is known.
    shares: int | None
    # The number of the organisation's videos that were uploaded on this day, if the day of the upload is known now.
    uploads: int | None
    # The number of tracked videos.
    videos: int | None
    # The sum of the views of the organisation's videos; null if none is known.
    views: int | None
    # The views that the organisation's videos gained since the previous point that has sums.
    views_gained: int | None


class Pagination(TypedDict):
    """Describes one page of a list."""

    # The maximum number of items of a page.
    limit: int
    # The value of the parameter `cursor` that requests the next page; null on the last page.
    next_cursor: str | None
    # The number of this page; the first page is 1.
    page: int
    # The number of items in the whole list.
    total: int
    # The number of pages of `limit` items; 0 if the list is empty.
    total_pages: int


class PendingItem(TypedDict):
    """A saved item whose data is not fetched."""

    # The id of the video or account.
    id: str
    # The platform of a video or account.
    platform: Platform


class PendingQueue(TypedDict):
    """The saved items of the request that are not fetched because the organisation has no active subscription."""

    # The accounts whose data is not fetched. At most 500 entries.
    accounts: list[PendingItem]
    # The videos whose data is not fetched. At most 500 entries.
    videos: list[PendingItem]


class PlatformCounts(TypedDict):
    """The number of tracked videos or accounts by platform."""

    # The number of tracked videos or accounts on Facebook.
    facebook: int
    # The number of tracked videos or accounts on Instagram.
    instagram: int
    # The number of tracked videos or accounts on TikTok.
    tiktok: int
    # The number of tracked videos or accounts on YouTube.
    youtube: int


class Problem(TypedDict):
    """A problem (RFC 9457): what is wrong with a request, or why the server failed."""

    # The error code, for programs.
    code: str
    # A message for people that names the wrong value and the allowed values.
    detail: str
    # A copy of `detail`, for older programs.
    error: str
    # All faults of the request, at most 1000. At most 1000 entries.
    errors: NotRequired[list[Fault]]
    # The path of the request.
    instance: str
    # The id of the request.
    request_id: str
    # The HTTP status.
    status: int
    # The meaning of `code` in a few words.
    title: str
    # A URL reference to the documentation of `code`.
    type: str


class RateLimit(TypedDict):
    """The rate limit of a group of operations."""

    # The group of operations (`x-rate-group`).
    group: str
    # The number of requests that are allowed for one operation in a window.
    limit: int
    # The operationIds of the group's operations. At most 100 entries.
    operations: list[str]
    # The length of a window in seconds.
    window_seconds: int


class RefreshAccountRequest(TypedDict):
    """The account to fetch."""

    # The id of the account, or any form of its link.
    link: str


class RefreshNotDue(TypedDict):
    """Says that the last successful fetch is less than 4 hours old, and when the next fetch can be requested."""

    # When the video or account was last fetched; null for the tiers limited and basic, whose metrics are masked.
    latest_updated_at: str | None
    # A message for people.
    message: str
    # When the next fetch can be requested: 4 hours after the last fetch.
    refresh_after: str


class RefreshVideoRequest(TypedDict):
    """The video to fetch."""

    # The id of the video, or any form of its link.
    link: str


class RemoveCollectionVideosRequest(TypedDict):
    """The ids of videos of the organisation."""

    # Video ids. At most 100 entries.
    video_ids: list[str]


class RemovedAccounts(TypedDict):
    """The result of removing accounts from a collection."""

    # The number of added accounts that were removed from the collection.
    accounts_removed: int
    # The id of the collection.
    collection_id: str
    # Always `true`; a failed request has a problem as its response.
    success: bool


class RemovedVideos(TypedDict):
    """The result of removing videos from a collection."""

    # The id of the collection.
    collection_id: str
    # Always `true`; a failed request has a problem as its response.
    success: bool
    # The number of added videos that were removed from the collection.
    videos_removed: int


class Report(TypedDict):
    """A frozen report of a collection."""

    # The accounts of the videos, the one with the most gained views first. At most 5000 entries.
    accounts: NotRequired[list[ReportAccount]]
    # The collection, and the collections below it if they are included. At most 100000 entries.
    collections: list[ReportCollection]
    # The id of the report that this report continues; null if it continues none.
    continues_report_id: NotRequired[str | None]
    # When the report was made.
    created_at: str
    # The id of the token with which the report was made.
    created_by: str
    # The sums of each day, newest first. At most 731 entries.
    days: list[CollectionHistoryPoint]
    # The version of the format of the report.
    format: int
    # The id of the report.
    id: str
    # The number of the report.
    number: int
    # The id of the organisation.
    organisation_id: str
    # The totals of the videos at the end of the report's period, and the views that they gained in it.
    statistics: ReportStatistics
    # The videos of the report, sorted by id. At most 5000 entries.
    videos: list[ReportVideo]


class ReportAccount(TypedDict):
    """An account with videos in a report, and the sums of the counts of these videos."""

    # The id of the account; null if the account is unknown.
    account_id: str | None
    # The platform of a video or account.
    platform: Platform
    # The number of videos whose gain is unknown.
    unknown_gains: int
    # The number of videos whose views are unknown at the end of the period.
    unknown_views: int
    # The name of the account when the report was made; null if the account is unknown.
    username: str | None
    # The number of videos of the account in the report.
    videos: int
    # The sum of the known views of the videos at the end of the period; null if none is known.
    views_at_end: int | None
    # The sum of the known gains of the videos; null if none is known.
    views_gained: int | None
    # How many views the account had lost at the end of the report that this report continues, since the highest sum of its gains in that report and those before it.
    views_to_regain: NotRequired[int | None]
    # The same as `views_to_regain`, if each report also counts the `views_at_start` of videos whose `uploaded_at` and `start_day` are both in its period.
    views_to_regain_with_start: NotRequired[int | None]


class ReportCollection(TypedDict):
    """A collection whose videos are in a report."""

    # The id of the collection.
    id: str
    # The name of the collection when the report was made.
    name: str


class ReportOverlap(TypedDict):
    """An earlier report that counts some of the same views as a report."""

    # The name of the collection when the earlier report was made.
    collection_name: str
    # The last day of the earlier report's period.
    end_date: str
    # The number of the earlier report.
    number: int
    # The id of the earlier report.
    report_id: str
    # The first day of the earlier report's period.
    start_date: str
    # The number of videos of which both reports count views of the same days.
    videos: int
    # The views at the start (`views_at_start`) of those of these videos whose `uploaded_at` and `start_day` are both in the period of this report.
    views_at_start: int
    # The views that these videos gained in this report.
    views_gained: int


class ReportPage(TypedDict):
    """One page of the reports of a collection."""

    # The reports, in the requested order. At most 5000 entries.
    data: list[ReportSummary]
    # Describes one page of a list.
    pagination: Pagination


class ReportPoint(TypedDict):
    """A stored point of a video."""

    # The number of bookmarks; null if the platform does not give it.
    bookmarks: int | None
    # The number of comments; null if the platform does not give it.
    comments: int | None
    # The UTC day of the point.
    date: str
    # When the source was asked.
    fetched_at: str
    # The number of likes; null if the platform does not give it.
    likes: int | None
    # The quality of the counts of a point.
    quality: HistoryQuality
    # The number of shares; null if the platform does not give it.
    shares: int | None
    # The source that gave the counts.
    source: str
    # The number of views; null if the platform does not give it.
    views: int | None


class ReportStatistics(TypedDict):
    """The totals of the videos at the end of the report's period, and the views that they gained in it."""

    # The sum of the known bookmarks of the videos at the end of the period; null if none is known.
    bookmarks: int | None
    # The id of the collection.
    collection_id: str
    # The sum of the known comments of the videos at the end of the period; null if none is known.
    comments: int | None
    # The last day of the period.
    end_date: str
    # Likes, comments, bookmarks and shares together, without unknown ones; null if all four are unknown.
    engagements: int | None
    # `true` if the videos of the collections below are included.
    include_children: bool
    # `views_gained` in percent of `views_at_start`; null if these are 0 or unknown.
    increase: float | None
    # The sum of the known likes of the videos at the end of the period; null if none is known.
    likes: int | None
    # `true` if the organisation's tier hides the numbers; absent otherwise.
    metrics_masked: NotRequired[bool]
    # The sum of the known shares of the videos at the end of the period; null if none is known.
    shares: int | None
    # The first day of the period.
    start_date: str
    # The number of videos whose bookmarks are unknown at the end of the period.
    unknown_bookmarks: int | None
    # The number of videos whose comments are unknown at the end of the period.
    unknown_comments: int | None
    # The number of videos whose likes, comments, bookmarks and shares are all unknown at the end of the period.
    unknown_engagements: NotRequired[int | None]
    # The number of videos whose gain is unknown.
    unknown_gains: NotRequired[int | None]
    # The number of videos whose likes are unknown at the end of the period.
    unknown_likes: int | None
    # The number of videos whose shares are unknown at the end of the period.
    unknown_shares: int | None
    # The number of videos whose views are unknown at the end of the period.
    unknown_views: int | None
    # The number of videos that were in the collection at the end of the period.
    videos: int | None
    # The number of videos in the collection that are no longer tracked.
    videos_removed: int | None
    # The sum of the known views of the videos at the end of the period; null if none is known.
    views: int | None
    # The sum of the views from which the gains are counted; null if no gain is known.
    views_at_start: int | None
    # The sum of the falls of views from one day to the next in the period, as a negative number or 0.
    views_corrected: int | None
    # The sum of the gains of the videos; null if no gain is known.
    views_gained: int | None


class ReportSummary(TypedDict):
    """What identifies a report."""

    # Who can open the share page of a collection or report.
    access: Access
    # The number of bytes that `GET /reports/{report_id}` returns.
    bytes: int | None
    # The SHA-256 checksum of the bytes that `GET /reports/{report_id}` returns, in hexadecimal digits.
    checksum: str | None
    # The id of the collection, which may be deleted by now.
    collection_id: str
    # The name of the collection when the report was made.
    collection_name: str
    # The id of the report that this report continues; null if it continues none.
    continues_report_id: str | None
    # When the report was made.
    created_at: str
    # The id of the token with which the report was made.
    created_by: str
    # The display settings of the share page; null if there are none.
    display_settings: DisplaySettings | None
    # The last day of the period.
    end_date: str
    # The last part of the share page's URL, `{app_url}/r/{hash}`.
    hash: str | None
    # The id of the report.
    id: str
    # `true` if the videos of the collections below are included.
    include_children: bool
    # The number of the report.
    number: int
    # The earlier reports of the organisation that count some of the same views, the newest first: both reports count views of at least one video on the same day. At most 100 entries.
    overlaps: list[ReportOverlap] | None
    # When the share page closes; null if it stays open.
    share_expires_at: str | None
    # The first day of the period.
    start_date: str


class ReportVideo(TypedDict):
    """A video of a report, with the stored points from which its counts follow."""

    # The id of the video's account; null if the account is unknown.
    account_id: NotRequired[str | None]
    # The id of the video.
    ad_id: str
    # The canonical link of the video.
    ad_link: str
    # When the video came into the collection; the last moment of the day before `counts_from` if it was added with this member.
    added_at: str
    # The views of the video at the end of the report that this report continues; null if that report has none, or if this report continues none.
    continued_views_at_end: NotRequired[int | None]
    # The last day, up to the end of the period, for which the views are known; null if no views are known.
    end_day: NotRequired[str | None]
    # `views_gained` in percent of `views_at_start`; null if these are 0 or unknown.
    increase: float | None
    # The stored points of the video that the report uses, the oldest first. At most 800 entries.
    points: list[ReportPoint]
    # `true` if the video is no longer tracked.
    removed: bool
    # The day of `views_at_start`; null if no views are known.
    start_day: str | None
    # The caption of the video when the report was made, cut after 300 characters; null if the video has no caption.
    title: NotRequired[str | None]
    # The day on which the video was uploaded; null if unknown.
    uploaded_at: NotRequired[str | None]
    # The name of the video's account when the report was made; null if the account is unknown.
    username: NotRequired[str | None]
    # The views of the video on the last day of the period; null if unknown.
    views_at_end: int | None
    # The views from which the gain is counted; null if unknown.
    views_at_start: int | None
    # `views_at_end` minus `views_at_start`; null if one of them is unknown, or if `end_day` is not after `start_day`.
    views_gained: int | None


class ShareOrder(TypedDict):
    """The order of the videos on the share page."""

    # The members by which the videos of a collection can be sorted.
    by: NotRequired[CollectionVideoOrder]
    # The direction of the order: ascending or descending.
    direction: NotRequired[OrderDirection]


class Statistics(TypedDict):
    """The numbers of videos or accounts of an organisation."""

    # The number of tracked videos or accounts by platform.
    by_platform: PlatformCounts
    # The number of tracked and stopped videos or accounts by `fetch_status`.
    by_status: StatusCounts
    # The number of videos or accounts whose tracking was stopped.
    removed: int
    # The number of videos or accounts that are being tracked.
    total: int


class StatusCounts(TypedDict):
    """The number of tracked and stopped videos or accounts by `fetch_status`."""

    # The number of videos or accounts whose fetch is late, or whose source is paused.
    delayed: int
    # The number of videos or accounts whose last attempts failed.
    failing: int
    # The number of videos or accounts that do not exist any more.
    gone: int
    # The number of videos or accounts whose last fetch succeeded, or of which only one attempt failed after it.
    ok: int
    # The number of videos or accounts of which no fetch has succeeded since tracking began.
    pending: int
    # The number of videos or accounts that are private.
    private: int
    # The number of videos or accounts that a source does not show to everyone.
    restricted: int
    # The number of videos or accounts whose tracking was stopped.
    stopped: int
    # The number of videos or accounts that no configured source can fetch.
    unsupported: int


class StopAccountRequest(TypedDict):
    """The account to stop tracking."""

    # The id of the account, or any form of its link.
    id: str


class StopAccountsRequest(TypedDict):
    """The accounts to stop tracking."""

    # The ids of the accounts, or the links that were tracked. At most 500 entries.
    ids: list[str]


class StopEntry(TypedDict):
    """The result for one entry."""

    # Why the entry failed, as a stable code for programs.
    code: NotRequired[Literal["not_found"]]
    # A message for people that says why the entry failed.
    error: NotRequired[str]
    # The id of the video or account, also for an entry that was sent as a link.
    id: str
    # Whether the tracking of the video or account was stopped.
    success: bool
    # Whether an entry of a bulk result is a video or an account.
    type: EntryType
    # The link, as sent.
    url: NotRequired[str]


class StopResult(TypedDict):
    """The result for each entry."""

    # One entry for each distinct video or account, in the order of the request. At most 500 entries.
    results: list[StopEntry]
    # True only if every entry was stopped.
    success: bool
    # How many entries of a bulk request succeeded and failed.
    summary: StopSummary


class StopSummary(TypedDict):
    """How many entries of a bulk request succeeded and failed."""

    # The number of ids that are unknown or were stopped before.
    failed: int
    # The number of entries that were stopped.
    succeeded: int
    # The number of distinct entries.
    total: int


class StopVideoRequest(TypedDict):
    """The video to stop tracking."""

    # The id of the video, or any form of its link.
    id: str


class StopVideosRequest(TypedDict):
    """The videos to stop tracking."""

    # The ids of the videos, or the links that were tracked. At most 500 entries.
    ids: list[str]


class StoppedAccount(TypedDict):
    """The result of stopping the tracking of an account, with the numbers of its videos."""

    # The message for people.
    message: str
    # The number of videos of the account that stay tracked, because they were also added by their links.
    videos_still_tracked: NotRequired[int]
    # The number of videos whose tracking was stopped with the account, because they were found only through it.
    videos_stopped: NotRequired[int]


class TimeRange(TypedDict):
    """A range of time."""

    # The latest time of the range.
    end: str | None
    # The earliest time of the range.
    start: str | None


class Token(TypedDict):
    """A token, without its secret."""

    # When the token was created.
    created_at: str
    # When the token expires; null if it does not expire.
    expires_at: str | None
    # The id of the token.
    id: str
    # Its name.
    name: str
    # The scopes of the token. At most 3 entries.
    scopes: Scopes


class TokenList(TypedDict):
    """The tokens of an organisation."""

    # The tokens, the newest first. At most 100000 entries.
    data: list[ListedToken]


class TrackAccountRequest(TypedDict):
    """The account to track, and how to track it."""

    # The ids of the collections to put the account into. At most 100 entries.
    collection_ids: NotRequired[list[str] | None]
    # The names of root collections to put the account into. At most 100 entries.
    collection_names: NotRequired[list[str] | None]
    # Any form of the link of an account.
    link: str
    # Which of the account's existing videos are tracked: the newest 30, the newest 200, none, or `all`: the newest 5,000.
    tracking_type: NotRequired[TrackingType]


class TrackAccountResult(TypedDict):
    """The tracked account."""

    # The id of the account.
    accountId: str
    # The account's page on the dashboard: `{app_url}/account/{platform}/{account_id}`.
    directUrl: str
    # A message which says that the organisation already tracked the account; absent otherwise.
    error: NotRequired[str]
    # Messages about problems that did not make the request fail, for example that no configured source can fetch the account. At most 10 entries.
    warnings: list[str]


class TrackAccountsEntry(TypedDict):
    """The result for one link."""

    # The id of the account; absent when the status is `failed`.
    accountId: NotRequired[str]
    # Why a link failed; only on failed entries.
    code: NotRequired[TrackFailure]
    # A message for people that says why the entry failed.
    error: NotRequired[str]
    # The positions of the link in the `links` of the request, in ascending order; the first link has position 0. At most 500 entries.
    positions: LinkPositions
    # Whether sending the link again can succeed.
    retryable: NotRequired[bool]
    # The result for a link.
    status: TrackStatus
    # True unless the status is `failed`.
    success: bool
    # Whether an entry of a bulk result is a video or an account.
    type: EntryType
    # The link, as it was first sent.
    url: str
    # Whether the organisation had the account before, tracked or stopped.
    wasExisting: bool


class TrackAccountsRequest(TypedDict):
    """The accounts to track."""

    # The ids of the collections to put each account into. At most 100 entries.
    label_ids: NotRequired[list[str] | None]
    # The links. At most 500 entries.
    links: list[str]
    # Which of the account's existing videos are tracked: the newest 30, the newest 200, none, or `all`: the newest 5,000.
    tracking_type: NotRequired[TrackingType]


class TrackAccountsResult(TypedDict):
    """The result for each link."""

    # The saved items of the request that are not fetched because the organisation has no active subscription.
    pendingTmvQueue: NotRequired[PendingQueue]
    # One entry for each distinct link, in the order of the request. At most 500 entries.
    results: list[TrackAccountsEntry]
    # True only if every link succeeded.
    success: bool
    # How many entries of a bulk request succeeded and failed.
    summary: TrackSummary
    # True if every saved item is being fetched.
    trackingEnqueued: bool
    # Messages about problems that did not make the request fail. At most 10 entries.
    warnings: list[str]


class TrackSummary(TypedDict):
    """How many entries of a bulk request succeeded and failed."""

    # The number of entries with the status `already_tracked`.
    alreadyExists: int
    # The number of entries with the status `failed`.
    failed: int
    # The number of failed entries for which a retry can succeed.
    retryable: int
    # The number of entries that succeeded, including links that were tracked before.
    succeeded: int
    # The number of distinct links.
    total: int


class TrackVideoRequest(TypedDict):
    """The video to track."""

    # The ids of the collections to put the video into. At most 100 entries.
    collection_ids: NotRequired[list[str] | None]
    # The names of root collections to put the video into. At most 100 entries.
    collection_names: NotRequired[list[str] | None]
    # Any form of the link of a video.
    link: str


class TrackVideoResult(TypedDict):
    """The tracked video."""

    # The video's page on the dashboard: `{app_url}/video/{platform}/{video_id}`.
    directUrl: str
    # A message which says that the organisation already tracked the video; absent otherwise.
    error: NotRequired[str]
    # The id of the video.
    videoId: str
    # Messages about problems that did not make the request fail, for example that no configured source can fetch the video. At most 10 entries.
    warnings: list[str]


class TrackVideosEntry(TypedDict):
    """The result for one link."""

    # Why a link failed; only on failed entries.
    code: NotRequired[TrackFailure]
    # A message for people that says why the entry failed.
    error: NotRequired[str]
    # The positions of the link in the `links` of the request, in ascending order; the first link has position 0. At most 500 entries.
    positions: LinkPositions
    # Whether sending the link again can succeed.
    retryable: NotRequired[bool]
    # The result for a link.
    status: TrackStatus
    # True unless the status is `failed`.
    success: bool
    # Whether an entry of a bulk result is a video or an account.
    type: EntryType
    # The link, as it was first sent.
    url: str
    # The id of the video; absent when the status is `failed`.
    videoId: NotRequired[str]
    # Whether the organisation had the video before, tracked or stopped.
    wasExisting: bool


class TrackVideosRequest(TypedDict):
    """The videos to track."""

    # The ids of the collections to put each video into. At most 100 entries.
    label_ids: NotRequired[list[str] | None]
    # The links. At most 500 entries.
    links: list[str]


class TrackVideosResult(TypedDict):
    """The result for each link."""

    # The saved items of the request that are not fetched because the organisation has no active subscription.
    pendingTmvQueue: NotRequired[PendingQueue]
    # One entry for each distinct link, in the order of the request. At most 500 entries.
    results: list[TrackVideosEntry]
    # True only if every link succeeded.
    success: bool
    # How many entries of a bulk request succeeded and failed.
    summary: TrackSummary
    # True if every saved item is being fetched.
    trackingEnqueued: bool
    # Messages about problems that did not make the request fail. At most 10 entries.
    warnings: list[str]


class UpdateCollectionRequest(TypedDict):
    """The properties of the collection to change."""

    # Who can open the share page of a collection or report.
    access: NotRequired[Access]
    # The display settings of the share page; null if there are none.
    display_settings: NotRequired[DisplaySettings | None]
    # The new hashtags of the collection, sent with or without `#`. At most 100 entries.
    hashtags: NotRequired[list[str]]
    # Its name.
    name: NotRequired[str]
    # The new parent collection; null moves the collection to the root.
    parent_id: NotRequired[str | None]
    # The new password of the share page.
    password: NotRequired[str]
    # When the share page closes; null keeps it open.
    share_expires_at: NotRequired[str | None]


class UpdateReportRequest(TypedDict):
    """The members of the share page of a report to change."""

    # Who can open the share page of a collection or report.
    access: NotRequired[Access]
    # The display settings of the share page; null if there are none.
    display_settings: NotRequired[DisplaySettings | None]
    # The new password of the share page.
    password: NotRequired[str]
    # When the share page closes; null keeps it open.
    share_expires_at: NotRequired[str | None]


class UpdateWebhookRequest(TypedDict):
    """The members of a webhook to change."""

    # A note about the webhook.
    description: NotRequired[str]
    # Whether events are sent.
    enabled: NotRequired[bool]
    # The types of events that are sent. At most 20 entries.
    event_types: NotRequired[list[EventType]]
    # The address to which events are sent: an https URL without user name and fragment.
    url: NotRequired[str]


class Video(TypedDict):
    """A video of the organisation."""

    # The id of the video.
    ad_id: str
    # Whether the video is a shop ad.
    ad_info_shop: bool
    # Whether the platform marks the video as an ad.
    ad_is_ad: bool
    # The canonical link of the video.
    ad_link: str
    # The product id of a shop ad; empty for other videos and for shop ads without a product id.
    ad_product_id_shop: str
    # When the video was first tracked for the organisation, by its link or through its account.
    created_at: str
    # `username` without the suffix that begins with `~`, for display.
    display_username: str
    # A sentence for people that explains `fetch_status`; null if the status needs no explanation, or if the tier hides it.
    fetch_detail: str | None
    # Whether a video or account can be fetched.
    fetch_status: FetchStatus
    # Whether the platform does not give at least one count that it normally gives.
    hidden_stats: bool
    # The growth from earlier views to `latest_views`, in percent.
    increase_14d: float | None
    # The growth from earlier views to `latest_views`, in percent.
    increase_1d: float | None
    # The growth from earlier views to `latest_views`, in percent.
    increase_30d: float | None
    # The growth from earlier views to `latest_views`, in percent.
    increase_7d: float | None
    # The ids of the collections that the video is in; empty if the video is in no collection. At most 10000 entries.
    label_ids: list[str] | None
    # The names of the collections in `label_ids`, in the same order. At most 10000 entries.
    label_names: list[str] | None
    # When a source was last asked for the video, with or without success.
    last_attempt_at: str | None
    # The latest known number of bookmarks.
    latest_bookmarks: int | None
    # The latest known number of comments.
    latest_comments: int | None
    # The sum of likes, comments, bookmarks and shares.
    latest_engagement: int | None
    # The latest known number of likes.
    latest_likes: int | None
    # The latest known number of shares.
    latest_shares: int | None
    # When the metrics were last fetched, or the time of later imported metrics; null before that, and if the tier hides it.
    latest_updated_at: str | None
    # The latest known number of views: on TikTok and YouTube as the platform shows it, on Instagram the plays on Instagram without those on Facebook.
    latest_views: int | None
    # The account that posted the video; null until it is known from the link or a fetch.
    linked_account_id: str | None
    # `true` if the organisation's tier hides the metrics; absent otherwise.
    metrics_masked: NotRequired[bool]
    # When the next fetch of the video is due; null if no fetch is planned or if the tier hides the time.
    next_fetch_at: str | None
    # Whether the platform restricts the video, for example by age (not safe for work).
    not_safe: bool
    # The id of the organisation that tracks this video or account, or owns this collection.
    organisation_id: str
    # The latest views of the video, divided by the median of the latest views of the account's tracked videos.
    outlier_multiplier: float | None
    # The platform of a video or account.
    platform: Platform
    # Whether the platform says that the video is private now.
    private: bool
    # Whether the tracking of this video or account was stopped.
    removed: bool
    # The link of the video's sound; null if the platform gives none.
    song_link: str | None
    # The name of the video's sound; null if it has no sound or the platform does not name it.
    song_name: str | None
    # The address of the video's picture at the platform, as a source gave it last; null if no source gave one.
    thumbnail_url: str | None
    # The title or caption of the video; empty before the first fetch.
    title: str
    # The UTC day of the upload; null before the first fetch, and if no source gave it.
    uploaded_at: str | None
    # The handle of the account that posted the video, in lower case, without `@`.
    username: str
    # The length of the video in seconds; null before the first fetch, and if no source gave it, as for live broadcasts, slideshows, and Instagram without a vendor.
    video_length: str | None
    # `latest_views` minus earlier views.
    views_gained_7d: int | None


class VideoFilters(TypedDict):
    """The filters that were applied."""

    # The value of the filter `ad_info_shop`: only shop ads if true, only other videos if false.
    ad_info_shop: bool | None
    # Whether the list has only shop ads with a product id.
    ad_product_id_shop: bool | None
    # The collections of the filter, as sent; empty if the filter is not used. At most 100 entries.
    collections: list[str]
    # The status of the filter `fetch_status`.
    fetch_status: str | None
    # The value of the filter `has_metrics`: only videos whose metrics were fetched at least once if true, only videos whose metrics were never fetched if false.
    has_metrics: bool | None
    # The hashtag of the filter `hashtag`, in lower case and in the Unicode form NFC, with `σ` for `ς`, without `#`.
    hashtag: str | None
    # The value of `include_removed`.
    include_removed: bool
    # A range of time.
    latest_updated_at_range: TimeRange
    # The link of the filter `link`, in its canonical form.
    link: str | None
    # The account id of the filter `linked_account_id`.
    linked_account_id: str | None
    # The platform of the filter `platform`.
    platform: str | None
    # The filter `q`, as it was sent: the words that the caption must contain, each also inside a longer word.
    q: str | None
    # A range of UTC days.
    uploaded_at_range: DateRange
    # The handle of the filter `username`, in lower case, without `@`.
    username: str | None


class VideoHistoryPoint(TypedDict):
    """The counts of one UTC day."""

    # The number of bookmarks.
    bookmarks: int | None
    # The number of comments.
    comments: int | None
    # The UTC day of the point.
    date: str
    # The sum of likes, comments, bookmarks and shares.
    engagements: int | None
    # When the source in `source` was asked; absent on an interpolated point.
    fetched_at: NotRequired[str]
    # `true` if the counts of the point were computed from the snapshots before and after it; absent otherwise.
    interpolated: NotRequired[bool]
    # The number of likes.
    likes: int | None
    # `true` if the organisation's tier hides the counts; absent otherwise.
    metrics_masked: NotRequired[bool]
    # The quality of the counts of a point.
    quality: NotRequired[HistoryQuality]
    # The number of shares.
    shares: int | None
    # The source that gave the counts; absent on an interpolated point.
    source: NotRequired[str]
    # The number of views, as in `latest_views` of the video.
    views: int | None


class VideoPage(TypedDict):
    """One page of videos."""

    # The videos, in the requested order. At most 5000 entries.
    data: list[Video]
    # The filters that were applied.
    filters: VideoFilters
    # Describes this page of the list and its order.
    pagination: VideoPagination


class VideoPagination(TypedDict):
    """Describes this page of the list and its order."""

    # Whether there is a next page.
    has_more: bool
    # The maximum number of items of a page.
    limit: int
    # The value of the parameter `cursor` that requests the next page; null on the last page.
    next_cursor: str | None
    # The members by which a list of videos can be sorted.
    order_by: VideoOrder
    # The direction of the order: ascending or descending.
    order_direction: OrderDirection
    # The number of this page; the first page is 1.
    page: int
    # The number of videos that match the filters.
    total: int
    # The number of pages of `limit` items; 0 if no video matches the filters.
    total_pages: int


class Webhook(TypedDict):
    """An endpoint to which events are sent."""

    # When the webhook was created.
    created_at: str
    # A note about the webhook.
    description: str
    # Why the webhook is disabled: `by_request`, `gone` if its server answered with status 410, or `failing` if all attempts failed for three days.
    disabled_reason: str | None
    # Whether events are sent.
    enabled: bool
    # The types of events that are sent. At most 20 entries.
    event_types: EventTypes
    # When the first of the failed attempts since the last success was made; null if the last attempt was successful, and before the first attempt.
    failing_since: str | None
    # Its id.
    id: str
    # When an event was last accepted; null if none was accepted yet.
    last_success_at: str | None
    # Until when requests are also signed with the previous secret; null if there is none.
    previous_secret_expires_at: str | None
    # When the webhook was last changed by a request.
    updated_at: str
    # The address to which events are sent.
    url: str


class WebhookDelivery(TypedDict):
    """An event that is sent to a webhook, with the result of the last attempt."""

    # How many attempts were made.
    attempts: int
    # The `created_at` of the event; for a delivery that replays another one, the time of the replay.
    created_at: str
    # How many milliseconds the last attempt took.
    duration_ms: int | None
    # Why the last attempt failed; null if it was successful or not made yet.
    error: str | None
    # The id of the event, which is sent as `webhook-id`.
    event_id: str
    # What has happened.
    event_type: EventType
    # Its id.
    id: str
    # When the last attempt was made; null before the first attempt.
    last_attempt_at: str | None
    # When the next attempt is due; null if the event was accepted, if all attempts failed, or while the webhook is disabled.
    next_attempt_at: str | None
    # The first bytes of the last response; null if there was no response.
    response_body: str | None
    # The HTTP status of the last response; null if there was no response.
    response_status: int | None
    # Whether an attempt will follow (`pending`), the event was accepted (`delivered`), or all attempts failed (`failed`).
    status: WebhookDeliveryStatus
    # The id of the webhook.
    webhook_id: str


class WebhookDeliveryPage(TypedDict):
    """One page of the deliveries to a webhook."""

    # The deliveries, in the requested order. At most 5000 entries.
    data: list[WebhookDelivery]
    # Describes one page of a list.
    pagination: Pagination


class WebhookList(TypedDict):
    """The webhooks of an organisation."""

    # The webhooks, the newest first. At most 20 entries.
    data: list[Webhook]


class WebhookSecret(TypedDict):
    """The new secret of a webhook."""

    # The id of the webhook.
    id: str
    # Until when requests are also signed with the previous secret.
    previous_secret_expires_at: str
    # The secret that signs the requests.
    secret: str | None


Access: TypeAlias = "Literal[\"private\", \"public\", \"protected\"]"

AccountArray: TypeAlias = "list[Account]"

AccountHistory: TypeAlias = "list[AccountHistoryPoint]"

AccountList: TypeAlias = "Union[AccountArray, AccountPage]"

AccountOrder: TypeAlias = "Literal[\"created_at\", \"username\", \"latest_followers_count\", \"total_views\", \"median_views\", \"last_uploaded_at\", \"views_gained_7d\"]"

AccountVideoList: TypeAlias = "Union[VideoArray, AccountVideoPage]"

AccountVideoOrder: TypeAlias = "Literal[\"created_at\", \"uploaded_at\", \"latest_updated_at\", \"latest_views\", \"latest_likes\", \"latest_comments\", \"latest_bookmarks\", \"latest_shares\", \"latest_engagement\", \"outlier_multiplier\", \"increase_1d\", \"increase_7d\", \"increase_14d\", \"increase_30d\", \"views_gained_7d\"]"

CollectionHistory: TypeAlias = "list[CollectionHistoryPoint]"

CollectionOrder: TypeAlias = "Literal[\"created_at\", \"updated_at\", \"name\", \"video_count\", \"account_count\"]"

CollectionVideoOrder: TypeAlias = "Literal[\"created_at\", \"uploaded_at\", \"latest_updated_at\", \"latest_views\", \"latest_likes\", \"latest_comments\", \"latest_bookmarks\", \"latest_shares\", \"latest_engagement\", \"outlier_multiplier\", \"increase_1d\", \"increase_7d\", \"increase_14d\", \"increase_30d\", \"views_gained_7d\"]"

EmptyObject: TypeAlias = "dict[str, Any]"

EntryType: TypeAlias = "Literal[\"video\", \"account\"]"

EventType: TypeAlias = "Literal[\"video.metrics.updated\", \"video.milestone.reached\", \"video.outlier.detected\", \"video.views.fell\", \"video.status.changed\", \"video.removed\", \"account.video.discovered\", \"account.metrics.updated\", \"account.status.changed\", \"webhook.disabled\", \"webhook.test\"]"

EventTypes: TypeAlias = "list[EventType]"

FetchStatus: TypeAlias = "Literal[\"pending\", \"ok\", \"delayed\", \"failing\", \"private\", \"restricted\", \"gone\", \"unsupported\", \"stopped\"]"

HistoryInclude: TypeAlias = "Literal[\"quality\"]"

HistoryQuality: TypeAlias = "Literal[\"measured\", \"corrected\", \"rounded\", \"interpolated\"]"

LinkPosition: TypeAlias = "int"

LinkPositions: TypeAlias = "list[LinkPosition]"

OrderDirection: TypeAlias = "Literal[\"asc\", \"desc\"]"

OrganisationHistory: TypeAlias = "list[OrganisationHistoryPoint]"

Platform: TypeAlias = "Literal[\"tiktok\", \"instagram\", \"youtube\", \"facebook\"]"

Scope: TypeAlias = "Literal[\"read\", \"write\", \"admin\"]"

Scopes: TypeAlias = "list[Scope]"

TokenState: TypeAlias = "Literal[\"valid\", \"expired\", \"revoked\"]"

TrackFailure: TypeAlias = "Literal[\"invalid_url\", \"unsupported_platform\", \"unsupported_link\", \"wrong_kind\", \"not_found\", \"private\", \"link_unresolved\", \"platform_unavailable\", \"rate_limited\", \"quota_exceeded\", \"internal\"]"

TrackStatus: TypeAlias = "Literal[\"tracked\", \"already_tracked\", \"failed\"]"

TrackingType: TypeAlias = "Literal[\"latest_30\", \"latest_200\", \"new_only\", \"all\"]"

VideoArray: TypeAlias = "list[Video]"

VideoHistory: TypeAlias = "list[VideoHistoryPoint]"

VideoOrder: TypeAlias = "Literal[\"created_at\", \"uploaded_at\", \"latest_updated_at\", \"latest_views\", \"latest_likes\", \"latest_comments\", \"latest_bookmarks\", \"latest_shares\", \"latest_engagement\", \"outlier_multiplier\", \"increase_1d\", \"increase_7d\", \"increase_14d\", \"increase_30d\", \"views_gained_7d\"]"

WebhookDeliveryStatus: TypeAlias = "Literal[\"pending\", \"delivered\", \"failed\"]"
