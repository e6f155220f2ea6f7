// Verification of events from the gateway, and signatures of funding partners' webhooks.
import { SignatureError } from "./errors.js";
import { hmac, hmacHex, toBytes } from "./hmac.js";
import type { WebhookEvent } from "./schemas.js";

const TOLERANCE_SECONDS = 300;

type HeaderSource = Headers | Record<string, string | string[] | undefined>;

/**
 * Return the event of a webhook request, or throw `SignatureError`.
 *
 * `secret` is the endpoint's secret (`whsec_...`), or several of which one must match, such as the
 * old and the new one during a rotation. `body` is the raw request body. Process each `id` once.
 */
export async function verifyWebhook(
  secret: string | readonly string[],
  headers: HeaderSource,
  body: string | Uint8Array<ArrayBuffer>,
  now = Date.now(),
): Promise<WebhookEvent & { id: string }> {
  const id = readHeader(headers, "webhook-id");
  const timestamp = readHeader(headers, "webhook-timestamp");
  const sent = readHeader(headers, "webhook-signature").split(" ").map((part) => part.replace(/^v1,/, ""));
  if (!/^(0|[1-9]\d{0,14})$/.test(timestamp) || Math.abs(now / 1000 - Number(timestamp)) > TOLERANCE_SECONDS) {
    throw new SignatureError("the timestamp is not within 5 minutes of the current time");
  }
  const secrets = typeof secret === "string" ? [secret] : secret;
  let isValid = false;
  for (const candidate of secrets) {
    const key = fromBase64(candidate.replace(/^whsec_/, ""));
    const expected = await hmac(key, `${id}.${timestamp}.`, body);
    for (const signature of sent) isValid = isEqual(expected, fromBase64(signature)) || isValid;
  }
  if (!isValid) throw new SignatureError("no signature matches");
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  return { ...(JSON.parse(text) as WebhookEvent), id };
}

/** Return the `X-Webhook-Signature` of a funding partner's webhook. */
export function signPartnerWebhook(secret: string, body: string | Uint8Array<ArrayBuffer>): Promise<string> {
  return hmacHex(secret, body);
}

function readHeader(headers: HeaderSource, name: string): string {
  const value = headers instanceof Headers
    ? headers.get(name)
    : Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  if (typeof value !== "string" || value === "") throw new SignatureError(`the ${name} header is missing`);
  return value;
}

/** Decode base64; invalid text becomes an empty array, which equals no signature. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return toBytes("");
  }
}

/** Compare in constant time. */
function isEqual(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  let difference = 0;
  left.forEach((byte, index) => { difference |= byte ^ (right[index] ?? 0); });
  return difference === 0;
}
