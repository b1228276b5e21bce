// Generated from openapi.yaml by gen/sdk. Do not edit.

import { Client } from "./client.js";

export { CSV, CSV_SEMICOLON, NDJSON, XLSX, Client, ReelTallyError } from "./client.js";

export class ReelTally extends Client {
  addCollectionAccounts(collectionId, body, options) {
    return this.request("POST", `/collections/${encodeURIComponent(collectionId)}/accounts`, { body, keyed: true, ...options });
  }
  addCollectionVideos(collectionId, body, options) {
    return this.request("POST", `/collections/${encodeURIComponent(collectionId)}/videos`, { body, keyed: true, ...options });
  }
  authenticate(options) {
    return this.request("GET", `/authenticate`, { ...options });
  }
  createCollection(body, options) {
    return this.request("POST", `/collections`, { body, keyed: true, ...options });
  }
  createReport(collectionId, body, options) {
    return this.request("POST", `/collections/${encodeURIComponent(collectionId)}/reports`, { body, keyed: true, ...options });
  }
  createToken(body, options) {
    return this.request("POST", `/tokens`, { body, keyed: true, ...options });
  }
  createWebhook(body, options) {
    return this.request("POST", `/webhooks`, { body, keyed: true, ...options });
  }
  deleteCollection(collectionId, body, options) {
    return this.request("DELETE", `/collections/${encodeURIComponent(collectionId)}`, { body, ...options });
  }
  deleteWebhook(webhookId, options) {
    return this.request("DELETE", `/webhooks/${encodeURIComponent(webhookId)}`, { ...options });
  }
  exportHistory(params, options) {
    return this.request("GET", `/history/export`, { query: params, ...options });
  }
  allHistory(params, options) {
    return this.pages(params, next => this.exportHistory(next, options));
  }
  getAccount(accountId, options) {
    return this.request("GET", `/accounts/${encodeURIComponent(accountId)}`, { ...options });
  }
  getAccountHistory(accountId, params, options) {
    return this.request("GET", `/accounts/${encodeURIComponent(accountId)}/history`, { query: params, ...options });
  }
  getAccountStatistics(options) {
    return this.request("GET", `/statistics/accounts`, { ...options });
  }
  getCollection(collectionId, params, options) {
    return this.request("GET", `/collections/${encodeURIComponent(collectionId)}`, { query: params, ...options });
  }
  getCollectionWithETag(collectionId, params, options) {
    return this.requestWithETag("GET", `/collections/${encodeURIComponent(collectionId)}`, { query: params, ...options });
  }
  getCollectionHistory(collectionId, params, options) {
    return this.request("GET", `/collections/${encodeURIComponent(collectionId)}/history`, { query: params, ...options });
  }
  getCollectionStatistics(collectionId, params, options) {
    return this.request("GET", `/collections/${encodeURIComponent(collectionId)}/statistics`, { query: params, ...options });
  }
  getOrganisationHistory(params, options) {
    return this.request("GET", `/organisation/history`, { query: params, ...options });
  }
  getReport(reportId, params, options) {
    return this.request("GET", `/reports/${encodeURIComponent(reportId)}`, { query: params, ...options });
  }
  getVideo(adId, options) {
    return this.request("GET", `/videos/${encodeURIComponent(adId)}`, { ...options });
  }
  getVideoHistory(adId, params, options) {
    return this.request("GET", `/videos/${encodeURIComponent(adId)}/history`, { query: params, ...options });
  }
  getVideoStatistics(options) {
    return this.request("GET", `/statistics/videos`, { ...options });
  }
  getWebhook(webhookId, options) {
    return this.request("GET", `/webhooks/${encodeURIComponent(webhookId)}`, { ...options });
  }
  listAccountVideos(accountId, params, options) {
    return this.request("GET", `/accounts/${encodeURIComponent(accountId)}/videos`, { query: { ...params, paginated: true }, ...options });
  }
  allAccountVideos(accountId, params, options) {
    return this.pages(params, next => this.listAccountVideos(accountId, next, options));
  }
  listAccounts(params, options) {
    return this.request("GET", `/accounts`, { query: { ...params, paginated: true }, ...options });
  }
  allAccounts(params, options) {
    return this.pages(params, next => this.listAccounts(next, options));
  }
  listCollectionAccounts(collectionId, params, options) {
    return this.request("GET", `/collections/${encodeURIComponent(collectionId)}/accounts`, { query: params, ...options });
  }
  allCollectionAccounts(collectionId, params, options) {
    return this.pages({ limit: 5000, ...params }, next => this.listCollectionAccounts(collectionId, next, options));
  }
  listCollectionVideos(collectionId, params, options) {
    return this.request("GET", `/collections/${encodeURIComponent(collectionId)}/videos`, { query: params, ...options });
  }
  allCollectionVideos(collectionId, params, options) {
    return this.pages({ limit: 5000, ...params }, next => this.listCollectionVideos(collectionId, next, options));
  }
  listCollections(params, options) {
    return this.request("GET", `/collections`, { query: { ...params, paginated: true }, ...options });
  }
  allCollections(params, options) {
    return this.pages(params, next => this.listCollections(next, options));
  }
  listEvents(params, options) {
    return this.request("GET", `/events`, { query: params, ...options });
  }
  listReports(collectionId, params, options) {
    return this.request("GET", `/collections/${encodeURIComponent(collectionId)}/reports`, { query: params, ...options });
  }
  allReports(collectionId, params, options) {
    return this.pages({ limit: 5000, ...params }, next => this.listReports(collectionId, next, options));
  }
  listTokens(options) {
    return this.request("GET", `/tokens`, { ...options });
  }
  listVideos(params, options) {
    return this.request("GET", `/videos`, { query: params, ...options });
  }
  allVideos(params, options) {
    return this.pages(params, next => this.listVideos(next, options));
  }
  listWebhookDeliveries(webhookId, params, options) {
    return this.request("GET", `/webhooks/${encodeURIComponent(webhookId)}/deliveries`, { query: params, ...options });
  }
  allWebhookDeliveries(webhookId, params, options) {
    return this.pages({ limit: 5000, ...params }, next => this.listWebhookDeliveries(webhookId, next, options));
  }
  listWebhooks(options) {
    return this.request("GET", `/webhooks`, { ...options });
  }
  refreshAccount(body, options) {
    return this.request("POST", `/refresh/accounts`, { body, keyed: true, ...options });
  }
  refreshVideo(body, options) {
    return this.request("POST", `/refresh/videos`, { body, keyed: true, ...options });
  }
  removeCollectionAccounts(collectionId, body, options) {
    return this.request("DELETE", `/collections/${encodeURIComponent(collectionId)}/accounts`, { body, ...options });
  }
  removeCollectionVideos(collectionId, body, options) {
    return this.request("DELETE", `/collections/${encodeURIComponent(collectionId)}/videos`, { body, ...options });
  }
  replayWebhookDelivery(webhookId, deliveryId, options) {
    return this.request("POST", `/webhooks/${encodeURIComponent(webhookId)}/deliveries/${encodeURIComponent(deliveryId)}/replay`, { keyed: true, ...options });
  }
  revokeToken(tokenId, options) {
    return this.request("DELETE", `/tokens/${encodeURIComponent(tokenId)}`, { ...options });
  }
  rotateWebhookSecret(webhookId, options) {
    return this.request("POST", `/webhooks/${encodeURIComponent(webhookId)}/rotate-secret`, { keyed: true, ...options });
  }
  stopAccount(body, options) {
    return this.request("DELETE", `/accounts`, { body, keyed: true, ...options });
  }
  stopAccountById(accountId, options) {
    return this.request("DELETE", `/accounts/${encodeURIComponent(accountId)}`, { keyed: true, ...options });
  }
  stopAccounts(body, options) {
    return this.request("DELETE", `/accounts/bulk`, { body, keyed: true, ...options });
  }
  stopVideo(body, options) {
    return this.request("DELETE", `/videos`, { body, keyed: true, ...options });
  }
  stopVideoById(adId, options) {
    return this.request("DELETE", `/videos/${encodeURIComponent(adId)}`, { keyed: true, ...options });
  }
  stopVideos(body, options) {
    return this.request("DELETE", `/videos/bulk`, { body, keyed: true, ...options });
  }
  testWebhook(webhookId, options) {
    return this.request("POST", `/webhooks/${encodeURIComponent(webhookId)}/test`, { keyed: true, ...options });
  }
  trackAccount(body, options) {
    return this.request("POST", `/accounts`, { body, keyed: true, ...options });
  }
  trackAccounts(body, options) {
    return this.request("POST", `/accounts/bulk`, { body, keyed: true, ...options });
  }
  trackVideo(body, options) {
    return this.request("POST", `/videos`, { body, keyed: true, ...options });
  }
  trackVideos(body, options) {
    return this.request("POST", `/videos/bulk`, { body, keyed: true, ...options });
  }
  updateCollection(collectionId, body, options) {
    return this.request("PATCH", `/collections/${encodeURIComponent(collectionId)}`, { body, ...options });
  }
  updateReport(reportId, body, options) {
    return this.request("PATCH", `/reports/${encodeURIComponent(reportId)}`, { body, ...options });
  }
  updateWebhook(webhookId, body, options) {
    return this.request("PATCH", `/webhooks/${encodeURIComponent(webhookId)}`, { body, ...options });
  }
}
