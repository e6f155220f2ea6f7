// Uses the generated types as a client would. Each expected error must occur, or tsc fails.
import createClient from "openapi-fetch";

import type { components as gateway, paths as GatewayPaths } from "./gateway";
import type { components as messenger, paths as MessengerPaths } from "./messenger";

const api = createClient<GatewayPaths>({ baseUrl: "http://127.0.0.1:8000" });
const chat = createClient<MessengerPaths>({ baseUrl: "http://127.0.0.1:8001" });

export async function blockedSubscribers(): Promise<string[]> {
  const { data, error } = await api.GET("/api/v1/subscribers", {
    params: { query: { status: "BLOCKED", limit: 10 } },
  });
  if (error !== undefined) {
    const code: gateway["schemas"]["ErrorCode"] = error.code;
    throw new Error(code);
  }
  return data.data.map((one) => `${one.first_name} ${one.email?.toLowerCase() ?? ""}`);
}

export async function pay(amount: string): Promise<gateway["schemas"]["ReceiptStatus"]> {
  const { data, error, response } = await api.POST("/api/v1/pos/payment", {
    params: { header: { "Idempotency-Key": "order-1" } },
    // Optional fields may be left out.
    body: { card_serial: "TAP-000001", amount, request_id: "order-1", pin: null },
  });
  if (error !== undefined) throw new Error(`${response.status} ${error.code}`);
  return data.status;
}

export async function health(): Promise<number> {
  const { data } = await chat.GET("/health");
  return data?.activeConversations ?? 0;
}

export function describe(event: gateway["schemas"]["TransactionCompletedEvent"]): string {
  const type: "transaction.completed" = event.type;
  return `${type} ${event.data.amount} ${event.data.from?.name ?? ""}`;
}

// @ts-expect-error not a status of a subscriber
export const status: gateway["schemas"]["SubscriberStatus"] = "GONE";

// @ts-expect-error the amount is required
export const payment: gateway["schemas"]["PosPaymentRequest"] = { card_serial: "TAP-000001" };

// @ts-expect-error a template message needs parameters
export const message: messenger["schemas"]["TemplateMessage"] = { to: "+23276123456", template: "code" };
