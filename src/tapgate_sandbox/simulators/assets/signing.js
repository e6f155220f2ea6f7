// Signs requests of a terminal with WebCrypto alone, so it can serve as an example.
// docs/signing.md has test vectors for other languages.

/** The signed string: method, path as requested, timestamp as in its header, body as sent. */
export function buildSignedString(method, path, timestamp, body) {
  return `${method}\n${path}\n${timestamp}\n${body}`;
}

/** HMAC-SHA-256 in lower-case hex. The key is the text of the secret as shown, not decoded. */
export async function computeHmac(secret, text) {
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", key, encoder.encode(text));
  return Array.from(new Uint8Array(signature), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** A signed POST request. The body is encoded once, so the signed bytes are the sent bytes. */
export async function buildSignedPost(key, path, value, now = new Date()) {
  const body = JSON.stringify(value);
  const timestamp = now.toISOString();
  const signed = buildSignedString("POST", path, timestamp, body);
  const headers = {
    "Content-Type": "application/json",
    "X-API-Key-ID": key.id,
    "X-Timestamp": timestamp,
    "X-Signature": await computeHmac(key.secret, signed),
  };
  return { method: "POST", path, headers, body, signed };
}

/** The same request as a one-line shell command. */
export function buildCurlCommand(origin, request) {
  const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(request.headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`);
  return ["curl -s", quote(origin + request.path), ...headers, "-d", quote(request.body)].join(" ");
}
