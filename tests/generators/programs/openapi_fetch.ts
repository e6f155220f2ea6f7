// Registers a subscriber and makes a signed payment with the types of openapi-typescript.
import createClient, { type Middleware } from "openapi-fetch";

import type { paths } from "./gateway";
import { environment, sign } from "./signing";

const signer: Middleware = { onRequest: ({ request }) => sign(request) };

async function main(): Promise<void> {
  const api = createClient<paths>({ baseUrl: environment("BASE_URL") });
  const login = await api.POST("/api/v1/admin/login", {
    body: { email: environment("ADMIN_EMAIL"), password: environment("ADMIN_PASSWORD") },
  });
  if (login.data === undefined || !("token" in login.data)) throw new Error("no token");
  const headers = { Authorization: `Bearer ${login.data.token}` };
  const created = await api.POST("/api/v1/subscribers", {
    headers,
    body: { phone_number: "+23276555001", first_name: "Isatu", last_name: "Bangura", pin: "4071" },
  });
  if (created.data === undefined) throw new Error(JSON.stringify(created.error));
  const terminal = createClient<paths>({ baseUrl: environment("BASE_URL") });
  terminal.use(signer);
  const paid = await terminal.POST("/api/v1/pos/payment", {
    body: { card_serial: environment("CARD"), amount: "12.50", request_id: "openapi-fetch-1" },
  });
  if (paid.error !== undefined) throw new Error(JSON.stringify(paid.error));
  console.log(created.data.subscriber.language, paid.data.status, paid.data.amount);
}

void main();
