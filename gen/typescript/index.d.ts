// Generated from openapi.yaml by gen/sdk. Do not edit.

import { Client, type RequestOptions } from "./client.js";

export { CSV, CSV_SEMICOLON, NDJSON, XLSX, Client, ReelTallyError, type ClientOptions, type Format, type RequestDetails, type RequestOptions } from "./client.js";

/** Who can open the share page of a collection or report. */
export type Access = "private" | "public" | "protected";

/** A profile that posts videos. */
export interface Account {
  /** The id of the account. */
  account_id: string;
  /** The canonical link of the account. */
  account_link: string;
  /** The text in the profile of the account; null if there is none. */
  bio: string | null;
  /** When the profile of the account was last fetched; null before the first fetch. */
  checked_at: string | null;
  /** When the account was added to the organisation, by its link or through a video. */
  created_at: string;
  /** `username` without the suffix that begins with `~`, for display. */
  display_username: string;
  /** Whether the platform lists no video of the account. */
  empty: boolean;
  /** A sentence for people that explains `fetch_status`, or why it is null; null if there is no explanation. */
  fetch_detail: string | null;
  /** The fetch status of the account; null if the account is only linked from videos. */
  fetch_status: string | null;
  /** The ids of the collections that the account was added to; empty if the account was added to no collection. At most 10000 entries. */
  label_ids: string[] | null;
  /** The names of the collections in `label_ids`, in the same order. At most 10000 entries. */
  label_names: string[] | null;
  /** When a source was last asked for the account, with or without success. */
  last_attempt_at: string | null;
  /** The UTC day of the latest upload among the account's tracked videos; null if no upload is known. */
  last_uploaded_at: string | null;
  /** The latest known number of followers or subscribers of the account. */
  latest_followers_count: number | null;
  /** The latest known number of accounts that the account follows. */
  latest_following_count: number | null;
  /** The link in the profile of the account, as the platform gives it; null if there is none. */
  link: string | null;
  /** The mean of the latest views of the account's tracked videos; null if none is known. */
  mean_views: number | null;
  /** The median of the latest views of the account's tracked videos; null if none is known. */
  median_views: number | null;
  /** The median of the latest views of the account's tracked videos with more than 0 views; null if none is known. */
  median_views_non_zero: number | null;
  /** `true` if the organisation's tier hides the metrics; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** The highest latest views of a tracked video of the account; null if none is known. */
  most_viewed: number | null;
  /** When the next fetch of the account is due; null if no fetch is planned or if the tier hides the time. */
  next_fetch_at: string | null;
  /** The id of the organisation that tracks this video or account, or owns this collection. */
  organisation_id: string;
  /** The percentage of videos that have at least 10 times the account's median of views. */
  percent_outperform_10x: number | null;
  /** The percentage of videos that have at least 25 times the account's median of views. */
  percent_outperform_25x: number | null;
  /** The platform of a video or account. */
  platform: Platform;
  /** Whether the platform says that the account is private. */
  private: boolean;
  /** Whether the tracking of this video or account was stopped. */
  removed: boolean;
  /** The sum of the latest bookmarks of the account's tracked videos; null if none is known. */
  total_bookmarks: number | null;
  /** The sum of the latest comments of the account's tracked videos; null if none is known. */
  total_comments: number | null;
  /** The sum of the latest likes of the account's tracked videos; null if none is known. */
  total_likes: number | null;
  /** The sum of the latest shares of the account's tracked videos; null if none is known. */
  total_shares: number | null;
  /** The number of videos of the account that are being tracked; null only if the tier hides it. */
  total_videos_tracked: number | null;
  /** The sum of the latest views of the account's tracked videos; null if none is known. */
  total_views: number | null;
  /** Which existing videos of the account are tracked, as in the request that tracked the account; null if the account was never tracked itself. */
  tracking_type: string | null;
  /** The handle of the account, in lower case, without `@`. */
  username: string;
  /** The views that the account's videos gained up to the newest point of its history. */
  views_gained_7d: number | null;
}

/** Accounts, in the requested order. */
export type AccountArray = Account[];

/** Daily points, newest first. */
export type AccountHistory = AccountHistoryPoint[];

/** The numbers of an account at the end of a UTC day. */
export interface AccountHistoryPoint {
  /** The sum of the bookmarks of the account's tracked videos. */
  bookmarks: number | null;
  /** The sum of the comments of the account's tracked videos. */
  comments: number | null;
  /** The UTC day of the point. */
  date: string;
  /** The sum of likes, comments, bookmarks and shares. */
  engagements: number | null;
  /** When the source in `source` was asked; absent if the time is not known. */
  fetched_at?: string | undefined;
  /** The number of followers or subscribers of the account. */
  followers: number | null;
  /** The number of accounts that the account follows. */
  following: number | null;
  /** The sum of the likes of the account's tracked videos. */
  likes: number | null;
  /** `true` if the organisation's tier hides the counts; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** The quality of the counts of a point. */
  quality?: HistoryQuality | undefined;
  /** The sum of the shares of the account's tracked videos. */
  shares: number | null;
  /** The source that last changed the point; absent if the source is not known. */
  source?: string | undefined;
  /** The number of videos of the account that were being tracked; null only if the tier hides it. */
  videos: number | null;
  /** The sum of the views of the account's tracked videos. */
  views: number | null;
}

/** Accounts, as an array or, for `paginated=true`, as a page. */
export type AccountList = AccountArray | AccountPage;

/** The members by which a list of accounts can be sorted. */
export type AccountOrder = "created_at" | "username" | "latest_followers_count" | "total_views" | "median_views" | "last_uploaded_at" | "views_gained_7d";

/** One page of accounts. */
export interface AccountPage {
  /** The accounts, in the requested order. At most 5000 entries. */
  data: Account[];
  /** Describes one page of a list. */
  pagination: Pagination;
}

/** Videos, as an array or, for `paginated=true`, as a page. */
export type AccountVideoList = VideoArray | AccountVideoPage;

/** The members by which the videos of an account can be sorted. */
export type AccountVideoOrder = "created_at" | "uploaded_at" | "latest_updated_at" | "latest_views" | "latest_likes" | "latest_comments" | "latest_bookmarks" | "latest_shares" | "latest_engagement" | "outlier_multiplier" | "increase_1d" | "increase_7d" | "increase_14d" | "increase_30d" | "views_gained_7d";

/** One page of the videos of an account. */
export interface AccountVideoPage {
  /** The videos, in the requested order. At most 5000 entries. */
  data: Video[];
  /** Describes one page of a list. */
  pagination: Pagination;
}

/** The result of adding accounts to a collection. */
export interface AddedAccounts {
  /** The number of accounts that had not been added to the collection before. */
  accounts_added: number;
  /** The id of the collection. */
  collection_id: string;
  /** Always `true`; a failed request has a problem as its response. */
  success: boolean;
}

/** The result of adding videos to a collection. */
export interface AddedVideos {
  /** The id of the collection. */
  collection_id: string;
  /** Always `true`; a failed request has a problem as its response. */
  success: boolean;
  /** The number of videos that had not been added to the collection before. */
  videos_added: number;
}

/** The identity of a token. */
export interface Authentication {
  /** An organisation. */
  organisation: Organisation;
  /** The rate limits of this organisation's tier, one entry for each group of operations. At most 10 entries. */
  rate_limits: RateLimit[];
  /** A token, without its secret. */
  token: Token;
}

/** A group of videos and accounts. */
export interface Collection {
  /** Who can open the share page of a collection or report. */
  access: Access;
  /** The number of accounts in the collection that are not removed; null if the tier hides it. */
  account_count?: number | null | undefined;
  /** When the collection was created. */
  created_at: string;
  /** The id of the token that created the collection. */
  created_by: string;
  /** The display settings of the share page; null if there are none. */
  display_settings: DisplaySettings | null;
  /** The last part of the share page's URL, `{app_url}/c/{hash}`. */
  hash: string | null;
  /** The hashtags of the collection, in lower case and in the Unicode form NFC, with `σ` for `ς`, without `#`, in alphabetical order. At most 100 entries. */
  hashtags: string[];
  /** The id of the collection. */
  id: string;
  /** `true` if the organisation's tier hides the counts; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** The name of the collection. */
  name: string;
  /** The id of the organisation that tracks this video or account, or owns this collection. */
  organisation_id: string;
  /** The id of the parent collection; null if the collection has no parent. */
  parent_id: string | null;
  /** When the share page closes; null if it stays open. */
  share_expires_at: string | null;
  /** The number of videos in the collection that are not removed; null if the tier hides it. */
  video_count?: number | null | undefined;
}

/** One page of the accounts of a collection. */
export interface CollectionAccountPage {
  /** The accounts, in the requested order. At most 5000 entries. */
  data: Account[];
  /** Describes one page of a list. */
  pagination: Pagination;
}

/** The ids of accounts of the organisation. */
export interface CollectionAccountsRequest {
  /** Account ids. At most 100 entries. */
  account_ids: string[];
}

/** The views that a video of a collection gained in a period. */
export interface CollectionGain {
  /** The id of the video. */
  ad_id: string;
  /** The canonical link of the video. */
  ad_link: string;
  /** When the video came into the collection; the last moment of the day before `counts_from` if it was added with this member. */
  added_at: string;
  /** The last day, up to the end of the period, for which the views are known; null if no views are known. */
  end_day: string | null;
  /** `views_gained` in percent of `views_at_start`; null if these are 0 or unknown. */
  increase: number | null;
  /** `true` if the video is no longer tracked. */
  removed: boolean;
  /** The day of `views_at_start`; null if no views are known. */
  start_day: string | null;
  /** The views of the video on the last day of the period; null if unknown. */
  views_at_end: number | null;
  /** The views from which the gain is counted; null if unknown. */
  views_at_start: number | null;
  /** `views_at_end` minus `views_at_start`; null if one of them is unknown, or if `end_day` is not after `start_day`. */
  views_gained: number | null;
}

/** Daily sums, newest first. */
export type CollectionHistory = CollectionHistoryPoint[];

