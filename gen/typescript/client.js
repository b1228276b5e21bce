// This file has the code that all operations share: authentication, retries, errors, pages and downloads.

const environment = globalThis.process?.env ?? {};
const retried = new Set([429, 502, 503, 504]);
const maxTimer = 2147483; // longest time of a timer of JavaScript in seconds; a longer one ends at once
const maxErrorBody = 200; // maximum length of the member body of an error

/** The error of a response that is not successful or has an unexpected type, or of a request that got no complete response. */
export class ReelTallyError extends Error {
  constructor(status, problem, retryAfter, cause, { contentType = "", body = "" } = {}) {
    super(problem.detail ?? problem.title ?? `the server answered with status ${status}`, cause === undefined ? undefined : { cause });
    this.name = "ReelTallyError";
    this.status = status;
    this.contentType = contentType;
    this.body = body;
    this.code = problem.code ?? "";
    this.title = problem.title ?? "";
    this.requestId = problem.request_id ?? "";
    this.errors = problem.errors ?? [];
    this.retryAfter = retryAfter;
  }
}

// These are the formats in which the method download reads lists and histories.
export const CSV = "text/csv";
export const CSV_SEMICOLON = "text/csv; delimiter=semicolon";
export const NDJSON = "application/x-ndjson";
export const XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";

export class Client {
  constructor({ baseUrl = environment.REELTALLY_URL, token = environment.REELTALLY_TOKEN, maxRetries = 4, maxWait = 90, timeout = 60, fetch = globalThis.fetch } = {}) {
    [baseUrl, token] = [baseUrl?.trim(), token?.trim()]; // a value from a file can end with a line break
    if (!baseUrl) throw new TypeError("baseUrl is missing or empty: pass it, or set REELTALLY_URL");
    if (!isWebAddress(baseUrl)) throw new TypeError(`baseUrl is ${JSON.stringify(baseUrl)}: it must begin with https:// or http://, such as https://reeltally.example.com`);
    if (!token) throw new TypeError("token is missing or empty: pass it, or set REELTALLY_TOKEN");
    Object.assign(this, { baseUrl: baseUrl.replace(/\/+$/, ""), maxRetries, maxWait, timeout });
    // fetch must not follow redirects: it would send a GET request instead of a POST request, without the body, and the response to the GET request would
    // look like a success.
    Object.defineProperty(this, "send", { value: (url, init) => fetch(url, { ...init, redirect: "manual", headers: { Authorization: `Bearer ${token}`, ...init.headers } }) });
    Object.defineProperty(this, "hideToken", { value: text => text.replaceAll(token, "…") });
  }

