// Chat clients of npm (`openai`, and `ai` with `@ai-sdk/openai-compatible`) against the OpenAI-compatible endpoint.
// Input on stdin: {"client", "baseURL", "apiKey", "model", "message"}; prints what the client has made of the answers.
const { createRequire } = require("node:module");
const load = createRequire(process.argv[2]);

async function byOpenAI({ baseURL, apiKey, model, message }) {
  const OpenAI = load("openai").default;
  const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
  const messages = [{ role: "user", content: message }];
  const whole = await client.chat.completions.create({ model, messages });
  let streamed = "";
  for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
    streamed += chunk.choices[0]?.delta?.content ?? "";
  }
  const response = await client.responses.create({ model, input: message });
  const kinds = [];
  for await (const event of await client.responses.create({ model, input: message, stream: true })) kinds.push(event.type);
  const models = [];
  for await (const each of client.models.list()) models.push(each.id);
  return { whole: whole.choices[0].message.content, streamed, response: response.output_text, last: kinds.at(-1), models };
}

async function byAiSdk({ baseURL, apiKey, model, message }) {
  const { generateText, jsonSchema, streamText, tool } = load("ai");
  const { createOpenAICompatible } = load("@ai-sdk/openai-compatible");
  const chosen = createOpenAICompatible({ name: "toolcrib", baseURL, apiKey })(model);
  const whole = await generateText({ model: chosen, prompt: message });
  const stream = streamText({ model: chosen, prompt: message });
  let streamed = "";
  for await (const piece of stream.textStream) streamed += piece;
  const picked = [];
  const inputSchema = jsonSchema({ type: "object", properties: { item: { type: "string" } } });
  const execute = async ({ item }) => (picked.push(item), `the red ${item}`);
  const { isStepCount, stepCountIs } = load("ai");
  const withTool = await generateText({
    model: chosen,
    prompt: "Pick",
    tools: { pick: tool({ description: "Picks", inputSchema, execute }) },
    stopWhen: (isStepCount ?? stepCountIs)(3),
  });
  return { whole: whole.text, reason: whole.finishReason, streamed, picked, afterTool: withTool.text };
}

async function main() {
  let text = "";
  for await (const piece of process.stdin) text += piece;
  const given = JSON.parse(text);
  const found = await (given.client === "openai" ? byOpenAI : byAiSdk)(given);
  process.stdout.write(JSON.stringify(found));
}

main();
