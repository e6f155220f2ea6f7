// Registers a subscriber and makes a signed payment with the client of @hey-api/openapi-ts.
import { listSubscribers, logIn, payAtTerminal, registerSubscriber } from "./client";
import { createClient, createConfig } from "./client/client";
import { environment, sign } from "./signing";

async function main(): Promise<void> {
  const baseUrl = environment("BASE_URL");
  const anonymous = createClient(createConfig({ baseUrl }));
  const login = await logIn({
    client: anonymous,
    body: { email: environment("ADMIN_EMAIL"), password: environment("ADMIN_PASSWORD") },
  });
  if (login.data === undefined || !("token" in login.data)) throw new Error("no token");
  // The client sends the token in every header that the operation documents.
  const api = createClient(createConfig({ baseUrl, auth: login.data.token }));
  const listed = await listSubscribers({ client: api, query: { limit: 1 } });
  if (listed.data === undefined) throw new Error(JSON.stringify(listed.error));
  const created = await registerSubscriber({
    client: api,
    body: { phone_number: "+23276555002", first_name: "Isatu", last_name: "Bangura", pin: "4071" },
  });
  if (created.data === undefined) throw new Error(JSON.stringify(created.error));
  const terminal = createClient(createConfig({ baseUrl }));
  terminal.interceptors.request.use(sign);
  const paid = await payAtTerminal({
    client: terminal,
    body: { card_serial: environment("CARD"), amount: "12.50", request_id: "hey-api-1" },
  });
  if (paid.data === undefined) throw new Error(JSON.stringify(paid.error));
  console.log(created.data.subscriber.language, paid.data.status, paid.data.amount);
}

void main();
