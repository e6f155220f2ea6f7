// Client of the Tapgate API.
export { Operations as TapgateClient } from "./operations.js";
export { bearer, login, partnerKey, posKey, serviceSecret, signRequest } from "./credentials.js";
export type { Credential, SignableRequest } from "./credentials.js";
export { ApiError, ConnectionError, OutcomeUnknownError, SignatureError, TapgateError } from "./errors.js";
export { List } from "./pagination.js";
export type { RequestOptions, TransportOptions } from "./transport.js";
export { signPartnerWebhook, verifyWebhook } from "./webhooks.js";
export type * from "./schemas.js";