/** The sums over the videos of a collection on a UTC day. */
export interface CollectionHistoryPoint {
  /** The sum of the known bookmarks of the videos; null if none is known. */
  bookmarks: number | null;
  /** The number of videos without a point on this day or later, whose counts are those of their last point. */
  carried: number | null;
  /** The sum of the known comments of the videos; null if none is known. */
  comments: number | null;
  /** The UTC day. */
  date: string;
  /** Likes, comments, bookmarks and shares together, without unknown ones; null if all four are unknown. */
  engagements: number | null;
  /** The number of videos whose counts are computed from the points before and after this day. */
  interpolated: number | null;
  /** The sum of the known likes of the videos; null if none is known. */
  likes: number | null;
  /** The number of videos that were fetched on this day. */
  measured: number | null;
  /** `true` if the organisation's tier hides the numbers; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** How many of the `measured` videos have a point in which the source has probably rounded a count. */
  rounded: number | null;
  /** The sum of the known shares of the videos; null if none is known. */
  shares: number | null;
  /** The number of videos whose bookmarks are unknown. */
  unknown_bookmarks: number | null;
  /** The number of videos whose comments are unknown. */
  unknown_comments: number | null;
  /** The number of videos whose likes are unknown. */
  unknown_likes: number | null;
  /** The number of videos whose shares are unknown. */
  unknown_shares: number | null;
  /** The number of videos whose views are unknown. */
  unknown_views: number | null;
  /** The number of videos in the collection on this day. */
  videos: number | null;
  /** The number of videos that were added on this day. */
  videos_added: number | null;
  /** The sum of the known views of the videos; null if none is known. */
  views: number | null;
  /** The sum of the falls of videos' views since the previous day, because of corrections, rounding or another source, as a negative number or 0. */
  views_corrected: number | null;
  /** The views of the videos that were added on this day. */
  views_from_added: number | null;
  /** The sum of the views of the videos whose views became known on this day. */
  views_from_known: number | null;
  /** The growth of the videos' views since the last earlier day with known views, without the videos that were added on this day. */
  views_gained: number | null;
  /** The number of videos without a point on this day or before. */
  without_point: number | null;
}

/** Collections, with `count` or, for `paginated=true`, with `pagination`. */
export interface CollectionList {
  /** The number of collections in this response; absent with `paginated=true`. */
  count?: number | undefined;
  /** The collections, in the requested order. At most 5000 entries. */
  data: Collection[];
  /** Describes one page of a list. */
  pagination?: Pagination | undefined;
}

/** What a list of collections can be sorted by. */
export type CollectionOrder = "created_at" | "updated_at" | "name" | "video_count" | "account_count";

/** The counts of a collection's videos added up at the end of a period, and the views that the videos gained in the period. */
export interface CollectionStatistics {
  /** The videos that gained the most views, the best first. At most 5 entries. */
  best: CollectionGain[];
  /** The sum of the known bookmarks of the videos at the end of the period; null if none is known. */
  bookmarks: number | null;
  /** The id of the collection. */
  collection_id: string;
  /** The sum of the known comments of the videos at the end of the period; null if none is known. */
  comments: number | null;
  /** The last day of the period. */
  end_date: string;
  /** Likes, comments, bookmarks and shares together, without unknown ones; null if all four are unknown. */
  engagements: number | null;
  /** `true` if the videos of the collections below are included. */
  include_children: boolean;
  /** `views_gained` in percent of `views_at_start`; null if these are 0 or unknown. */
  increase: number | null;
  /** The sum of the known likes of the videos at the end of the period; null if none is known. */
  likes: number | null;
  /** `true` if the organisation's tier hides the numbers; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** The sum of the known shares of the videos at the end of the period; null if none is known. */
  shares: number | null;
  /** The first day of the period. */
  start_date: string;
  /** The number of videos whose bookmarks are unknown at the end of the period. */
  unknown_bookmarks: number | null;
  /** The number of videos whose comments are unknown at the end of the period. */
  unknown_comments: number | null;
  /** The number of videos whose likes, comments, bookmarks and shares are all unknown at the end of the period. */
  unknown_engagements: number | null;
  /** The number of videos whose gain is unknown. */
  unknown_gains: number | null;
  /** The number of videos whose likes are unknown at the end of the period. */
  unknown_likes: number | null;
  /** The number of videos whose shares are unknown at the end of the period. */
  unknown_shares: number | null;
  /** The number of videos whose views are unknown at the end of the period. */
  unknown_views: number | null;
  /** The number of videos that were in the collection at the end of the period. */
  videos: number | null;
  /** The number of videos in the collection that are no longer tracked. */
  videos_removed: number | null;
  /** The sum of the known views of the videos at the end of the period; null if none is known. */
  views: number | null;
  /** The sum of the views from which the gains are counted; null if no gain is known. */
  views_at_start: number | null;
  /** The sum of the falls of views from one day to the next in the period, as a negative number or 0. */
  views_corrected: number | null;
  /** The sum of the gains of the videos; null if no gain is known. */
  views_gained: number | null;
  /** The videos that gained the fewest views, the worst first. At most 5 entries. */
  worst: CollectionGain[];
}

/** The members by which the videos of a collection can be sorted. */
export type CollectionVideoOrder = "created_at" | "uploaded_at" | "latest_updated_at" | "latest_views" | "latest_likes" | "latest_comments" | "latest_bookmarks" | "latest_shares" | "latest_engagement" | "outlier_multiplier" | "increase_1d" | "increase_7d" | "increase_14d" | "increase_30d" | "views_gained_7d";

/** One page of the videos of a collection. */
export interface CollectionVideoPage {
  /** The videos, in the requested order. At most 5000 entries. */
  data: Video[];
  /** Describes one page of a list. */
  pagination: Pagination;
}

/** The ids of videos of the organisation, and from which day they count. */
export interface CollectionVideosRequest {
  /** The first UTC day whose gained views count in this collection, from 2005-01-01 to today. */
  counts_from?: string | null | undefined;
  /** Video ids. At most 100 entries. */
  video_ids: string[];
}

/** The collection to create. */
export interface CreateCollectionRequest {
  /** Who can open the share page of a collection or report. */
  access?: Access | undefined;
  /** The hashtags of the collection, sent with or without `#`. At most 100 entries. */
  hashtags?: string[] | undefined;
  /** Its name. */
  name: string;
  /** The id of the parent collection. */
  parent_id?: string | null | undefined;
}

/** The period of the report. */
export interface CreateReportRequest {
  /** An earlier report of the collection, with the same `include_children`. */
  continues_report_id?: string | null | undefined;
  /** The last day. */
  end_date?: string | undefined;
  /** `true`: also count the videos of all collections below. */
  include_children?: boolean | undefined;
  /** The first day. */
  start_date?: string | undefined;
}

/** A new token. */
export interface CreateTokenRequest {
  /** How many days the token is valid. */
  expires_in_days?: number | null | undefined;
  /** Its name. */
  name: string;
  /** The scopes of the token. At most 3 entries. */
  scopes: Scopes;
}

/** A new webhook. */
export interface CreateWebhookRequest {
  /** A note about the webhook. */
  description?: string | undefined;
  /** The types of events that are sent. At most 20 entries. */
  event_types?: EventType[] | undefined;
  /** The address to which events are sent: an https URL without user name and fragment. */
  url: string;
}

/** The new collection. */
export interface CreatedCollection {
  /** Who can open the share page of a collection or report. */
  access: Access;
  /** When the collection was created. */
  created_at: string;
  /** The id of the collection. */
  id: string;
  /** Its name. */
  name: string;
  /** The id of the organisation that owns the collection. */
  organisation_id: string;
}

/** A new token with its secret. */
export interface CreatedToken {
  /** When the token was created. */
  created_at: string;
  /** When the token expires; null if it does not expire. */
  expires_at: string | null;
  /** The id of the token. */
  id: string;
  /** Its name. */
  name: string;
  /** The scopes of the token. At most 3 entries. */
  scopes: Scopes;
  /** The token itself, for the header Authorization. */
  secret: string | null;
}

/** A new webhook with its secret. */
export interface CreatedWebhook {
  /** When the webhook was created. */
  created_at: string;
  /** A note about the webhook. */
  description: string;
  /** Why the webhook is disabled: `by_request`, `gone` if its server answered with status 410, or `failing` if all attempts failed for three days. */
  disabled_reason: string | null;
  /** Whether events are sent. */
  enabled: boolean;
  /** The types of events that are sent. At most 20 entries. */
  event_types: EventTypes;
  /** When the first of the failed attempts since the last success was made; null if the last attempt was successful, and before the first attempt. */
  failing_since: string | null;
  /** Its id. */
  id: string;
  /** When an event was last accepted; null if none was accepted yet. */
  last_success_at: string | null;
  /** Until when requests are also signed with the previous secret; null if there is none. */
  previous_secret_expires_at: string | null;
  /** The secret that signs the requests. */
  secret: string | null;
  /** When the webhook was last changed by a request. */
  updated_at: string;
  /** The address to which events are sent. */
  url: string;
}

/** A range of UTC days. */
export interface DateRange {
  /** The last day of the range. */
  end: string | null;
  /** The first day of the range. */
  start: string | null;
}

/** The deleted collection. */
export interface DeletedCollection {
  /** The id of the deleted collection. */
  deleted_id: string;
  /** Always `true`; a failed request has a problem as its response. */
  success: boolean;
}

/** The display settings of the share page; null if there are none. */
export interface DisplaySettings {
  /** A text below the heading of the share page. */
  description?: string | undefined;
  /** The metrics that the share page shows, in this order. At most 20 entries. */
  metrics?: Array<"views" | "likes" | "comments" | "bookmarks" | "shares" | "engagement" | "outlier_multiplier" | "increase_1d" | "increase_7d" | "increase_14d" | "increase_30d" | "views_gained_7d"> | undefined;
  /** Whether the share page lists the accounts. */
  show_accounts?: boolean | undefined;
  /** Whether the share page of a report shows captions. */
  show_captions?: boolean | undefined;
  /** Whether the share page shows a chart of the metrics over time. */
  show_history?: boolean | undefined;
  /** The order of the videos on the share page. */
  sort?: ShareOrder | undefined;
  /** The colours of the share page: light, dark, or the setting of the visitor's system. */
  theme?: "light" | "dark" | "auto" | undefined;
  /** The heading of the share page. */
  title?: string | undefined;
}

/** An object without members. */
export type EmptyObject = Record<string, unknown>;

/** Whether an entry of a bulk result is a video or an account. */
export type EntryType = "video" | "account";

/** Something that has happened. */
export interface Event {
  /** When the change happened. */
  created_at: string;
  /** What the event is about. */
  data: EventData;
  /** The id of the event. */
  id: string;
  /** The place of the event in the event feed. */
  position: number;
  /** What has happened. */
  type: EventType;
}

/** An account as it was after the event. */
export interface EventAccount {
  /** The id of the account. */
  account_id: string;
  /** The canonical link of the account. */
  account_link: string;
  /** When the account was last fetched; null before the first fetch. */
  checked_at: string | null;
  /** Whether a video or account can be fetched. */
  fetch_status: FetchStatus;
  /** The followers. */
  latest_followers_count: number | null;
  /** The accounts that the account follows. */
  latest_following_count: number | null;
  /** True if the organisation's tier does not show metrics. */
  metrics_masked?: boolean | undefined;
  /** The platform of a video or account. */
  platform: Platform;
  /** The state of the account before the event. */
  previous?: EventAccountState | undefined;
  /** The handle of the account. */
  username: string;
}

/** The state of the account before the event. */
export interface EventAccountState {
  /** When the account was last fetched; null before the first fetch. */
  checked_at: string | null;
  /** Whether a video or account can be fetched. */
  fetch_status: FetchStatus;
  /** The followers. */
  latest_followers_count: number | null;
  /** The accounts that the account follows. */
  latest_following_count: number | null;
}

