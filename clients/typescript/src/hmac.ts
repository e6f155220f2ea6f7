// HMAC-SHA-256 with WebCrypto, which Node, Deno, Bun and browsers have.

const encoder = new TextEncoder();

export async function hmac(
  key: string | Uint8Array<ArrayBuffer>, ...parts: (string | Uint8Array<ArrayBuffer>)[]
): Promise<Uint8Array<ArrayBuffer>> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await globalThis.crypto.subtle.importKey("raw", toBytes(key), algorithm, false, ["sign"]);
  const message = await new Blob(parts).arrayBuffer();
  return new Uint8Array(await globalThis.crypto.subtle.sign("HMAC", imported, message));
}

export async function hmacHex(
  key: string, ...parts: (string | Uint8Array<ArrayBuffer>)[]
): Promise<string> {
  return Array.from(await hmac(key, ...parts), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function toBytes(text: string | Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  return typeof text === "string" ? encoder.encode(text) : text;
}
