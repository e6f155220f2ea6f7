// Authenticates the requests that the page sends. Credentials stay in the memory of this page.
"use strict";

window.tapgateCredentials = (() => {
  const FIELDS = {
    "": [],
    login: [["email", "Email"], ["password", "Password"]],
    bearer: [["token", "API key"]],
    pos: [["keyId", "Key ID"], ["secret", "Secret"]],
    partner: [["keyId", "Key ID"], ["partnerId", "Partner ID"], ["secret", "Secret"]],
    service: [["name", "Service name"], ["secret", "Secret"]],
    webhook: [["secret", "Webhook secret"]],
  };
  const HIDDEN = new Set(["password", "secret", "token"]);
  const select = document.getElementById("credential");
  const area = document.getElementById("credential-fields");
  const values = {};
  let login = null;

  const report = (text) => { document.getElementById("credential-state").textContent = text; };

  const showFields = () => {
    login = null;
    area.replaceChildren(...FIELDS[select.value].map(([name, title]) => {
      const label = document.createElement("label");
      const input = document.createElement("input");
      input.type = HIDDEN.has(name) ? "password" : "text";
      input.autocomplete = "off";
      input.spellcheck = false;
      input.value = values[name] ?? "";
      input.addEventListener("input", () => { values[name] = input.value.trim(); login = null; });
      label.append(title, input);
      return label;
    }));
    report(select.value ? "Stays in this page, and is forgotten when you leave it." : "Choose a credential to try operations.");
  };

  const hmac = async (secret, text) => {
    if (!crypto.subtle) throw new Error("The browser signs only over HTTPS or on localhost.");
    const encoder = new TextEncoder();
    const key = await crypto.subtle.importKey(
      "raw", encoder.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const signature = await crypto.subtle.sign("HMAC", key, encoder.encode(text));
    return Array.from(new Uint8Array(signature), (byte) => byte.toString(16).padStart(2, "0")).join("");
  };

  const signWithKey = async (method, path, body) => {
    const timestamp = new Date().toISOString();
    return {
      "X-API-Key-ID": values.keyId ?? "",
      "X-Timestamp": timestamp,
      "X-Signature": await hmac(values.secret ?? "", [method, path, timestamp, body].join("\n")),
    };
  };

  const logIn = async () => {
    const response = await fetch("api/v1/admin/login", {
      method: "POST",
      credentials: "omit",
      body: JSON.stringify({ email: values.email ?? "", password: values.password ?? "" }),
    });
    const body = await response.json();
    if (!response.ok) throw new Error(`Login failed: ${body.message ?? body.error}`);
    return { token: body.token, until: Date.now() + (body.expires_in - 30) * 1000 };
  };

  const HEADERS = {
    "": async () => ({}),
    login: async () => {
      if (login === null || login.until < Date.now()) login = await logIn();
      return { Authorization: `Bearer ${login.token}` };
    },
    bearer: async () => ({ Authorization: `Bearer ${values.token ?? ""}` }),
    pos: ({ method, path, body }) => signWithKey(method, path, body),
    partner: async ({ method, path, body }) => ({
      ...(await signWithKey(method, path, body)), "X-Partner-ID": values.partnerId ?? "",
    }),
    service: async ({ method, path, query }) => {
      const timestamp = String(Math.floor(Date.now() / 1000));
      return {
        "X-Service-Name": values.name ?? "",
        "X-Service-Timestamp": timestamp,
        "X-Service-Signature": await hmac(values.secret ?? "", [method, path, query, timestamp].join("|")),
      };
    },
    webhook: async ({ body }) => ({ "X-Webhook-Signature": await hmac(values.secret ?? "", body) }),
  };

  select.addEventListener("change", showFields);
  showFields();

  return {
    /** Add the headers of the chosen credential to a request of Swagger UI. */
    async authorize(request) {
      const url = new URL(request.url, location.href);
      if (request.loadSpec || url.origin !== location.origin) return request;
      const body = typeof request.body === "string" ? request.body : "";
      try {
        const headers = await HEADERS[select.value]({
          method: request.method.toUpperCase(), path: url.pathname, query: url.search.slice(1), body,
        });
        Object.assign(request.headers, headers);
        if (select.value) report("The last request was sent with this credential.");
      } catch (error) {
        report(error.message);
        throw error;
      }
      // The chosen credential alone authenticates the request: the console's cookie is not sent.
      request.credentials = "omit";
      return request;
    },
  };
})();
