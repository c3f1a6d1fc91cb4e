// The client of Toolcrib's REST API: openapi-fetch over the types of the OpenAPI document, and streams as typed events.
//
//   const crib = createCrib("http://127.0.0.1:8700", "tcb_...");
//   const { data, error } = await crib.POST("/api/v1/ai/tools/{name}/invoke", {
//     params: { path: { name: "search_deals" } }, body: { params: { company: "Acme" } },
//   });

import createClient, { type Client, type Middleware } from "openapi-fetch";
import type { components, paths } from "./schema.d.ts";

export type Crib = Client<paths>;
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];
export type Problem = Schema<"ProblemDocument">;
export type StreamEvent = Schema<"StreamEvent">;

const RECONNECTS = 3;
const PAUSE_MS = 200;

// Every POST has an idempotency key, so that it can be sent again and starts no second run.
const withKeys: Middleware = {
  onRequest({ request }) {
    if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
      request.headers.set("Idempotency-Key", crypto.randomUUID());
    }
    return request;
  },
};

export function createCrib(url: string, apiKey: string): Crib {
  const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${apiKey}` } });
  client.use(withKeys);
  return client;
}

/** What a run says and does, until it has ended or waits; a cut connection continues after the last message. */
export async function* followRun(url: string, apiKey: string, runId: string): AsyncGenerator<StreamEvent> {
  const address = `${url}/api/v1/executions/${encodeURIComponent(runId)}/stream`;
  let place: string | undefined;
  let cuts = 0;
  for (;;) {
    try {
      const headers: Record<string, string> = { Authorization: `Bearer ${apiKey}`, Accept: "text/event-stream" };
      if (place !== undefined) headers["Last-Event-ID"] = place;
      const response = await fetch(address, { headers });
      if (!response.ok || response.body === null) throw new CribError((await response.json()) as Problem);
      for await (const message of messagesOf(response.body)) {
        place = message.id ?? place;
        cuts = 0;
        yield message.data;
        if (message.data.type === "done" || message.data.type === "error") return;
      }
    } catch (failure) {
      if (failure instanceof CribError || cuts >= RECONNECTS) throw failure;
    }
    cuts += 1;
    if (cuts > RECONNECTS) throw new Error(`the stream of run ${runId} ended without its last message`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * 2 ** cuts));
  }
}

/** A refusal of the server. */
export class CribError extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** Throws what the server has refused. */
export function required<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new CribError(answer.error as Problem);
  return answer.data;
}

async function* messagesOf(body: NonNullable<Response["body"]>): AsyncGenerator<{ id?: string; data: StreamEvent }> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const parts = text.split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) {
      const fields = new Map(part.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
      const data = fields.get("data");
      const id = fields.get("id");
      if (data !== undefined) yield { ...(id === undefined ? {} : { id }), data: JSON.parse(data) as StreamEvent };
    }
  }
}