  request(method, path, options) {
    return this.#repeat(method, path, options, async (response, limit) => {
      const content = await contentOf(response, limit);
      limit.end();
      return content;
    });
  }

  requestWithETag(method, path, options) {
    return this.#repeat(method, path, options, async (response, limit) => {
      const content = await contentOf(response, limit);
      limit.end();
      const etag = response.headers.get("ETag");
      if (!etag) throw responseError(response, "", { detail: `the server answered with status ${response.status} and no ETag: does a proxy remove it?` });
      return [content, etag];
    });
  }

  async *download(path, query, format = CSV, options) {
    const isCSV = format.startsWith(CSV);
    let search = queryText(query);
    for (let columns; ;) {
      const { response, limit } = await this.#repeat("GET", path + search, { ...options, accept: format }, (response, limit) => ({ response, limit }));
      let first = isCSV; // whether the next part begins with the line of the column names
      for await (let part of partsOf(response, limit)) {
        if (first) {
          const end = part.indexOf(10) + 1; // the line ends with a line feed
          const names = new TextDecoder().decode(part.subarray(0, end));
          if (columns !== undefined && columns !== names) throw new Error("the columns changed during the download; start it again");
          if (columns !== undefined) part = part.subarray(end);
          columns = names;
          first = false;
        }
        if (part.length > 0) yield part;
      }
      const next = /<([^>]*)>;\s*rel="?next"?/.exec(response.headers.get("Link") ?? "");
      if (next === null || !isCSV && format !== NDJSON) return response.headers;
      search = /\?[^#]*/.exec(next[1])?.[0] ?? ""; // copy only the query: another host must not get the token, whatever host the header Link names
    }
  }

  // repeat sends a request, passes its response to the function read, and returns the result of read. If the request or the function read
  // fails and repeating may help, repeat does both again. The function read must call limit.end() after it has read the response.
  async #repeat(method, path, { query, body, keyed = false, idempotencyKey, ifMatch, headers = {}, accept = "application/json", signal } = {}, read) {
    const all = { Accept: accept, ...headers };
    if (keyed) all["Idempotency-Key"] = idempotencyKey ?? newKey();
    if (ifMatch !== undefined) all["If-Match"] = ifMatch;
    if (body !== undefined) all["Content-Type"] = "application/json";
    const url = this.baseUrl + path + queryText(query);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const repeatable = keyed || method !== "POST"; // a POST without a key may have taken effect although its response was lost
    let keyWait = 0; // sum of the waits in seconds because an earlier attempt with this Idempotency-Key still ran or was interrupted
    let keyRetries = 0; // number of these waits
    for (let attempt = 0; ; attempt++) {
      const limit = new Limit(this.timeout, signal);
      let failure, redirect;
      try {
        const response = await this.send(url, { method, headers: all, body: text, signal: limit.signal });
        if (response.ok ? isExpected(response, method, new Headers(all).get("Accept")) : isResult(response)) return await read(response, limit);
        redirect = this.#redirectMessage(response, url);
        failure = await errorOf(response, limit, redirect);
      } catch (error) {
        failure = error instanceof ReelTallyError ? error : noAnswer(error);
      }
      limit.end();
      if (signal?.aborted) throw signal.reason;
      const again = redirect === undefined && (failure.status === 429 || repeatable && (failure.status === 0 || retried.has(failure.status)));
      const wait = failure.retryAfter ?? Math.min(8, 0.5 * 2 ** attempt) * (0.5 + Math.random() / 2);
      if (failure.code === "idempotency_key_in_use") {
        keyWait += wait;
        keyRetries++;
        if (this.maxRetries <= 0 || keyWait > this.maxWait) throw failure;
      } else if (!again || attempt - keyRetries >= this.maxRetries || wait > this.maxWait) throw failure;
      await pause(wait, signal);
    }
  }

  // redirectMessage returns a message that names the address to which a response redirects, or undefined if the response is no redirect. The message never
  // contains the token. The parameter url is the address of the request.
  #redirectMessage(response, url) {
    const absolute = address => new URL(address, globalThis.location?.href);
    if (response.type === "opaqueredirect") { // a browser hides the status and the header Location from programs
      return `the server redirects to an address that the browser does not reveal: open ${this.hideToken(shownAddress(absolute(this.baseUrl)))} in a browser, and use the address to which it leads`;
    }
    const location = response.headers.get("Location");
    if (response.status < 300 || response.status >= 400 || response.status === 304 || location === null) return undefined;
    let target;
    try {
      target = shownAddress(new URL(location, absolute(url)));
    } catch {
      return undefined; // the Location is not an address
    }
    const requested = shownAddress(absolute(url));
    const operation = requested.slice(shownAddress(absolute(this.baseUrl)).replace(/\/$/, "").length); // the path, such as /videos, is not a part of the address of the server
    const isMoved = target.endsWith(operation) && target !== requested;
    if (isMoved) target = target.slice(0, -operation.length);
    return `the server redirects to ${this.hideToken(target)}${isMoved ? "; use this as the address" : ": is a proxy or a login page in between?"}`;
  }

  async *pages(params = {}, read) {
    const { page: _, cursor: first, ...rest } = params;
    let cursor = first;
    do {
      const found = await read(cursor === undefined ? rest : { ...rest, cursor });
      yield* found.data;
      cursor = (found.pagination ?? found).next_cursor ?? undefined;
    } while (cursor !== undefined);
  }
}

// isWebAddress returns whether requests can be sent to the address. In a browser, the address can be a path on the server of the page.
function isWebAddress(address) {
  return /^https?:\/\/[^/]/i.test(address) || (globalThis.location !== undefined && address.startsWith("/"));
}

// shownAddress returns an address for messages. It leaves out the user, the query and the fragment, because they can contain secrets.
function shownAddress(url) {
  return `${url.protocol}//${url.host}${url.pathname}`;
}

// Limit has a signal that aborts when the server has sent nothing for the given number of seconds, or when the signal of the caller aborts.
// Code that receives data must call restart().
class Limit {
  #controller = new AbortController();
  #abort = () => this.#controller.abort(this.#caller.reason);
  #caller;
  #timer;