/** What the event is about. */
export interface EventData {
  /** An account as it was after the event. */
  account?: EventAccount | undefined;
  /** A threshold that a metric of the video has reached. */
  threshold?: EventThreshold | undefined;
  /** A video as it was after the event. */
  video?: EventVideo | undefined;
  /** A webhook. */
  webhook?: EventWebhook | undefined;
}

/** A part of the events of an organisation. */
export interface EventFeed {
  /** The events, the oldest first. At most 1000 entries. */
  data: Event[];
  /** True if there are more events now. */
  has_more: boolean;
  /** Send this value as `cursor` of the next request to get the events after those of this response. */
  next_cursor: string;
}

/** A threshold that a metric of the video has reached. */
export interface EventThreshold {
  /** The name of the member of the video that has reached the threshold. */
  member: "latest_views" | "outlier_multiplier";
  /** The threshold; null if the organisation's tier does not show metrics. */
  value: number | null;
}

/** What has happened. */
export type EventType = "video.metrics.updated" | "video.milestone.reached" | "video.outlier.detected" | "video.views.fell" | "video.status.changed" | "video.removed" | "account.video.discovered" | "account.metrics.updated" | "account.status.changed" | "webhook.disabled" | "webhook.test";

/** The types of events that are sent. */
export type EventTypes = EventType[];

/** A video as it was after the event. */
export interface EventVideo {
  /** The id of the video. */
  ad_id: string;
  /** The canonical link of the video. */
  ad_link: string;
  /** Whether a video or account can be fetched. */
  fetch_status: FetchStatus;
  /** The bookmarks. */
  latest_bookmarks: number | null;
  /** The comments. */
  latest_comments: number | null;
  /** Likes, comments, bookmarks and shares added up, as far as they are known. */
  latest_engagement: number | null;
  /** The likes. */
  latest_likes: number | null;
  /** The shares. */
  latest_shares: number | null;
  /** When the metrics were fetched; null before the first fetch. */
  latest_updated_at: string | null;
  /** The views. */
  latest_views: number | null;
  /** The id of the account that posted the video; null while it is unknown. */
  linked_account_id: string | null;
  /** True if the organisation's tier does not show metrics. */
  metrics_masked?: boolean | undefined;
  /** The views divided by the median views of the account's tracked videos. */
  outlier_multiplier: number | null;
  /** The platform of a video or account. */
  platform: Platform;
  /** The state of the video before the event. */
  previous?: EventVideoState | undefined;
  /** True if the tracking of the video was stopped. */
  removed: boolean;
  /** The handle of the account; empty while it is unknown. */
  username: string;
}

/** The state of the video before the event. */
export interface EventVideoState {
  /** Whether a video or account can be fetched. */
  fetch_status: FetchStatus;
  /** The bookmarks. */
  latest_bookmarks: number | null;
  /** The comments. */
  latest_comments: number | null;
  /** Likes, comments, bookmarks and shares added up, as far as they are known. */
  latest_engagement: number | null;
  /** The likes. */
  latest_likes: number | null;
  /** The shares. */
  latest_shares: number | null;
  /** When the metrics were fetched; null before the first fetch. */
  latest_updated_at: string | null;
  /** The views. */
  latest_views: number | null;
  /** The views divided by the median views of the account's tracked videos. */
  outlier_multiplier: number | null;
}

/** A webhook. */
export interface EventWebhook {
  /** The id of the webhook. */
  id: string;
  /** The `disabled_reason` of the webhook; null in a test. */
  reason: string | null;
  /** The address to which events are sent. */
  url: string;
}

/** A stored point: the last counts that were fetched on a UTC day. */
export interface ExportedPoint {
  /** The id of the video. */
  ad_id: string;
  /** The canonical link of the video. */
  ad_link: string;
  /** The number of bookmarks; null if the source did not give it, or if the tier masks it. */
  bookmarks: number | null;
  /** The number of comments; null if the source did not give it, or if the tier masks it. */
  comments: number | null;
  /** The UTC day of the point. */
  date: string;
  /** When the source was asked; null if the tier masks it. */
  fetched_at: string | null;
  /** The number of likes; null if the source did not give it, or if the tier masks it. */
  likes: number | null;
  /** Present and `true` if the tier masks the counts. */
  metrics_masked?: true | undefined;
  /** The platform of a video or account. */
  platform: Platform;
  /** `true` if the source has probably rounded a count; null if the tier masks it. */
  rounded: boolean | null;
  /** The number of shares; null if the source did not give it, or if the tier masks it. */
  shares: number | null;
  /** The source that reported the counts; null if the tier masks it. */
  source: string | null;
  /** The number of views; null if the source did not give it, or if the tier masks it. */
  views: number | null;
}

/** One fault of a request. */
export interface Fault {
  /** The code of the fault, for programs. */
  code: string;
  /** A message for people. */
  detail: string;
  /** The part of the request that has the fault. */
  location: "body" | "query" | "path" | "header";
  /** The name of the parameter or header that has the fault. */
  name?: string | undefined;
  /** The place of the fault in the body, as a JSON pointer; empty if the fault concerns the whole body. */
  pointer?: string | undefined;
}

/** Whether a video or account can be fetched. */
export type FetchStatus = "pending" | "ok" | "delayed" | "failing" | "private" | "restricted" | "gone" | "unsupported" | "stopped";

/** A page of an export. */
export interface HistoryExport {
  /** The points of the videos of this page. At most 1000000 entries. */
  data: ExportedPoint[];
  /** The end of the export: it has no point that was fetched later. */
  exported_until: string;
  /** The cursor of the next page; null on the last page. */
  next_cursor: string | null;
}

/** The additional members that a request can ask for in each history point. */
export type HistoryInclude = "quality";

/** The quality of the counts of a point. */
export type HistoryQuality = "measured" | "corrected" | "rounded" | "interpolated";

/** The position of a link in the `links` of the request; the first link has position 0. */
export type LinkPosition = number;

/** The positions of the link in the `links` of the request, in ascending order; the first link has position 0. */
export type LinkPositions = LinkPosition[];

/** A token in the list of tokens. */
export interface ListedToken {
  /** When the token was created. */
  created_at: string;
  /** True for the token that sent this request. */
  current: boolean;
  /** When the token expires; null if it does not expire. */
  expires_at: string | null;
  /** The id of the token. */
  id: string;
  /** When the token was last used, accurate to one minute; null if it was never used. */
  last_used_at: string | null;
  /** Its name. */
  name: string;
  /** When the token was revoked; null if it was not revoked. */
  revoked_at: string | null;
  /** The scopes of the token. At most 3 entries. */
  scopes: Scopes;
  /** Whether the token can be used: a revoked token is `revoked`, even if it has also expired. */
  state: TokenState;
}

/** The result of a request, as a message for people. */
export interface Message {
  /** The message for people. */
  message: string;
}

/** The direction of the order: ascending or descending. */
export type OrderDirection = "asc" | "desc";

/** An organisation. */
export interface Organisation {
  /** The id of the organisation. */
  id: string;
  /** Its name. */
  name: string;
  /** The state of the organisation's subscription. */
  subscription: "active" | "none";
  /** The tier of the organisation. */
  tier: "limited" | "basic" | "premium";
}

/** Daily points, newest first. */
export type OrganisationHistory = OrganisationHistoryPoint[];

/** The numbers of an organisation's videos and accounts, and the sums of their counts, at the end of a UTC day. */
export interface OrganisationHistoryPoint {
  /** The number of tracked accounts. */
  accounts: number | null;
  /** The sum of the bookmarks of the organisation's videos; null if none is known. */
  bookmarks: number | null;
  /** The sum of the comments on the organisation's videos; null if none is known. */
  comments: number | null;
  /** The UTC day of the point. */
  date: string;
  /** Likes, comments, bookmarks and shares together, without unknown ones; null if all four are unknown. */
  engagements: number | null;
  /** The sum of the followers of the organisation's accounts; null if none is known. */
  followers: number | null;
  /** The sum of the numbers of accounts that the organisation's accounts follow; null if none is known. */
  following: number | null;
  /** The sum of the likes of the organisation's videos; null if none is known. */
  likes: number | null;
  /** `true` if the organisation's tier hides the counts; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** The sum of the shares of the organisation's videos; null if none is known. */
  shares: number | null;
  /** The number of the organisation's videos that were uploaded on this day, if the day of the upload is known now. */
  uploads: number | null;
  /** The number of tracked videos. */
  videos: number | null;
  /** The sum of the views of the organisation's videos; null if none is known. */
  views: number | null;
  /** The views that the organisation's videos gained since the previous point that has sums. */
  views_gained: number | null;
}

/** Describes one page of a list. */
export interface Pagination {
  /** The maximum number of items of a page. */
  limit: number;
  /** The value of the parameter `cursor` that requests the next page; null on the last page. */
  next_cursor: string | null;
  /** The number of this page; the first page is 1. */
  page: number;
  /** The number of items in the whole list. */
  total: number;
  /** The number of pages of `limit` items; 0 if the list is empty. */
  total_pages: number;
}

/** A saved item whose data is not fetched. */
export interface PendingItem {
  /** The id of the video or account. */
  id: string;
  /** The platform of a video or account. */
  platform: Platform;
}

/** The saved items of the request that are not fetched because the organisation has no active subscription. */
export interface PendingQueue {
  /** The accounts whose data is not fetched. At most 500 entries. */
  accounts: PendingItem[];
  /** The videos whose data is not fetched. At most 500 entries. */
  videos: PendingItem[];
}

/** The platform of a video or account. */
export type Platform = "tiktok" | "instagram" | "youtube" | "facebook";

/** The number of tracked videos or accounts by platform. */
export interface PlatformCounts {
  /** The number of tracked videos or accounts on Facebook. */
  facebook: number;
  /** The number of tracked videos or accounts on Instagram. */
  instagram: number;
  /** The number of tracked videos or accounts on TikTok. */
  tiktok: number;
  /** The number of tracked videos or accounts on YouTube. */
  youtube: number;
}

/** A problem (RFC 9457): what is wrong with a request, or why the server failed. */
export interface Problem {
  /** The error code, for programs. */
  code: string;
  /** A message for people that names the wrong value and the allowed values. */
  detail: string;
  /** A copy of `detail`, for older programs. */
  error: string;
  /** All faults of the request, at most 1000. At most 1000 entries. */
  errors?: Fault[] | undefined;
  /** The path of the request. */
  instance: string;
  /** The id of the request. */
  request_id: string;
  /** The HTTP status. */
  status: number;
  /** The meaning of `code` in a few words. */
  title: string;
  /** A URL reference to the documentation of `code`. */
  type: string;
}

/** The rate limit of a group of operations. */
export interface RateLimit {
  /** The group of operations (`x-rate-group`). */
  group: string;
  /** The number of requests that are allowed for one operation in a window. */
  limit: number;
  /** The operationIds of the group's operations. At most 100 entries. */
  operations: string[];
  /** The length of a window in seconds. */
  window_seconds: number;
}

