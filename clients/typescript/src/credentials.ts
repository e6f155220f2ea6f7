// Credentials of callers, and the signatures of their requests. See docs/signing.md.
import { ApiError } from "./errors.js";
import { hmacHex } from "./hmac.js";

export interface SignableRequest {
  method: string;
  /** Path as sent: percent-encoded, without the query. */
  path: string;
  /** Query as sent, without the question mark. */
  query: string;
  body?: string | Uint8Array<ArrayBuffer>;
  requestId?: string;
}

export interface Credential {
  /** Return the headers that authenticate a request. */
  authorize(
    request: SignableRequest, baseUrl: string, fetch: typeof globalThis.fetch,
  ): Promise<Record<string, string>>;
}

/** API key of a third party, or an access token that you store yourself. */
export function bearer(token: string): Credential {
  return { authorize: async () => ({ Authorization: `Bearer ${token}` }) };
}

/** Signing key of a merchant (processor) or a terminal. */
export function posKey(apiKeyId: string, secret: string): Credential {
  return { authorize: (request) => signRequest(request, apiKeyId, secret) };
}

/** Signing key of a funding partner. */
export function partnerKey(apiKeyId: string, partnerId: string, secret: string): Credential {
  return {
    authorize: async (request) => ({
      ...(await signRequest(request, apiKeyId, secret)), "X-Partner-ID": partnerId,
    }),
  };
}

/** Secret of an internal service. */
export function serviceSecret(name: string, secret: string): Credential {
  return {
    authorize: async ({ method, path, query }) => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      return {
        "X-Service-Name": name,
        "X-Service-Timestamp": timestamp,
        "X-Service-Signature": await hmacHex(secret, `${method}|${path}|${query}|${timestamp}`),
      };
    },
  };
}

/** Email and password of an administrator. Logs in on first use and before the token expires. */
export function login(email: string, password: string): Credential {
  let token: Promise<string> | undefined;
  let expiresAt = 0;
  const logIn = async (baseUrl: string, send: typeof globalThis.fetch): Promise<string> => {
    const response = await send(`${baseUrl}/api/v1/admin/login`, {
      method: "POST", body: JSON.stringify({ email, password }),
    });
    if (!response.ok) throw await ApiError.from(response, undefined);
    const tokens = (await response.json()) as { token: string; expires_in: number };
    expiresAt = Date.now() + (tokens.expires_in - 60) * 1000;
    return tokens.token;
  };
  return {
    authorize: async (_request, baseUrl, send) => {
      if (token === undefined || Date.now() >= expiresAt) {
        expiresAt = Infinity; // concurrent requests share one login
        token = logIn(baseUrl, send);
        token.catch(() => { token = undefined; });
      }
      return { Authorization: `Bearer ${await token}` };
    },
  };
}

/** Return the headers of a request signed with a signing key. */
export async function signRequest(
  request: SignableRequest, apiKeyId: string, secret: string, now = new Date(),
): Promise<Record<string, string>> {
  const timestamp = now.toISOString();
  const head = `${request.method}\n${request.path}\n${timestamp}\n`;
  return {
    "X-API-Key-ID": apiKeyId,
    "X-Timestamp": timestamp,
    "X-Signature": await hmacHex(secret, head, request.body ?? ""),
  };
}
