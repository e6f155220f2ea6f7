// Errors that requests throw.
import type { ErrorCode } from "./schemas.js";

/** Codes with the status 403 or 409 that decline a transaction. */
const DECLINE_CODES: ReadonlySet<ErrorCode | ""> = new Set<ErrorCode>([
  "SUBSCRIBER_BLOCKED", "CARD_NOT_ACTIVE", "AGENT_NOT_ACTIVE", "COMPLIANCE_REJECTED",
  "TRANSACTION_LIMIT_EXCEEDED", "CARD_LIMIT_EXCEEDED", "DAILY_LIMIT_EXCEEDED",
  "MONTHLY_LIMIT_EXCEEDED", "MAX_BALANCE_EXCEEDED", "TRANSFER_CANCELLED",
]);

/** Base class of all errors. `requestId` is the idempotency key of an operation that moves money. */
export class TapgateError extends Error {
  readonly requestId: string | undefined;

  constructor(message: string, requestId?: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.requestId = requestId;
  }
}

/** The gateway was not reached, and the request only reads. */
export class ConnectionError extends TapgateError {}

/** No response arrived: the request may have been executed. Repeat it with the same `requestId`. */
export class OutcomeUnknownError extends TapgateError {}

/** A webhook failed verification. */
export class SignatureError extends TapgateError {}

/** Error response of the gateway. `code` is stable: branch on it, not on the text. */
export class ApiError extends TapgateError {
  readonly status: number;
  /** Error code, or an empty string if the response did not come from the gateway. */
  readonly code: ErrorCode | "";
  readonly details: Record<string, unknown>;
  /** Tracing ID of the request in the gateway's logs. */
  readonly traceId: string | null;
  /** Seconds to wait before the next attempt, or null. */
  readonly retryAfter: number | null;
  /** Whether this is the original response to a repeated request. */
  readonly replayed: boolean;

  constructor(response: Response, body: Partial<ErrorFields>, requestId: string | undefined) {
    super(`${response.status} ${body.code ?? response.statusText}: ${body.message ?? body.error ?? ""}`, requestId);
    this.status = response.status;
    this.code = body.code ?? "";
    this.details = body.details ?? {};
    this.traceId = response.headers.get("x-request-id");
    const seconds = Number(response.headers.get("retry-after") ?? NaN);
    this.retryAfter = Number.isFinite(seconds) ? seconds : null;
    this.replayed = response.headers.get("idempotent-replayed") === "true";
  }

  /** Whether the gateway declined the transaction and recorded it as failed. */
  get isDecline(): boolean {
    return this.status === 402 || DECLINE_CODES.has(this.code);
  }

  static async from(response: Response, requestId: string | undefined): Promise<ApiError> {
    let body: Partial<ErrorFields> = {};
    try {
      body = (await response.json()) as ErrorFields;
    } catch { /* a proxy's page */ }
    return new ApiError(response, body ?? {}, requestId);
  }
}

interface ErrorFields {
  error: string;
  code: ErrorCode;
  message?: string;
  details?: Record<string, unknown>;
}