/** The account to fetch. */
export interface RefreshAccountRequest {
  /** The id of the account, or any form of its link. */
  link: string;
}

/** Says that the last successful fetch is less than 4 hours old, and when the next fetch can be requested. */
export interface RefreshNotDue {
  /** When the video or account was last fetched; null for the tiers limited and basic, whose metrics are masked. */
  latest_updated_at: string | null;
  /** A message for people. */
  message: string;
  /** When the next fetch can be requested: 4 hours after the last fetch. */
  refresh_after: string;
}

/** The video to fetch. */
export interface RefreshVideoRequest {
  /** The id of the video, or any form of its link. */
  link: string;
}

/** The ids of videos of the organisation. */
export interface RemoveCollectionVideosRequest {
  /** Video ids. At most 100 entries. */
  video_ids: string[];
}

/** The result of removing accounts from a collection. */
export interface RemovedAccounts {
  /** The number of added accounts that were removed from the collection. */
  accounts_removed: number;
  /** The id of the collection. */
  collection_id: string;
  /** Always `true`; a failed request has a problem as its response. */
  success: boolean;
}

/** The result of removing videos from a collection. */
export interface RemovedVideos {
  /** The id of the collection. */
  collection_id: string;
  /** Always `true`; a failed request has a problem as its response. */
  success: boolean;
  /** The number of added videos that were removed from the collection. */
  videos_removed: number;
}

/** A frozen report of a collection. */
export interface Report {
  /** The accounts of the videos, the one with the most gained views first. At most 5000 entries. */
  accounts?: ReportAccount[] | undefined;
  /** The collection, and the collections below it if they are included. At most 100000 entries. */
  collections: ReportCollection[];
  /** The id of the report that this report continues; null if it continues none. */
  continues_report_id?: string | null | undefined;
  /** When the report was made. */
  created_at: string;
  /** The id of the token with which the report was made. */
  created_by: string;
  /** The sums of each day, newest first. At most 731 entries. */
  days: CollectionHistoryPoint[];
  /** The version of the format of the report. */
  format: number;
  /** The id of the report. */
  id: string;
  /** The number of the report. */
  number: number;
  /** The id of the organisation. */
  organisation_id: string;
  /** The totals of the videos at the end of the report's period, and the views that they gained in it. */
  statistics: ReportStatistics;
  /** The videos of the report, sorted by id. At most 5000 entries. */
  videos: ReportVideo[];
}

/** An account with videos in a report, and the sums of the counts of these videos. */
export interface ReportAccount {
  /** The id of the account; null if the account is unknown. */
  account_id: string | null;
  /** The platform of a video or account. */
  platform: Platform;
  /** The number of videos whose gain is unknown. */
  unknown_gains: number;
  /** The number of videos whose views are unknown at the end of the period. */
  unknown_views: number;
  /** The name of the account when the report was made; null if the account is unknown. */
  username: string | null;
  /** The number of videos of the account in the report. */
  videos: number;
  /** The sum of the known views of the videos at the end of the period; null if none is known. */
  views_at_end: number | null;
  /** The sum of the known gains of the videos; null if none is known. */
  views_gained: number | null;
  /** How many views the account had lost at the end of the report that this report continues, since the highest sum of its gains in that report and those before it. */
  views_to_regain?: number | null | undefined;
  /** The same as `views_to_regain`, if each report also counts the `views_at_start` of videos whose `uploaded_at` and `start_day` are both in its period. */
  views_to_regain_with_start?: number | null | undefined;
}

/** A collection whose videos are in a report. */
export interface ReportCollection {
  /** The id of the collection. */
  id: string;
  /** The name of the collection when the report was made. */
  name: string;
}

/** An earlier report that counts some of the same views as a report. */
export interface ReportOverlap {
  /** The name of the collection when the earlier report was made. */
  collection_name: string;
  /** The last day of the earlier report's period. */
  end_date: string;
  /** The number of the earlier report. */
  number: number;
  /** The id of the earlier report. */
  report_id: string;
  /** The first day of the earlier report's period. */
  start_date: string;
  /** The number of videos of which both reports count views of the same days. */
  videos: number;
  /** The views at the start (`views_at_start`) of those of these videos whose `uploaded_at` and `start_day` are both in the period of this report. */
  views_at_start: number;
  /** The views that these videos gained in this report. */
  views_gained: number;
}

/** One page of the reports of a collection. */
export interface ReportPage {
  /** The reports, in the requested order. At most 5000 entries. */
  data: ReportSummary[];
  /** Describes one page of a list. */
  pagination: Pagination;
}

/** A stored point of a video. */
export interface ReportPoint {
  /** The number of bookmarks; null if the platform does not give it. */
  bookmarks: number | null;
  /** The number of comments; null if the platform does not give it. */
  comments: number | null;
  /** The UTC day of the point. */
  date: string;
  /** When the source was asked. */
  fetched_at: string;
  /** The number of likes; null if the platform does not give it. */
  likes: number | null;
  /** The quality of the counts of a point. */
  quality: HistoryQuality;
  /** The number of shares; null if the platform does not give it. */
  shares: number | null;
  /** The source that gave the counts. */
  source: string;
  /** The number of views; null if the platform does not give it. */
  views: number | null;
}

/** The totals of the videos at the end of the report's period, and the views that they gained in it. */
export interface ReportStatistics {
  /** The sum of the known bookmarks of the videos at the end of the period; null if none is known. */
  bookmarks: number | null;
  /** The id of the collection. */
  collection_id: string;
  /** The sum of the known comments of the videos at the end of the period; null if none is known. */
  comments: number | null;
  /** The last day of the period. */
  end_date: string;
  /** Likes, comments, bookmarks and shares together, without unknown ones; null if all four are unknown. */
  engagements: number | null;
  /** `true` if the videos of the collections below are included. */
  include_children: boolean;
  /** `views_gained` in percent of `views_at_start`; null if these are 0 or unknown. */
  increase: number | null;
  /** The sum of the known likes of the videos at the end of the period; null if none is known. */
  likes: number | null;
  /** `true` if the organisation's tier hides the numbers; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** The sum of the known shares of the videos at the end of the period; null if none is known. */
  shares: number | null;
  /** The first day of the period. */
  start_date: string;
  /** The number of videos whose bookmarks are unknown at the end of the period. */
  unknown_bookmarks: number | null;
  /** The number of videos whose comments are unknown at the end of the period. */
  unknown_comments: number | null;
  /** The number of videos whose likes, comments, bookmarks and shares are all unknown at the end of the period. */
  unknown_engagements?: number | null | undefined;
  /** The number of videos whose gain is unknown. */
  unknown_gains?: number | null | undefined;
  /** The number of videos whose likes are unknown at the end of the period. */
  unknown_likes: number | null;
  /** The number of videos whose shares are unknown at the end of the period. */
  unknown_shares: number | null;
  /** The number of videos whose views are unknown at the end of the period. */
  unknown_views: number | null;
  /** The number of videos that were in the collection at the end of the period. */
  videos: number | null;
  /** The number of videos in the collection that are no longer tracked. */
  videos_removed: number | null;
  /** The sum of the known views of the videos at the end of the period; null if none is known. */
  views: number | null;
  /** The sum of the views from which the gains are counted; null if no gain is known. */
  views_at_start: number | null;
  /** The sum of the falls of views from one day to the next in the period, as a negative number or 0. */
  views_corrected: number | null;
  /** The sum of the gains of the videos; null if no gain is known. */
  views_gained: number | null;
}

/** What identifies a report. */
export interface ReportSummary {
  /** Who can open the share page of a collection or report. */
  access: Access;
  /** The number of bytes that `GET /reports/{report_id}` returns. */
  bytes: number | null;
  /** The SHA-256 checksum of the bytes that `GET /reports/{report_id}` returns, in hexadecimal digits. */
  checksum: string | null;
  /** The id of the collection, which may be deleted by now. */
  collection_id: string;
  /** The name of the collection when the report was made. */
  collection_name: string;
  /** The id of the report that this report continues; null if it continues none. */
  continues_report_id: string | null;
  /** When the report was made. */
  created_at: string;
  /** The id of the token with which the report was made. */
  created_by: string;
  /** The display settings of the share page; null if there are none. */
  display_settings: DisplaySettings | null;
  /** The last day of the period. */
  end_date: string;
  /** The last part of the share page's URL, `{app_url}/r/{hash}`. */
  hash: string | null;
  /** The id of the report. */
  id: string;
  /** `true` if the videos of the collections below are included. */
  include_children: boolean;
  /** The number of the report. */
  number: number;
  /** The earlier reports of the organisation that count some of the same views, the newest first: both reports count views of at least one video on the same day. At most 100 entries. */
  overlaps: ReportOverlap[] | null;
  /** When the share page closes; null if it stays open. */
  share_expires_at: string | null;
  /** The first day of the period. */
  start_date: string;
}

/** A video of a report, with the stored points from which its counts follow. */
export interface ReportVideo {
  /** The id of the video's account; null if the account is unknown. */
  account_id?: string | null | undefined;
  /** The id of the video. */
  ad_id: string;
  /** The canonical link of the video. */
  ad_link: string;
  /** When the video came into the collection; the last moment of the day before `counts_from` if it was added with this member. */
  added_at: string;
  /** The views of the video at the end of the report that this report continues; null if that report has none, or if this report continues none. */
  continued_views_at_end?: number | null | undefined;
  /** The last day, up to the end of the period, for which the views are known; null if no views are known. */
  end_day?: string | null | undefined;
  /** `views_gained` in percent of `views_at_start`; null if these are 0 or unknown. */
  increase: number | null;
  /** The stored points of the video that the report uses, the oldest first. At most 800 entries. */
  points: ReportPoint[];
  /** `true` if the video is no longer tracked. */
  removed: boolean;
  /** The day of `views_at_start`; null if no views are known. */
  start_day: string | null;
  /** The caption of the video when the report was made, cut after 300 characters; null if the video has no caption. */
  title?: string | null | undefined;
  /** The day on which the video was uploaded; null if unknown. */
  uploaded_at?: string | null | undefined;
  /** The name of the video's account when the report was made; null if the account is unknown. */
  username?: string | null | undefined;
  /** The views of the video on the last day of the period; null if unknown. */
  views_at_end: number | null;
  /** The views from which the gain is counted; null if unknown. */
  views_at_start: number | null;
  /** `views_at_end` minus `views_at_start`; null if one of them is unknown, or if `end_day` is not after `start_day`. */
  views_gained: number | null;
}

/** A permission of a token. */
export type Scope = "read" | "write" | "admin";

/** The scopes of the token. */
export type Scopes = Scope[];

/** The order of the videos on the share page. */
export interface ShareOrder {
  /** The members by which the videos of a collection can be sorted. */
  by?: CollectionVideoOrder | undefined;
  /** The direction of the order: ascending or descending. */
  direction?: OrderDirection | undefined;
}

