// What the operations have in common: authentication, retries, errors and pages.

const environment = globalThis.process?.env ?? {};
const retried = new Set([429, 502, 503, 504]);

/** The error of a response that is not successful. */
export class ReelTallyError extends Error {
  constructor(status, problem, retryAfter) {
    super(problem.detail ?? problem.title ?? `the server answered with status ${status}`);
    this.name = "ReelTallyError";
    this.status = status;
    this.code = problem.code ?? "";
    this.title = problem.title ?? "";
    this.requestId = problem.request_id ?? "";
    this.errors = problem.errors ?? [];
    this.retryAfter = retryAfter;
  }
}

export class Client {
  constructor({ baseUrl = environment.REELTALLY_URL, token = environment.REELTALLY_TOKEN, maxRetries = 4, maxWait = 90, timeout = 60, fetch = globalThis.fetch } = {}) {
    if (!baseUrl) throw new TypeError("baseUrl is missing: pass it, or set REELTALLY_URL");
    if (!token) throw new TypeError("token is missing: pass it, or set REELTALLY_TOKEN");
    Object.assign(this, { baseUrl: baseUrl.replace(/\/+$/, ""), maxRetries, maxWait, timeout });
    Object.defineProperty(this, "send", { value: (url, init) => fetch(url, { ...init, headers: { Authorization: `Bearer ${token}`, ...init.headers } }) });
  }

  async request(method, path, { query, body, keyed = false, idempotencyKey, headers = {}, accept = "application/json", signal } = {}) {
    const all = { Accept: accept, ...headers };
    if (keyed) all["Idempotency-Key"] = idempotencyKey ?? crypto.randomUUID();
    if (body !== undefined) all["Content-Type"] = "application/json";
    const url = this.baseUrl + path + queryText(query);
    const text = body === undefined ? undefined : JSON.stringify(body);
    const repeatable = keyed || method !== "POST"; // a POST without a key may have taken effect although its answer was lost
    for (let attempt = 0; ; attempt++) {
      const limits = [AbortSignal.timeout(1000 * this.timeout), ...(signal ? [signal] : [])];
      const ended = new AbortController();
      for (const limit of limits) limit.addEventListener("abort", () => ended.abort(limit.reason), { once: true });
      if (signal?.aborted) ended.abort(signal.reason);
      let failure;
      try {
        const response = await this.send(url, { method, headers: all, body: text, signal: ended.signal });
        if (response.ok || isResult(response)) return await contentOf(response);
        const retryAfter = Number(response.headers.get("Retry-After")) || undefined;
        failure = new ReelTallyError(response.status, await problemOf(response), retryAfter);
      } catch (error) {
        if (signal?.aborted) throw signal.reason;
        failure = error;
      }
      const refused = failure instanceof ReelTallyError;
      const again = refused ? failure.status === 429 || failure.code === "idempotency_key_in_use" || repeatable && retried.has(failure.status) : repeatable;
      const wait = failure.retryAfter ?? Math.min(8, 0.5 * 2 ** attempt) * (0.5 + Math.random() / 2);
      if (!again || attempt >= this.maxRetries || wait > this.maxWait) throw failure;
      await pause(wait, signal);
    }
  }

  text(path, query, accept = "text/csv", options) {
    return this.request("GET", path, { query, accept, ...options });
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

// queryText returns parameters as the query of a URL. The elements of a list are joined by commas.
function queryText(query = {}) {
  const parts = Object.entries(query).filter(([, value]) => value !== undefined && value !== null)
    .map(([name, value]) => name + "=" + (Array.isArray(value) ? value : [value]).map(encodeURIComponent).join(","));
  return parts.length > 0 ? "?" + parts.join("&") : "";
}

// isResult returns true for the answer 422 to a bulk request, which is a result and not an error: it says for each entry why it failed.
// Other answers 422 have the type application/problem+json.
const isResult = response => response.status === 422 && (response.headers.get("Content-Type") ?? "").startsWith("application/json");

async function contentOf(response) {
  if (response.status === 204) return undefined;
  return (response.headers.get("Content-Type") ?? "").startsWith("application/json") ? response.json() : response.text();
}

async function problemOf(response) {
  try {
    return await response.json();
  } catch {
    return {}; // a proxy answered instead of the server
  }
}

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}
