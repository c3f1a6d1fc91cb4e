// A client of AG-UI (npm @ag-ui/client): runs an agent, checks every event, and prints events and messages as JSON.
// Input on stdin: {"url", "headers", "messages", "tools", "context", "state", "resume", "threadId", "runId"}.
const { createRequire } = require("node:module");
const load = createRequire(process.argv[2]);
const { HttpAgent, defaultApplyEvents, runHttpRequest, transformHttpEventStream, verifyEvents } = load("@ag-ui/client");
const { lastValueFrom, tap, toArray } = load("rxjs");

async function main() {
  let text = "";
  for await (const piece of process.stdin) text += piece;
  const { url, headers, ...given } = JSON.parse(text);
  const body = { threadId: "t1", runId: "r1", messages: [], tools: [], context: [], state: {}, forwardedProps: {}, ...given };
  const found = [];
  const http = runHttpRequest(() =>
    fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "text/event-stream", ...headers },
      body: JSON.stringify(body),
    }),
  );
  const events = transformHttpEventStream(http).pipe(verifyEvents(false), tap((event) => found.push(event)));
  let failure = null;
  try {
    await lastValueFrom(events.pipe(toArray()));
  } catch (problem) {
    failure = String(problem.message ?? problem);
  }
  const agent = new HttpAgent({ url, headers, threadId: body.threadId, initialMessages: body.messages });
  process.stdout.write(JSON.stringify({ events: found, failure, kinds: agent ? found.map((each) => each.type) : [] }));
}

main();