/** The numbers of videos or accounts of an organisation. */
export interface Statistics {
  /** The number of tracked videos or accounts by platform. */
  by_platform: PlatformCounts;
  /** The number of tracked and stopped videos or accounts by `fetch_status`. */
  by_status: StatusCounts;
  /** The number of videos or accounts whose tracking was stopped. */
  removed: number;
  /** The number of videos or accounts that are being tracked. */
  total: number;
}

/** The number of tracked and stopped videos or accounts by `fetch_status`. */
export interface StatusCounts {
  /** The number of videos or accounts whose fetch is late, or whose source is paused. */
  delayed: number;
  /** The number of videos or accounts whose last attempts failed. */
  failing: number;
  /** The number of videos or accounts that do not exist any more. */
  gone: number;
  /** The number of videos or accounts whose last fetch succeeded, or of which only one attempt failed after it. */
  ok: number;
  /** The number of videos or accounts of which no fetch has succeeded since tracking began. */
  pending: number;
  /** The number of videos or accounts that are private. */
  private: number;
  /** The number of videos or accounts that a source does not show to everyone. */
  restricted: number;
  /** The number of videos or accounts whose tracking was stopped. */
  stopped: number;
  /** The number of videos or accounts that no configured source can fetch. */
  unsupported: number;
}

/** The account to stop tracking. */
export interface StopAccountRequest {
  /** The id of the account, or any form of its link. */
  id: string;
}

/** The accounts to stop tracking. */
export interface StopAccountsRequest {
  /** The ids of the accounts, or the links that were tracked. At most 500 entries. */
  ids: string[];
}

/** The result for one entry. */
export interface StopEntry {
  /** Why the entry failed, as a stable code for programs. */
  code?: "not_found" | undefined;
  /** A message for people that says why the entry failed. */
  error?: string | undefined;
  /** The id of the video or account, also for an entry that was sent as a link. */
  id: string;
  /** Whether the tracking of the video or account was stopped. */
  success: boolean;
  /** Whether an entry of a bulk result is a video or an account. */
  type: EntryType;
  /** The link, as sent. */
  url?: string | undefined;
}

/** The result for each entry. */
export interface StopResult {
  /** One entry for each distinct video or account, in the order of the request. At most 500 entries. */
  results: StopEntry[];
  /** True only if every entry was stopped. */
  success: boolean;
  /** How many entries of a bulk request succeeded and failed. */
  summary: StopSummary;
}

/** How many entries of a bulk request succeeded and failed. */
export interface StopSummary {
  /** The number of ids that are unknown or were stopped before. */
  failed: number;
  /** The number of entries that were stopped. */
  succeeded: number;
  /** The number of distinct entries. */
  total: number;
}

/** The video to stop tracking. */
export interface StopVideoRequest {
  /** The id of the video, or any form of its link. */
  id: string;
}

/** The videos to stop tracking. */
export interface StopVideosRequest {
  /** The ids of the videos, or the links that were tracked. At most 500 entries. */
  ids: string[];
}

/** The result of stopping the tracking of an account, with the numbers of its videos. */
export interface StoppedAccount {
  /** The message for people. */
  message: string;
  /** The number of videos of the account that stay tracked, because they were also added by their links. */
  videos_still_tracked?: number | undefined;
  /** The number of videos whose tracking was stopped with the account, because they were found only through it. */
  videos_stopped?: number | undefined;
}

/** A range of time. */
export interface TimeRange {
  /** The latest time of the range. */
  end: string | null;
  /** The earliest time of the range. */
  start: string | null;
}

/** A token, without its secret. */
export interface Token {
  /** When the token was created. */
  created_at: string;
  /** When the token expires; null if it does not expire. */
  expires_at: string | null;
  /** The id of the token. */
  id: string;
  /** Its name. */
  name: string;
  /** The scopes of the token. At most 3 entries. */
  scopes: Scopes;
}

/** The tokens of an organisation. */
export interface TokenList {
  /** The tokens, the newest first. At most 100000 entries. */
  data: ListedToken[];
}

/** Whether the token can be used: a revoked token is `revoked`, even if it has also expired. */
export type TokenState = "valid" | "expired" | "revoked";

/** The account to track, and how to track it. */
export interface TrackAccountRequest {
  /** The ids of the collections to put the account into. At most 100 entries. */
  collection_ids?: string[] | null | undefined;
  /** The names of root collections to put the account into. At most 100 entries. */
  collection_names?: string[] | null | undefined;
  /** Any form of the link of an account. */
  link: string;
  /** Which of the account's existing videos are tracked: the newest 30, the newest 200, none, or `all`: the newest 5,000. */
  tracking_type?: TrackingType | undefined;
}

/** The tracked account. */
export interface TrackAccountResult {
  /** The id of the account. */
  accountId: string;
  /** The account's page on the dashboard: `{app_url}/account/{platform}/{account_id}`. */
  directUrl: string;
  /** A message which says that the organisation already tracked the account; absent otherwise. */
  error?: string | undefined;
  /** Messages about problems that did not make the request fail, for example that no configured source can fetch the account. At most 10 entries. */
  warnings: string[];
}

/** The result for one link. */
export interface TrackAccountsEntry {
  /** The id of the account; absent when the status is `failed`. */
  accountId?: string | undefined;
  /** Why a link failed; only on failed entries. */
  code?: TrackFailure | undefined;
  /** A message for people that says why the entry failed. */
  error?: string | undefined;
  /** The positions of the link in the `links` of the request, in ascending order; the first link has position 0. At most 500 entries. */
  positions: LinkPositions;
  /** Whether sending the link again can succeed. */
  retryable?: boolean | undefined;
  /** The result for a link. */
  status: TrackStatus;
  /** True unless the status is `failed`. */
  success: boolean;
  /** Whether an entry of a bulk result is a video or an account. */
  type: EntryType;
  /** The link, as it was first sent. */
  url: string;
  /** Whether the organisation had the account before, tracked or stopped. */
  wasExisting: boolean;
}

/** The accounts to track. */
export interface TrackAccountsRequest {
  /** The ids of the collections to put each account into. At most 100 entries. */
  label_ids?: string[] | null | undefined;
  /** The links. At most 500 entries. */
  links: string[];
  /** Which of the account's existing videos are tracked: the newest 30, the newest 200, none, or `all`: the newest 5,000. */
  tracking_type?: TrackingType | undefined;
}

/** The result for each link. */
export interface TrackAccountsResult {
  /** The saved items of the request that are not fetched because the organisation has no active subscription. */
  pendingTmvQueue?: PendingQueue | undefined;
  /** One entry for each distinct link, in the order of the request. At most 500 entries. */
  results: TrackAccountsEntry[];
  /** True only if every link succeeded. */
  success: boolean;
  /** How many entries of a bulk request succeeded and failed. */
  summary: TrackSummary;
  /** True if every saved item is being fetched. */
  trackingEnqueued: boolean;
  /** Messages about problems that did not make the request fail. At most 10 entries. */
  warnings: string[];
}

/** Why a link failed; only on failed entries. */
export type TrackFailure = "invalid_url" | "unsupported_platform" | "unsupported_link" | "wrong_kind" | "not_found" | "private" | "link_unresolved" | "platform_unavailable" | "rate_limited" | "quota_exceeded" | "internal";

/** The result for a link. */
export type TrackStatus = "tracked" | "already_tracked" | "failed";

/** How many entries of a bulk request succeeded and failed. */
export interface TrackSummary {
  /** The number of entries with the status `already_tracked`. */
  alreadyExists: number;
  /** The number of entries with the status `failed`. */
  failed: number;
  /** The number of failed entries for which a retry can succeed. */
  retryable: number;
  /** The number of entries that succeeded, including links that were tracked before. */
  succeeded: number;
  /** The number of distinct links. */
  total: number;
}

/** The video to track. */
export interface TrackVideoRequest {
  /** The ids of the collections to put the video into. At most 100 entries. */
  collection_ids?: string[] | null | undefined;
  /** The names of root collections to put the video into. At most 100 entries. */
  collection_names?: string[] | null | undefined;
  /** Any form of the link of a video. */
  link: string;
}

/** The tracked video. */
export interface TrackVideoResult {
  /** The video's page on the dashboard: `{app_url}/video/{platform}/{video_id}`. */
  directUrl: string;
  /** A message which says that the organisation already tracked the video; absent otherwise. */
  error?: string | undefined;
  /** The id of the video. */
  videoId: string;
  /** Messages about problems that did not make the request fail, for example that no configured source can fetch the video. At most 10 entries. */
  warnings: string[];
}

/** The result for one link. */
export interface TrackVideosEntry {
  /** Why a link failed; only on failed entries. */
  code?: TrackFailure | undefined;
  /** A message for people that says why the entry failed. */
  error?: string | undefined;
  /** The positions of the link in the `links` of the request, in ascending order; the first link has position 0. At most 500 entries. */
  positions: LinkPositions;
  /** Whether sending the link again can succeed. */
  retryable?: boolean | undefined;
  /** The result for a link. */
  status: TrackStatus;
  /** True unless the status is `failed`. */
  success: boolean;
  /** Whether an entry of a bulk result is a video or an account. */
  type: EntryType;
  /** The link, as it was first sent. */
  url: string;
  /** The id of the video; absent when the status is `failed`. */
  videoId?: string | undefined;
  /** Whether the organisation had the video before, tracked or stopped. */
  wasExisting: boolean;
}

/** The videos to track. */
export interface TrackVideosRequest {
  /** The ids of the collections to put each video into. At most 100 entries. */
  label_ids?: string[] | null | undefined;
  /** The links. At most 500 entries. */
  links: string[];
}

/** The result for each link. */
export interface TrackVideosResult {
  /** The saved items of the request that are not fetched because the organisation has no active subscription. */
  pendingTmvQueue?: PendingQueue | undefined;
  /** One entry for each distinct link, in the order of the request. At most 500 entries. */
  results: TrackVideosEntry[];
  /** True only if every link succeeded. */
  success: boolean;
  /** How many entries of a bulk request succeeded and failed. */
  summary: TrackSummary;
  /** True if every saved item is being fetched. */
  trackingEnqueued: boolean;
  /** Messages about problems that did not make the request fail. At most 10 entries. */
  warnings: string[];
}

/** Which of the account's existing videos are tracked: the newest 30, the newest 200, none, or `all`: the newest 5,000. */
export type TrackingType = "latest_30" | "latest_200" | "new_only" | "all";

/** The properties of the collection to change. */
export interface UpdateCollectionRequest {
  /** Who can open the share page of a collection or report. */
  access?: Access | undefined;
  /** The display settings of the share page; null if there are none. */
  display_settings?: DisplaySettings | null | undefined;
  /** The new hashtags of the collection, sent with or without `#`. At most 100 entries. */
  hashtags?: string[] | undefined;
  /** Its name. */
  name?: string | undefined;
  /** The new parent collection; null moves the collection to the root. */
  parent_id?: string | null | undefined;
  /** The new password of the share page. */
  password?: string | undefined;
  /** When the share page closes; null keeps it open. */
  share_expires_at?: string | null | undefined;
}