  constructor(seconds, caller) {
    this.seconds = seconds;
    this.#caller = caller;
    caller?.addEventListener("abort", this.#abort);
    if (caller?.aborted) this.#abort();
    this.restart();
  }

  get signal() {
    return this.#controller.signal;
  }

  // callerReason is the reason why the caller has aborted, or undefined.
  get callerReason() {
    return this.#caller?.aborted ? this.#caller.reason : undefined;
  }

  restart() {
    this.pause();
    if (this.seconds > maxTimer) return;
    this.#timer = setTimeout(() => this.#controller.abort(new DOMException(`the server sent nothing for ${this.seconds} seconds`, "TimeoutError")), 1000 * this.seconds);
  }

  pause() {
    clearTimeout(this.#timer);
  }

  end() {
    this.pause();
    this.#caller?.removeEventListener("abort", this.#abort);
  }
}

// partSize is the smallest size of a part of a download in bytes, except the last part. With smaller parts, a download is slow if the caller is
// slower than the network. For each part, fetch in Node 20 copies all bytes that have arrived but were not read yet.
const partSize = 256 * 1024;

// partsOf yields a response in parts. The time limit holds for each read from the network. It does not include the time in which the caller uses
// a part.
async function* partsOf(response, limit) {
  const reader = response.body.getReader();
  try {
    for (let chunks = [], size = 0; ;) {
      limit.restart();
      const { done, value } = await reader.read().catch(error => { throw limit.callerReason ?? noAnswer(error); });
      limit.pause();
      if (!done) {
        chunks.push(value);
        size += value.length;
      }
      if (size >= partSize || done && size > 0) {
        yield joined(chunks, size);
        chunks = [];
        size = 0;
      }
      if (done) return;
    }
  } finally {
    limit.end();
    await reader.cancel().catch(() => {}); // the response has already failed, or the caller needs no more parts
  }
}

// noAnswer returns the error of a request that got no complete response.
function noAnswer(error) {
  return new ReelTallyError(0, { detail: `the server sent no complete response: ${error?.cause?.message || error?.message || error}` }, undefined, error);
}

// joined returns one array with the bytes of all chunks. The parameter size is the sum of their lengths.
function joined(chunks, size) {
  const all = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

// queryText returns parameters as the query of a URL. The elements of a list are joined by commas.
function queryText(query = {}) {
  const parts = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => name + "=" + (Array.isArray(value) ? value : [value]).map(encodeURIComponent).join(","));
  return parts.length > 0 ? "?" + parts.join("&") : "";
}

// isResult returns true for the response 422 to a bulk request, which is a result and not an error: it says why each entry failed. Other responses
// 422 have the type application/problem+json.
const isResult = response => response.status === 422 && (response.headers.get("Content-Type") ?? "").startsWith("application/json");

// isExpected returns true if a successful response has a type that the header Accept of the request names. Otherwise, the response may be the page
// of a proxy. A response without content has no type.
function isExpected(response, method, accept) {
  if (isEmpty(response)) return method !== "GET";
  const type = mediaType(response.headers.get("Content-Type") ?? "");
  return accept.split(",").map(mediaType).some(accepted => accepted.includes("*") || accepted === type);
}

// newKey returns a random Idempotency-Key. Browsers have crypto.randomUUID only on pages that were sent by https.
const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), byte => byte.toString(16).padStart(2, "0")).join("");

// isEmpty returns true for a successful response without content, such as the response to a refresh.
const isEmpty = response => response.status === 204 || response.status === 202 && !response.headers.get("Content-Type");

// mediaType returns a type without its parameters, such as charset.
const mediaType = text => text.split(";")[0].trim().toLowerCase();

async function contentOf(response, limit) {
  const text = await textOf(response, limit);
  if (isEmpty(response)) return undefined;
  if (mediaType(response.headers.get("Content-Type") ?? "") !== "application/json") return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw responseError(response, text, { detail: `the server answered with status ${response.status} and JSON that cannot be read: ${error.message}` }, error);
  }
}

// errorOf returns the error for a response that is not successful or has an unexpected type.
async function errorOf(response, limit, redirectMessage) {
  const text = await textOf(response, limit).catch(() => ""); // without the rest of an incomplete response, the status still says what failed
  if (response.ok) {
    const type = response.headers.get("Content-Type") ?? "";
    return responseError(response, text, { detail: `the server answered with status ${response.status} and the unexpected Content-Type "${type}": is a proxy or a login page in between?` });
  }
  if (redirectMessage !== undefined) return responseError(response, text, { detail: redirectMessage });
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    // a proxy answered instead of the server, or the response is incomplete
  }
  return responseError(response, text, problem !== null && typeof problem === "object" ? problem : {});
}

function responseError(response, text, problem, cause) {
  return new ReelTallyError(response.status, problem, retryAfter(response.headers), cause, { contentType: response.headers.get("Content-Type") ?? "", body: text.slice(0, maxErrorBody) });
}

// retryAfter returns the seconds that the header Retry-After says to wait. The header has a number of seconds or a time. A time is compared with the header
// Date of the response, because the clock of this machine can be wrong. The result is undefined if Retry-After is absent, invalid or zero, or if its
// time is not in the future.
function retryAfter(headers) {
  const text = headers.get("Retry-After") ?? "";
  if (!text.endsWith("GMT")) return Number(text) || undefined;
  const seconds = (Date.parse(text) - (Date.parse(headers.get("Date") ?? "") || Date.now())) / 1000;
  return seconds > 0 ? seconds : undefined;
}

// textOf returns the body of a response as text.
async function textOf(response, limit) {
  if (response.body?.getReader === undefined) return response.text(); // the body is empty, or the function fetch of the caller has no streams
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of partsOf(response, limit)) text += decoder.decode(part, { stream: true });
  return text + decoder.decode();
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const abort = () => { clearTimeout(timer); reject(signal.reason); };
    const timer = setTimeout(() => { signal?.removeEventListener("abort", abort); resolve(); }, 1000 * seconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
