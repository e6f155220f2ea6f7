// How a terminal signs a request: nothing here but the browser's own cryptography, so it can be
// taken as an example. docs/signing.md explains it with fixed examples for other languages.

/** What is signed: the method, the path as called, the time as in its header, the body as sent. */
export function signedString(method, path, timestamp, body) {
  return `${method}\n${path}\n${timestamp}\n${body}`;
}

/** HMAC-SHA-256 in lower-case hex. The key is the secret's text as it was shown, not decoded. */
export async function hmac(secret, text) {
  const bytes = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), algorithm, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", key, bytes.encode(text));
  return Array.from(new Uint8Array(signature), (one) => one.toString(16).padStart(2, "0")).join("");
}

/** A POST with its three headers. Sign the very text that is sent: it is made once, here. */
export async function signedPost(key, path, value, now = new Date()) {
  const body = JSON.stringify(value);
  const timestamp = now.toISOString();
  const signed = signedString("POST", path, timestamp, body);
  const headers = {
    "Content-Type": "application/json",
    "X-API-Key-ID": key.id,
    "X-Timestamp": timestamp,
    "X-Signature": await hmac(key.secret, signed),
  };
  return { method: "POST", path, headers, body, signed };
}

/** The same request as one line for a shell. */
export function curl(origin, request) {
  const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
  const headers = Object.entries(request.headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  return ["curl -s", quoted(origin + request.path), ...headers, "-d", quoted(request.body)].join(" ");
}
