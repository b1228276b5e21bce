import type { Fault } from "./index.js";

export interface ClientOptions {
  /** The address of the server, such as https://reeltally.example.com. The default is the environment variable REELTALLY_URL. */
  baseUrl?: string | undefined;
  /** A token of an organisation. The default is the environment variable REELTALLY_TOKEN. */
  token?: string | undefined;
  /**
   * How often a request is repeated after 429, 502, 503, 504 or a failure of the network. The default is 4. If an earlier attempt with the same
   * Idempotency-Key still runs or was interrupted, the request is repeated for up to maxWait seconds, unless maxRetries is 0.
   */
  maxRetries?: number | undefined;
  /** The longest time in seconds that a request waits before it is repeated. The default is 90. */
  maxWait?: number | undefined;
  /** How long the server may send nothing, in seconds. The default is 60. */
  timeout?: number | undefined;
  /** The function that sends requests. The default is the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
}

export interface RequestOptions {
  /** Aborts the request. It also ends the wait before a repetition. */
  signal?: AbortSignal | undefined;
  /** The Idempotency-Key of an operation that takes one. By default, each call has a new key, which its repetitions keep. */
  idempotencyKey?: string | undefined;
  /** The ETag that the changed item must have, for an operation that takes If-Match. If the item has another ETag, the error has the status 412. */
  ifMatch?: string | undefined;
  /** More headers, such as X-Request-Id. */
  headers?: Record<string, string> | undefined;
}

/** The error of a response that is not successful or has an unexpected type, or of a request that got no complete response. Compare `code`, not the message. */
export class ReelTallyError extends Error {
  /**
   * The status of HTTP. It is 0 if there was no complete response; `cause` is then the error of the network. It is 2xx if the response has an
   * unexpected type, for example because a proxy answered with a login page. It is a status such as 301 if the server redirects; in a browser, it is then 0.
   */
  readonly status: number;
  /** The header Content-Type of the response, or "". */
  readonly contentType: string;
  /** The first characters of the body of the response, at most 200. */
  readonly body: string;
  /** The code of the error, such as rate_limited. It is "" if a proxy answered, or if there was no complete response. */
  readonly code: string;
  readonly title: string;
  /** The id of the request in the log of the server. */
  readonly requestId: string;
  /** The faults of a request with status 400. */
  readonly errors: Fault[];
  /** The seconds after which the request can be repeated. */
  readonly retryAfter: number | undefined;
}

/** CSV with commas. */
export const CSV: "text/csv";
/** CSV for spreadsheets with a decimal comma. */
export const CSV_SEMICOLON: "text/csv; delimiter=semicolon";
/** One JSON object a line, only for /history/export. */
export const NDJSON: "application/x-ndjson";
/** A workbook of spreadsheets. */
export const XLSX: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
/** A format in which {@link Client.download} reads lists and histories. */
export type Format = typeof CSV | typeof CSV_SEMICOLON | typeof NDJSON | typeof XLSX;

/** The options of {@link Client.request}. */
export interface RequestDetails extends RequestOptions {
  query?: Record<string, unknown> | undefined;
  body?: unknown;
  /** Whether the operation takes an Idempotency-Key. */
  keyed?: boolean | undefined;
  /** The header Accept. The default is application/json. */
  accept?: string | undefined;
}

export class Client {
  constructor(options?: ClientOptions);
  readonly baseUrl: string;
  /**
   * Reads a list or history in another format than JSON, and yields its bytes as they arrive, so it needs little memory. The path is that of the
   * operation, such as /videos. The format is CSV if it is not given. In CSV and NDJSON, all pages are read, and the line with the column names
   * comes only once. In XLSX, one page is read. The return value of the generator has the headers of the last page: after the path
   * /history/export, Exported-Until is the value of updated_since for the next download. The request is repeated until an answer begins, but not
   * after that.
   */
  download(path: string, query?: Record<string, unknown>, format?: Format, options?: RequestOptions): AsyncGenerator<Uint8Array, Headers, undefined>;
  /** Sends a request and returns the decoded JSON. */
  request<T = unknown>(method: string, path: string, options?: RequestDetails): Promise<T>;
  /** Sends a request and returns the decoded JSON and the ETag of the response. A response without an ETag is a ReelTallyError. */
  requestWithETag<T = unknown>(method: string, path: string, options?: RequestDetails): Promise<[T, string]>;
}
