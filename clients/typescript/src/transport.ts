// Sends requests: credentials, idempotency keys, retries and errors.
import type { Credential, SignableRequest } from "./credentials.js";
import { ApiError, ConnectionError, OutcomeUnknownError } from "./errors.js";
import { List } from "./pagination.js";

export interface TransportOptions {
  /** Maximum attempts of a request, including the first. Default: 4. */
  maxAttempts?: number;
  /** Timeout of each attempt in milliseconds. Default: 15,000. */
  timeout?: number;
  /** Replacement of the global `fetch`, for example with a proxy. */
  fetch?: typeof globalThis.fetch;
}

export interface RequestOptions {
  /** Idempotency key of an operation that moves money. Default: a random UUID. */
  requestId?: string;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

interface Details {
  body?: unknown;
  query?: Record<string, unknown>;
  movesMoney?: boolean;
  isPublic?: boolean;
}

interface Prepared extends SignableRequest {
  url: string;
  headers: Record<string, string>;
  isRepeatable: boolean;
  isPublic: boolean;
}

const FIRST_DELAY_MS = 200;
const MAX_DELAY_MS = 5_000;
/** Statuses after which a request that is safe to repeat is sent again. */
const RETRY_STATUSES = new Set([429, 500, 502, 503, 504]);

export class Transport {
  readonly #baseUrl: string;
  readonly #credential: Credential | undefined;
  readonly #options: TransportOptions;

  constructor(baseUrl: string, credential?: Credential, options: TransportOptions = {}) {
    this.#baseUrl = baseUrl.replace(/\/+$/, "");
    this.#credential = credential;
    this.#options = options;
  }

  protected async send<T>(
    method: string, path: string, details: Details, options: RequestOptions = {},
  ): Promise<T> {
    const request = this.#prepare(method, path, details, options);
    const attempts = Math.max(1, this.#options.maxAttempts ?? 4);
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt >= attempts;
      let response: Response;
      try {
        response = await this.#fetch(request, options.signal);
      } catch (error) {
        if (options.signal?.aborted || error instanceof ApiError) throw error;
        if (isLast || !request.isRepeatable) {
          const kind = request.isRepeatable && method === "GET" ? ConnectionError : OutcomeUnknownError;
          throw new kind(`${method} ${path}: ${String(error)}`, request.requestId, { cause: error });
        }
        await pause(attempt, null);
        continue;
      }
      if (response.ok) return await decode<T>(response);
      const failure = await ApiError.from(response, request.requestId);
      const isRejected = response.status === 429 || (response.status === 503 && failure.code !== "");
      const mayRetry = isRejected || (request.isRepeatable && RETRY_STATUSES.has(response.status));
      if (isLast || !mayRetry) throw failure;
      await pause(attempt, failure.retryAfter);
    }
  }

  protected list<P extends { data: T[]; has_more: boolean; next_cursor: string | null }, T>(
    method: string, path: string, details: Details, options?: RequestOptions,
  ): List<P, T> {
    return new List((cursor) => {
      const query = cursor === undefined ? details.query : { ...details.query, cursor };
      return this.send<P>(method, path, { ...details, query }, options);
    });
  }

  #prepare(method: string, path: string, details: Details, options: RequestOptions): Prepared {
    const query = encodeQuery(details.query ?? {});
    const headers: Record<string, string> = { ...options.headers };
    let { body } = details;
    let requestId: string | undefined;
    const isFile = typeof body === "string" || body instanceof Uint8Array;
    if (details.movesMoney && isFile) {
      requestId = options.requestId ?? globalThis.crypto.randomUUID();
      headers["Idempotency-Key"] = requestId;
    } else if (details.movesMoney) {
      const fields = body as { request_id?: string | null };
      requestId = fields.request_id ?? options.requestId ?? globalThis.crypto.randomUUID();
      body = { ...fields, request_id: requestId };
    }
    if (body !== undefined) {
      headers["Content-Type"] ??= isFile ? "text/csv" : "application/json";
      if (!isFile) body = JSON.stringify(body);
    }
    const url = `${this.#baseUrl}${path}${query && `?${query}`}`;
    return {
      method, url, headers, query, requestId,
      path: new URL(url).pathname,
      body: body as SignableRequest["body"],
      isRepeatable: method === "GET" || Boolean(details.movesMoney),
      isPublic: Boolean(details.isPublic),
    };
  }

  /** Sign and send one attempt. A signature contains the time, so each attempt has its own. */
  async #fetch(request: Prepared, signal: AbortSignal | undefined): Promise<Response> {
    const timeout = AbortSignal.timeout(this.#options.timeout ?? 15_000);
    const send = this.#options.fetch ?? globalThis.fetch;
    const signed = request.isPublic || !this.#credential
      ? {} : await this.#credential.authorize(request, this.#baseUrl, send);
    return send(request.url, {
      method: request.method,
      headers: { ...request.headers, ...signed },
      body: request.body,
      redirect: "error",
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
  }
}

function encodeQuery(query: Record<string, unknown>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null);
  return given.map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`).join("&");
}

async function decode<T>(response: Response): Promise<T> {
  if (response.status === 204) return undefined as T;
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return (isJson ? await response.json() : new Uint8Array(await response.arrayBuffer())) as T;
}

async function pause(attempt: number, retryAfter: number | null): Promise<void> {
  const backoff = Math.min(FIRST_DELAY_MS * 2 ** (attempt - 1), MAX_DELAY_MS) * (0.5 + Math.random() / 2);
  await new Promise((resolve) => setTimeout(resolve, Math.max(backoff, (retryAfter ?? 0) * 1000)));
}
