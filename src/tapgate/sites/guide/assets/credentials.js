// Credentials of the API, and the headers with which they authenticate a request.

/** Kinds of credentials, with their fields: name, label, and whether the field is hidden. */
export const CREDENTIALS = {
  "": { label: "No credential", fields: [] },
  login: { label: "Administrator", fields: [["email", "Email", false], ["password", "Password", true]] },
  bearer: { label: "Third party (API key)", fields: [["token", "API key", true]] },
  pos: { label: "Merchant or terminal (signed)", fields: [["keyId", "Key ID", false], ["secret", "Secret", true]] },
  partner: { label: "Partner (signed)", fields: [["keyId", "Key ID", false], ["partnerId", "Partner ID", false], ["secret", "Secret", true]] },
  service: { label: "Internal service (signed)", fields: [["name", "Service name", false], ["secret", "Secret", true]] },
};

async function computeHmac(secret, text) {
  if (!crypto.subtle) throw new Error("The browser signs only over HTTPS or on localhost.");
  const encoder = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const signature = await crypto.subtle.sign("HMAC", key, encoder.encode(text));
  return Array.from(new Uint8Array(signature), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function signWithKey({ keyId = "", secret = "" }, { method, path, body }) {
  const timestamp = new Date().toISOString();
  const signature = await computeHmac(secret, [method, path, timestamp, body].join("\n"));
  return { "X-API-Key-ID": keyId, "X-Timestamp": timestamp, "X-Signature": signature };
}

let login = null; // {email, token, until}

async function logIn({ email = "", password = "" }) {
  if (login?.email === email && login.until > Date.now()) return login.token;
  const response = await fetch("/api/v1/admin/login", { method: "POST", credentials: "omit", body: JSON.stringify({ email, password }) });
  const body = await response.json();
  if (!response.ok) throw new Error(`Login failed: ${body.message ?? body.error}`);
  login = { email, token: body.token, until: Date.now() + (body.expires_in - 30) * 1000 };
  return login.token;
}

const BUILDERS = {
  "": async () => ({}),
  login: async (values) => ({ Authorization: `Bearer ${await logIn(values)}` }),
  bearer: async ({ token = "" }) => ({ Authorization: `Bearer ${token}` }),
  pos: signWithKey,
  partner: async (values, request) => ({ ...(await signWithKey(values, request)), "X-Partner-ID": values.partnerId ?? "" }),
  service: async ({ name = "", secret = "" }, { method, path, query }) => {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signature = await computeHmac(secret, [method, path, query, timestamp].join("|"));
    return { "X-Service-Name": name, "X-Service-Timestamp": timestamp, "X-Service-Signature": signature };
  },
};

/** Returns the headers for a request `{method, path, query, body}`. */
export function buildHeaders(kind, values, request) {
  return BUILDERS[kind](values, request);
}