/** The members of the share page of a report to change. */
export interface UpdateReportRequest {
  /** Who can open the share page of a collection or report. */
  access?: Access | undefined;
  /** The display settings of the share page; null if there are none. */
  display_settings?: DisplaySettings | null | undefined;
  /** The new password of the share page. */
  password?: string | undefined;
  /** When the share page closes; null keeps it open. */
  share_expires_at?: string | null | undefined;
}

/** The members of a webhook to change. */
export interface UpdateWebhookRequest {
  /** A note about the webhook. */
  description?: string | undefined;
  /** Whether events are sent. */
  enabled?: boolean | undefined;
  /** The types of events that are sent. At most 20 entries. */
  event_types?: EventType[] | undefined;
  /** The address to which events are sent: an https URL without user name and fragment. */
  url?: string | undefined;
}

/** A video of the organisation. */
export interface Video {
  /** The id of the video. */
  ad_id: string;
  /** Whether the video is a shop ad. */
  ad_info_shop: boolean;
  /** Whether the platform marks the video as an ad. */
  ad_is_ad: boolean;
  /** The canonical link of the video. */
  ad_link: string;
  /** The product id of a shop ad; empty for other videos and for shop ads without a product id. */
  ad_product_id_shop: string;
  /** When the video was first tracked for the organisation, by its link or through its account. */
  created_at: string;
  /** `username` without the suffix that begins with `~`, for display. */
  display_username: string;
  /** A sentence for people that explains `fetch_status`; null if the status needs no explanation, or if the tier hides it. */
  fetch_detail: string | null;
  /** Whether a video or account can be fetched. */
  fetch_status: FetchStatus;
  /** Whether the platform does not give at least one count that it normally gives. */
  hidden_stats: boolean;
  /** The growth from earlier views to `latest_views`, in percent. */
  increase_14d: number | null;
  /** The growth from earlier views to `latest_views`, in percent. */
  increase_1d: number | null;
  /** The growth from earlier views to `latest_views`, in percent. */
  increase_30d: number | null;
  /** The growth from earlier views to `latest_views`, in percent. */
  increase_7d: number | null;
  /** The ids of the collections that the video is in; empty if the video is in no collection. At most 10000 entries. */
  label_ids: string[] | null;
  /** The names of the collections in `label_ids`, in the same order. At most 10000 entries. */
  label_names: string[] | null;
  /** When a source was last asked for the video, with or without success. */
  last_attempt_at: string | null;
  /** The latest known number of bookmarks. */
  latest_bookmarks: number | null;
  /** The latest known number of comments. */
  latest_comments: number | null;
  /** The sum of likes, comments, bookmarks and shares. */
  latest_engagement: number | null;
  /** The latest known number of likes. */
  latest_likes: number | null;
  /** The latest known number of shares. */
  latest_shares: number | null;
  /** When the metrics were last fetched, or the time of later imported metrics; null before that, and if the tier hides it. */
  latest_updated_at: string | null;
  /** The latest known number of views: on TikTok and YouTube as the platform shows it, on Instagram the plays on Instagram without those on Facebook. */
  latest_views: number | null;
  /** The account that posted the video; null until it is known from the link or a fetch. */
  linked_account_id: string | null;
  /** `true` if the organisation's tier hides the metrics; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** When the next fetch of the video is due; null if no fetch is planned or if the tier hides the time. */
  next_fetch_at: string | null;
  /** Whether the platform restricts the video, for example by age (not safe for work). */
  not_safe: boolean;
  /** The id of the organisation that tracks this video or account, or owns this collection. */
  organisation_id: string;
  /** The latest views of the video, divided by the median of the latest views of the account's tracked videos. */
  outlier_multiplier: number | null;
  /** The platform of a video or account. */
  platform: Platform;
  /** Whether the platform says that the video is private now. */
  private: boolean;
  /** Whether the tracking of this video or account was stopped. */
  removed: boolean;
  /** The link of the video's sound; null if the platform gives none. */
  song_link: string | null;
  /** The name of the video's sound; null if it has no sound or the platform does not name it. */
  song_name: string | null;
  /** The address of the video's picture at the platform, as a source gave it last; null if no source gave one. */
  thumbnail_url: string | null;
  /** The title or caption of the video; empty before the first fetch. */
  title: string;
  /** The UTC day of the upload; null before the first fetch, and if no source gave it. */
  uploaded_at: string | null;
  /** The handle of the account that posted the video, in lower case, without `@`. */
  username: string;
  /** The length of the video in seconds; null before the first fetch, and if no source gave it, as for live broadcasts, slideshows, and Instagram without a vendor. */
  video_length: string | null;
  /** `latest_views` minus earlier views. */
  views_gained_7d: number | null;
}

/** Videos, in the requested order. */
export type VideoArray = Video[];

/** The filters that were applied. */
export interface VideoFilters {
  /** The value of the filter `ad_info_shop`: only shop ads if true, only other videos if false. */
  ad_info_shop: boolean | null;
  /** Whether the list has only shop ads with a product id. */
  ad_product_id_shop: boolean | null;
  /** The collections of the filter, as sent; empty if the filter is not used. At most 100 entries. */
  collections: string[];
  /** The status of the filter `fetch_status`. */
  fetch_status: string | null;
  /** The value of the filter `has_metrics`: only videos whose metrics were fetched at least once if true, only videos whose metrics were never fetched if false. */
  has_metrics: boolean | null;
  /** The hashtag of the filter `hashtag`, in lower case and in the Unicode form NFC, with `σ` for `ς`, without `#`. */
  hashtag: string | null;
  /** The value of `include_removed`. */
  include_removed: boolean;
  /** A range of time. */
  latest_updated_at_range: TimeRange;
  /** The link of the filter `link`, in its canonical form. */
  link: string | null;
  /** The account id of the filter `linked_account_id`. */
  linked_account_id: string | null;
  /** The platform of the filter `platform`. */
  platform: string | null;
  /** The filter `q`, as it was sent: the words that the caption must contain, each also inside a longer word. */
  q: string | null;
  /** A range of UTC days. */
  uploaded_at_range: DateRange;
  /** The handle of the filter `username`, in lower case, without `@`. */
  username: string | null;
}

/** Daily points, newest first. */
export type VideoHistory = VideoHistoryPoint[];

/** The counts of one UTC day. */
export interface VideoHistoryPoint {
  /** The number of bookmarks. */
  bookmarks: number | null;
  /** The number of comments. */
  comments: number | null;
  /** The UTC day of the point. */
  date: string;
  /** The sum of likes, comments, bookmarks and shares. */
  engagements: number | null;
  /** When the source in `source` was asked; absent on an interpolated point. */
  fetched_at?: string | undefined;
  /** `true` if the counts of the point were computed from the snapshots before and after it; absent otherwise. */
  interpolated?: boolean | undefined;
  /** The number of likes. */
  likes: number | null;
  /** `true` if the organisation's tier hides the counts; absent otherwise. */
  metrics_masked?: boolean | undefined;
  /** The quality of the counts of a point. */
  quality?: HistoryQuality | undefined;
  /** The number of shares. */
  shares: number | null;
  /** The source that gave the counts; absent on an interpolated point. */
  source?: string | undefined;
  /** The number of views, as in `latest_views` of the video. */
  views: number | null;
}

/** The members by which a list of videos can be sorted. */
export type VideoOrder = "created_at" | "uploaded_at" | "latest_updated_at" | "latest_views" | "latest_likes" | "latest_comments" | "latest_bookmarks" | "latest_shares" | "latest_engagement" | "outlier_multiplier" | "increase_1d" | "increase_7d" | "increase_14d" | "increase_30d" | "views_gained_7d";

/** One page of videos. */
export interface VideoPage {
  /** The videos, in the requested order. At most 5000 entries. */
  data: Video[];
  /** The filters that were applied. */
  filters: VideoFilters;
  /** Describes this page of the list and its order. */
  pagination: VideoPagination;
}

/** Describes this page of the list and its order. */
export interface VideoPagination {
  /** Whether there is a next page. */
  has_more: boolean;
  /** The maximum number of items of a page. */
  limit: number;
  /** The value of the parameter `cursor` that requests the next page; null on the last page. */
  next_cursor: string | null;
  /** The members by which a list of videos can be sorted. */
  order_by: VideoOrder;
  /** The direction of the order: ascending or descending. */
  order_direction: OrderDirection;
  /** The number of this page; the first page is 1. */
  page: number;
  /** The number of videos that match the filters. */
  total: number;
  /** The number of pages of `limit` items; 0 if no video matches the filters. */
  total_pages: number;
}

/** An endpoint to which events are sent. */
export interface Webhook {
  /** When the webhook was created. */
  created_at: string;
  /** A note about the webhook. */
  description: string;
  /** Why the webhook is disabled: `by_request`, `gone` if its server answered with status 410, or `failing` if all attempts failed for three days. */
  disabled_reason: string | null;
  /** Whether events are sent. */
  enabled: boolean;
  /** The types of events that are sent. At most 20 entries. */
  event_types: EventTypes;
  /** When the first of the failed attempts since the last success was made; null if the last attempt was successful, and before the first attempt. */
  failing_since: string | null;
  /** Its id. */
  id: string;
  /** When an event was last accepted; null if none was accepted yet. */
  last_success_at: string | null;
  /** Until when requests are also signed with the previous secret; null if there is none. */
  previous_secret_expires_at: string | null;
  /** When the webhook was last changed by a request. */
  updated_at: string;
  /** The address to which events are sent. */
  url: string;
}

/** An event that is sent to a webhook, with the result of the last attempt. */
export interface WebhookDelivery {
  /** How many attempts were made. */
  attempts: number;
  /** The `created_at` of the event; for a delivery that replays another one, the time of the replay. */
  created_at: string;
  /** How many milliseconds the last attempt took. */
  duration_ms: number | null;
  /** Why the last attempt failed; null if it was successful or not made yet. */
  error: string | null;
  /** The id of the event, which is sent as `webhook-id`. */
  event_id: string;
  /** What has happened. */
  event_type: EventType;
  /** Its id. */
  id: string;
  /** When the last attempt was made; null before the first attempt. */
  last_attempt_at: string | null;
  /** When the next attempt is due; null if the event was accepted, if all attempts failed, or while the webhook is disabled. */
  next_attempt_at: string | null;
  /** The first bytes of the last response; null if there was no response. */
  response_body: string | null;
  /** The HTTP status of the last response; null if there was no response. */
  response_status: number | null;
  /** Whether an attempt will follow (`pending`), the event was accepted (`delivered`), or all attempts failed (`failed`). */
  status: WebhookDeliveryStatus;
  /** The id of the webhook. */
  webhook_id: string;
}

/** One page of the deliveries to a webhook. */
export interface WebhookDeliveryPage {
  /** The deliveries, in the requested order. At most 5000 entries. */
  data: WebhookDelivery[];
  /** Describes one page of a list. */
  pagination: Pagination;
}

