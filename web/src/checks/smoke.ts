// Calls a server and prints what it answers as JSON: `node smoke.ts URL KEY`. A test of Toolcrib runs it.
import { createCrib, followRun, required } from "../api/client.ts";

const [url = "", key = ""] = process.argv.slice(2);
const crib = createCrib(url, key);
const tools = required(await crib.GET("/api/v1/ai/tools", { params: { query: { limit: 2 } } }));
const answer = required(
  await crib.POST("/api/v1/ai/tools/{name}/invoke", {
    params: { path: { name: "search" } },
    body: { params: { company: "Acme" }, dry_run: false, wait: true },
  }),
);
const missing = await crib.GET("/api/v1/ai/tools/{name}", { params: { path: { name: "serch" } } });
const events: string[] = [];
for await (const event of followRun(url, key, answer.meta.run_id)) events.push(event.type);
console.log(
  JSON.stringify({
    names: tools.items.map((tool) => tool.definition.name),
    data: answer.data,
    problem: missing.error?.code,
    events,
  }),
);
