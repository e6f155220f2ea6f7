// Signs requests as docs/signing.md describes.
declare const process: { env: Record<string, string | undefined> };

export function environment(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
}

export async function sign(request: Request): Promise<Request> {
  const timestamp = new Date().toISOString();
  const body = await request.clone().text();
  const text = [request.method, new URL(request.url).pathname, timestamp, body].join("\n");
  const encoder = new TextEncoder();
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const secret = encoder.encode(environment("KEY_SECRET"));
  const key = await crypto.subtle.importKey("raw", secret, algorithm, false, ["sign"]);
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, encoder.encode(text)));
  request.headers.set("X-API-Key-ID", environment("KEY_ID"));
  request.headers.set("X-Timestamp", timestamp);
  request.headers.set(
    "X-Signature",
    Array.from(signature, (byte) => byte.toString(16).padStart(2, "0")).join(""),
  );
  return request;
}