/** Whether an attempt will follow (`pending`), the event was accepted (`delivered`), or all attempts failed (`failed`). */
export type WebhookDeliveryStatus = "pending" | "delivered" | "failed";

/** The webhooks of an organisation. */
export interface WebhookList {
  /** The webhooks, the newest first. At most 20 entries. */
  data: Webhook[];
}

/** The new secret of a webhook. */
export interface WebhookSecret {
  /** The id of the webhook. */
  id: string;
  /** Until when requests are also signed with the previous secret. */
  previous_secret_expires_at: string;
  /** The secret that signs the requests. */
  secret: string | null;
}

/** The parameters of {@link ReelTally.exportHistory}. */
export interface ExportHistoryParams {
  /** Only points that were fetched at or after this time. */
  updated_since?: string | undefined;
  /** The maximum number of videos of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
}

/** The parameters of {@link ReelTally.getAccountHistory}. */
export interface GetAccountHistoryParams {
  /** The first day, inclusive. */
  start_date?: string | undefined;
  /** The last day, inclusive. */
  end_date?: string | undefined;
  /** The additional members of each point. */
  include?: HistoryInclude[] | undefined;
}

/** The parameters of {@link ReelTally.getCollection}. */
export interface GetCollectionParams {
  /** `true`: the response has `video_count` and `account_count`. */
  include_counts?: boolean | undefined;
}

/** The parameters of {@link ReelTally.getCollectionHistory}. */
export interface GetCollectionHistoryParams {
  /** The first day, inclusive. */
  start_date?: string | undefined;
  /** The last day, inclusive. */
  end_date?: string | undefined;
  /** `true`: also count the videos of all collections below the collection. */
  include_children?: boolean | undefined;
}

/** The parameters of {@link ReelTally.getCollectionStatistics}. */
export interface GetCollectionStatisticsParams {
  /** The first day, inclusive. */
  start_date?: string | undefined;
  /** The last day, inclusive. */
  end_date?: string | undefined;
  /** `true`: also count the videos of all collections below the collection. */
  include_children?: boolean | undefined;
}

/** The parameters of {@link ReelTally.getOrganisationHistory}. */
export interface GetOrganisationHistoryParams {
  /** The first day, inclusive. */
  start_date?: string | undefined;
  /** The last day, inclusive. */
  end_date?: string | undefined;
}

/** The parameters of {@link ReelTally.getReport}. */
export interface GetReportParams {
  /** `false`: `videos` is empty. */
  include_videos?: boolean | undefined;
  /** `false`: the `points` of each video are empty. */
  include_points?: boolean | undefined;
}

/** The parameters of {@link ReelTally.getVideoHistory}. */
export interface GetVideoHistoryParams {
  /** The first day, inclusive. */
  start_date?: string | undefined;
  /** The last day, inclusive. */
  end_date?: string | undefined;
  /** The additional members of each point. */
  include?: HistoryInclude[] | undefined;
}

/** The parameters of {@link ReelTally.listAccountVideos}. */
export interface ListAccountVideosParams {
  /** Only videos uploaded on or after this day. */
  start_date?: string | undefined;
  /** Only videos uploaded on or before this day. */
  end_date?: string | undefined;
  /** The number of the page; the first page is 1. */
  page?: number | undefined;
  /** The maximum number of items of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
  /** The member of a video to sort by. */
  order_by?: AccountVideoOrder | undefined;
  /** The direction of the order: ascending or descending. */
  order_direction?: OrderDirection | undefined;
  /** `true`: also list videos whose tracking was stopped. */
  include_removed?: boolean | undefined;
  /** Only videos or accounts with this `fetch_status`. */
  fetch_status?: FetchStatus | undefined;
}

/** The parameters of {@link ReelTally.listAccounts}. */
export interface ListAccountsParams {
  /** The number of the page; the first page is 1. */
  page?: number | undefined;
  /** The maximum number of items of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
  /** The member to sort by. */
  order_by?: AccountOrder | undefined;
  /** The direction of the order: ascending or descending. */
  order_direction?: OrderDirection | undefined;
  /** Only accounts of this platform. */
  platform?: Platform | undefined;
  /** Only accounts with this handle. */
  username?: string | undefined;
  /** Only accounts that were added to at least one of these collections, given by name or id, separated by commas or in repeated parameters. */
  collections?: string[] | undefined;
  /** Only the account of this link, in any form of the link. */
  link?: string | undefined;
  /** `true`: also list accounts that are only linked from videos. */
  include_linked?: boolean | undefined;
  /** `true`: also list accounts whose tracking was stopped. */
  include_removed?: boolean | undefined;
  /** Only videos or accounts with this `fetch_status`. */
  fetch_status?: FetchStatus | undefined;
}

/** The parameters of {@link ReelTally.listCollectionAccounts}. */
export interface ListCollectionAccountsParams {
  /** The number of the page; the first page is 1. */
  page?: number | undefined;
  /** The maximum number of items of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
  /** The member to sort by. */
  order_by?: AccountOrder | undefined;
  /** The direction of the order: ascending or descending. */
  order_direction?: OrderDirection | undefined;
  /** `true`: also list accounts whose tracking was stopped. */
  include_removed?: boolean | undefined;
  /** Only videos or accounts with this `fetch_status`. */
  fetch_status?: FetchStatus | undefined;
}

/** The parameters of {@link ReelTally.listCollectionVideos}. */
export interface ListCollectionVideosParams {
  /** The number of the page; the first page is 1. */
  page?: number | undefined;
  /** The maximum number of items of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
  /** The member to sort by. */
  order_by?: CollectionVideoOrder | undefined;
  /** The direction of the order: ascending or descending. */
  order_direction?: OrderDirection | undefined;
  /** `true`: also list videos whose tracking was stopped. */
  include_removed?: boolean | undefined;
  /** Only videos or accounts with this `fetch_status`. */
  fetch_status?: FetchStatus | undefined;
}

/** The parameters of {@link ReelTally.listCollections}. */
export interface ListCollectionsParams {
  /** Only collections whose parent is this collection. */
  parent_id?: string | undefined;
  /** `true` together with `parent_id`: all collections below the parent, not only its children. */
  include_children?: boolean | undefined;
  /** The number of the page; the first page is 1. */
  page?: number | undefined;
  /** The maximum number of items of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
  /** The member to sort by. */
  order_by?: CollectionOrder | undefined;
  /** The direction of the order: ascending or descending. */
  order_direction?: OrderDirection | undefined;
}

/** The parameters of {@link ReelTally.listEvents}. */
export interface ListEventsParams {
  /** Only events of these types, separated by commas or in repeated parameters. */
  types?: EventType[] | undefined;
  /** The maximum number of events of a response. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous response, with the same types. */
  cursor?: string | undefined;
}

/** The parameters of {@link ReelTally.listReports}. */
export interface ListReportsParams {
  /** The number of the page; the first page is 1. */
  page?: number | undefined;
  /** The maximum number of items of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
  /** The direction of the order: ascending or descending. */
  order_direction?: OrderDirection | undefined;
}

/** The parameters of {@link ReelTally.listVideos}. */
export interface ListVideosParams {
  /** The number of the page; the first page is 1. */
  page?: number | undefined;
  /** The maximum number of items of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
  /** The member of a video to sort by. */
  order_by?: VideoOrder | undefined;
  /** The direction of the order: ascending or descending. */
  order_direction?: OrderDirection | undefined;
  /** Only videos of the account with this handle. */
  username?: string | undefined;
  /** Only videos of the account with this id. */
  linked_account_id?: string | undefined;
  /** Only videos uploaded on or after this day. */
  uploaded_at_start?: string | undefined;
  /** Only videos uploaded on or before this day. */
  uploaded_at_end?: string | undefined;
  /** Only videos whose metrics were last fetched at or after this time (RFC 3339 with an offset; in a query, a `+` is written as `%2B`). */
  latest_updated_at_start?: string | undefined;
  /** Only videos whose metrics were last fetched at or before this time. */
  latest_updated_at_end?: string | undefined;
  /** `true`: only shop ads; `false`: only videos that are not shop ads. */
  ad_info_shop?: boolean | undefined;
  /** `true`: only shop ads that have a product id. */
  ad_product_id_shop?: boolean | undefined;
  /** `true`: only videos with metrics, which were fetched or imported; `false`: only videos without. */
  has_metrics?: boolean | undefined;
  /** Only videos that are in at least one of these collections, given by name or id, separated by commas or in repeated parameters. */
  collections?: string[] | undefined;
  /** Only the video of this link, in any form of the link. */
  link?: string | undefined;
  /** Only videos of this platform. */
  platform?: Platform | undefined;
  /** Only videos whose caption contains this hashtag, sent with or without `#`. */
  hashtag?: string | undefined;
  /** Only videos whose caption contains each of these words, at most 20 words. */
  q?: string | undefined;
  /** `true`: also list videos whose tracking was stopped. */
  include_removed?: boolean | undefined;
  /** Only videos or accounts with this `fetch_status`. */
  fetch_status?: FetchStatus | undefined;
}

/** The parameters of {@link ReelTally.listWebhookDeliveries}. */
export interface ListWebhookDeliveriesParams {
  /** The number of the page; the first page is 1. */
  page?: number | undefined;
  /** The maximum number of items of a page. */
  limit?: number | undefined;
  /** The `next_cursor` of the previous page. */
  cursor?: string | undefined;
  /** The direction of the order: ascending or descending. */
  order_direction?: OrderDirection | undefined;
}

/** A client of the API of a ReelTally server. */
export class ReelTally extends Client {
  /** Add accounts to a collection. `POST /collections/{collection_id}/accounts` */
  addCollectionAccounts(collectionId: string, body: CollectionAccountsRequest, options?: RequestOptions): Promise<AddedAccounts>;
  /** Add videos to a collection. `POST /collections/{collection_id}/videos` */
  addCollectionVideos(collectionId: string, body: CollectionVideosRequest, options?: RequestOptions): Promise<AddedVideos>;
  /** Read the identity of a token. `GET /authenticate` */
  authenticate(options?: RequestOptions): Promise<Authentication>;
  /** Create a collection. `POST /collections` */
  createCollection(body: CreateCollectionRequest, options?: RequestOptions): Promise<CreatedCollection>;
  /** Create a report of a collection that never changes. `POST /collections/{collection_id}/reports` */
  createReport(collectionId: string, body: CreateReportRequest, options?: RequestOptions): Promise<ReportSummary>;
  /** Create a token. `POST /tokens` */
  createToken(body: CreateTokenRequest, options?: RequestOptions): Promise<CreatedToken>;
  /** Create a webhook. `POST /webhooks` */
  createWebhook(body: CreateWebhookRequest, options?: RequestOptions): Promise<CreatedWebhook>;
  /** Delete a collection. `DELETE /collections/{collection_id}` */
  deleteCollection(collectionId: string, body?: EmptyObject, options?: RequestOptions): Promise<DeletedCollection>;
  /** Delete a webhook. `DELETE /webhooks/{webhook_id}` */
  deleteWebhook(webhookId: string, options?: RequestOptions): Promise<void>;
  /** Export the stored points of all videos. `GET /history/export` */
  exportHistory(params?: ExportHistoryParams, options?: RequestOptions): Promise<HistoryExport>;
  /** Reads all pages of {@link ReelTally.exportHistory}, one after the other, and yields their entries. It leaves out exported_until: if you export repeatedly, use exportHistory, and send its exported_until as updated_since in the next export. */
  allHistory(params?: Omit<ExportHistoryParams, "page">, options?: RequestOptions): AsyncGenerator<ExportedPoint, void, undefined>;
  /** Read one account. `GET /accounts/{account_id}` */
  getAccount(accountId: string, options?: RequestOptions): Promise<Account>;
  /** Read the daily points of an account. `GET /accounts/{account_id}/history` */
  getAccountHistory(accountId: string, params?: GetAccountHistoryParams, options?: RequestOptions): Promise<AccountHistory>;
  /** Count the accounts. `GET /statistics/accounts` */
  getAccountStatistics(options?: RequestOptions): Promise<Statistics>;
  /** Read one collection. `GET /collections/{collection_id}` */
  getCollection(collectionId: string, params?: GetCollectionParams, options?: RequestOptions): Promise<Collection>;
  /** Does the same as {@link ReelTally.getCollection}, and also returns the ETag. A change with this ETag as ifMatch fails with the status 412 if the item has changed since this read. */
  getCollectionWithETag(collectionId: string, params?: GetCollectionParams, options?: RequestOptions): Promise<[Collection, string]>;
  /** Read the daily totals of a collection. `GET /collections/{collection_id}/history` */
  getCollectionHistory(collectionId: string, params?: GetCollectionHistoryParams, options?: RequestOptions): Promise<CollectionHistory>;
  /** Read the totals and gained views of a collection. `GET /collections/{collection_id}/statistics` */
  getCollectionStatistics(collectionId: string, params?: GetCollectionStatisticsParams, options?: RequestOptions): Promise<CollectionStatistics>;
  /** Read the daily points of the organisation. `GET /organisation/history` */
  getOrganisationHistory(params?: GetOrganisationHistoryParams, options?: RequestOptions): Promise<OrganisationHistory>;
  /** Read a report. `GET /reports/{report_id}` */
  getReport(reportId: string, params?: GetReportParams, options?: RequestOptions): Promise<Report>;
  /** Read one video. `GET /videos/{ad_id}` */
  getVideo(adId: string, options?: RequestOptions): Promise<Video>;
  /** Read the daily points of a video. `GET /videos/{ad_id}/history` */
  getVideoHistory(adId: string, params?: GetVideoHistoryParams, options?: RequestOptions): Promise<VideoHistory>;
  /** Count the videos. `GET /statistics/videos` */
  getVideoStatistics(options?: RequestOptions): Promise<Statistics>;
  /** Read a webhook. `GET /webhooks/{webhook_id}` */
  getWebhook(webhookId: string, options?: RequestOptions): Promise<Webhook>;
  /** List the videos of an account. `GET /accounts/{account_id}/videos` */
  listAccountVideos(accountId: string, params?: ListAccountVideosParams, options?: RequestOptions): Promise<AccountVideoPage>;
  /** Reads all pages of {@link ReelTally.listAccountVideos}, one after the other, and yields their entries. */
  allAccountVideos(accountId: string, params?: Omit<ListAccountVideosParams, "page">, options?: RequestOptions): AsyncGenerator<Video, void, undefined>;
  /** List tracked accounts. `GET /accounts` */
  listAccounts(params?: ListAccountsParams, options?: RequestOptions): Promise<AccountPage>;
  /** Reads all pages of {@link ReelTally.listAccounts}, one after the other, and yields their entries. */
  allAccounts(params?: Omit<ListAccountsParams, "page">, options?: RequestOptions): AsyncGenerator<Account, void, undefined>;
  /** List the accounts of a collection. `GET /collections/{collection_id}/accounts` */
  listCollectionAccounts(collectionId: string, params?: ListCollectionAccountsParams, options?: RequestOptions): Promise<CollectionAccountPage>;
  /** Reads all pages of {@link ReelTally.listCollectionAccounts}, one after the other, and yields their entries. */
  allCollectionAccounts(collectionId: string, params?: Omit<ListCollectionAccountsParams, "page">, options?: RequestOptions): AsyncGenerator<Account, void, undefined>;
  /** List the videos of a collection. `GET /collections/{collection_id}/videos` */
  listCollectionVideos(collectionId: string, params?: ListCollectionVideosParams, options?: RequestOptions): Promise<CollectionVideoPage>;
  /** Reads all pages of {@link ReelTally.listCollectionVideos}, one after the other, and yields their entries. */
  allCollectionVideos(collectionId: string, params?: Omit<ListCollectionVideosParams, "page">, options?: RequestOptions): AsyncGenerator<Video, void, undefined>;
  /** List collections. `GET /collections` */
  listCollections(params?: ListCollectionsParams, options?: RequestOptions): Promise<CollectionList>;
  /** Reads all pages of {@link ReelTally.listCollections}, one after the other, and yields their entries. */
  allCollections(params?: Omit<ListCollectionsParams, "page">, options?: RequestOptions): AsyncGenerator<Collection, void, undefined>;
  /** Read the event feed. `GET /events` */
  listEvents(params?: ListEventsParams, options?: RequestOptions): Promise<EventFeed>;
  /** List the reports of a collection. `GET /collections/{collection_id}/reports` */
  listReports(collectionId: string, params?: ListReportsParams, options?: RequestOptions): Promise<ReportPage>;
  /** Reads all pages of {@link ReelTally.listReports}, one after the other, and yields their entries. */
  allReports(collectionId: string, params?: Omit<ListReportsParams, "page">, options?: RequestOptions): AsyncGenerator<ReportSummary, void, undefined>;
  /** List the tokens of the organisation. `GET /tokens` */
  listTokens(options?: RequestOptions): Promise<TokenList>;
  /** List tracked videos. `GET /videos` */
  listVideos(params?: ListVideosParams, options?: RequestOptions): Promise<VideoPage>;
  /** Reads all pages of {@link ReelTally.listVideos}, one after the other, and yields their entries. */
  allVideos(params?: Omit<ListVideosParams, "page">, options?: RequestOptions): AsyncGenerator<Video, void, undefined>;
  /** List the deliveries to a webhook. `GET /webhooks/{webhook_id}/deliveries` */
  listWebhookDeliveries(webhookId: string, params?: ListWebhookDeliveriesParams, options?: RequestOptions): Promise<WebhookDeliveryPage>;
  /** Reads all pages of {@link ReelTally.listWebhookDeliveries}, one after the other, and yields their entries. */
  allWebhookDeliveries(webhookId: string, params?: Omit<ListWebhookDeliveriesParams, "page">, options?: RequestOptions): AsyncGenerator<WebhookDelivery, void, undefined>;
  /** List the webhooks of the organisation. `GET /webhooks` */
  listWebhooks(options?: RequestOptions): Promise<WebhookList>;
  /** Fetch an account now. `POST /refresh/accounts` */
  refreshAccount(body: RefreshAccountRequest, options?: RequestOptions): Promise<RefreshNotDue | undefined>;
  /** Fetch a video now. `POST /refresh/videos` */
  refreshVideo(body: RefreshVideoRequest, options?: RequestOptions): Promise<RefreshNotDue | undefined>;
  /** Remove accounts from a collection. `DELETE /collections/{collection_id}/accounts` */
  removeCollectionAccounts(collectionId: string, body: CollectionAccountsRequest, options?: RequestOptions): Promise<RemovedAccounts>;
  /** Remove videos from a collection. `DELETE /collections/{collection_id}/videos` */
  removeCollectionVideos(collectionId: string, body: RemoveCollectionVideosRequest, options?: RequestOptions): Promise<RemovedVideos>;
  /** Send the event of a delivery again. `POST /webhooks/{webhook_id}/deliveries/{delivery_id}/replay` */
  replayWebhookDelivery(webhookId: string, deliveryId: string, options?: RequestOptions): Promise<WebhookDelivery>;
  /** Revoke a token. `DELETE /tokens/{token_id}` */
  revokeToken(tokenId: string, options?: RequestOptions): Promise<void>;
  /** Replace the secret of a webhook. `POST /webhooks/{webhook_id}/rotate-secret` */
  rotateWebhookSecret(webhookId: string, options?: RequestOptions): Promise<WebhookSecret>;
  /** Stop tracking an account, by id or link. `DELETE /accounts` */
  stopAccount(body: StopAccountRequest, options?: RequestOptions): Promise<StoppedAccount>;
  /** Stop tracking an account, by id. `DELETE /accounts/{account_id}` */
  stopAccountById(accountId: string, options?: RequestOptions): Promise<StoppedAccount>;
  /** Stop tracking many accounts. `DELETE /accounts/bulk` */
  stopAccounts(body: StopAccountsRequest, options?: RequestOptions): Promise<StopResult>;
  /** Stop tracking a video, by id or link. `DELETE /videos` */
  stopVideo(body: StopVideoRequest, options?: RequestOptions): Promise<Message>;
  /** Stop tracking a video, by id. `DELETE /videos/{ad_id}` */
  stopVideoById(adId: string, options?: RequestOptions): Promise<Message>;
  /** Stop tracking many videos. `DELETE /videos/bulk` */
  stopVideos(body: StopVideosRequest, options?: RequestOptions): Promise<StopResult>;
  /** Send a test event to a webhook. `POST /webhooks/{webhook_id}/test` */
  testWebhook(webhookId: string, options?: RequestOptions): Promise<WebhookDelivery>;
  /** Track an account. `POST /accounts` */
  trackAccount(body: TrackAccountRequest, options?: RequestOptions): Promise<TrackAccountResult>;
  /** Track many accounts. `POST /accounts/bulk` */
  trackAccounts(body: TrackAccountsRequest, options?: RequestOptions): Promise<TrackAccountsResult>;
  /** Track a video. `POST /videos` */
  trackVideo(body: TrackVideoRequest, options?: RequestOptions): Promise<TrackVideoResult>;
  /** Track many videos. `POST /videos/bulk` */
  trackVideos(body: TrackVideosRequest, options?: RequestOptions): Promise<TrackVideosResult>;
  /** Change a collection. `PATCH /collections/{collection_id}` */
  updateCollection(collectionId: string, body: UpdateCollectionRequest, options?: RequestOptions): Promise<void>;
  /** Change the share page of a report. `PATCH /reports/{report_id}` */
  updateReport(reportId: string, body: UpdateReportRequest, options?: RequestOptions): Promise<void>;
  /** Change a webhook. `PATCH /webhooks/{webhook_id}` */
  updateWebhook(webhookId: string, body: UpdateWebhookRequest, options?: RequestOptions): Promise<Webhook>;
}
