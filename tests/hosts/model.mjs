// A stub in place of a model's server, for tries of agent hosts: `node model.mjs PORT LOG`. It thinks nothing: where the newest
// turn of a conversation speaks of unread mesh messages and a tool of the mesh is offered, it reads the inbox, answers each
// request with "it is green", and ends with "Done.". LOG gets a line of JSON for each request: what a model would have been paid for.
//
// It speaks OpenAI's chat completions (opencode, OpenClaw, Copilot CLI) and Google's generateContent (Gemini CLI).
import http from 'node:http';
import fs from 'node:fs';

const [port, log] = process.argv.slice(2);
const NOTICE = /\d+ unread mesh messages? from [^:]*: call inbox_wait\./;
let calls = 0;

/**
 * The next step: a tool and its arguments, or a text. `results`: what tools have returned since the user, or the host, spoke last.
 * OpenClaw keeps tools of servers behind `tool_search`: then they are called by `tool_call`, with the id that a search gave.
 */
function step(tools, notice, results) {
  const isHidden = tools.includes('tool_call') && !tools.some(tool => tool.endsWith('inbox_wait'));
  const found = results.join('\n');
  const id = name => isHidden ? found.match(new RegExp(`"([^" ]*mesh[^" ]*${name})"`))?.[1] : tools.find(tool => tool.endsWith(name));
  const call = (name, args) => isHidden ? { tool: 'tool_call', args: { id: id(name), args } } : { tool: id(name), args };
  // After tools hosts want an answer.
  const end = { text: results.length ? 'Done.' : 'NO_REPLY' };
  // A host that hides results would ask for ever.
  if (!notice || results.length > 10) return end;
  if (isHidden && results.length === 0) {
    return { tool: 'tool_search', args: { queries: [{ query: 'mesh inbox_wait' }, { query: 'mesh sessions_send' }] } };
  }
  if (!id('inbox_wait')) return end;
  const calls = results.slice(isHidden ? 1 : 0);
  if (calls.length === 0) return call('inbox_wait', { timeoutSeconds: 0 });
  // The first result has the messages, some hosts hand it on twice; one answer for each that wants one.
  const wanted = [...new Set([...calls[0].matchAll(/"replyWith":\s*\{[^}]*\}/g)].map(found => found[0].replace(/\s/g, '')))];
  const next = wanted[calls.length - 1];
  if (!next || !id('sessions_send')) return end;
  const of = field => next.match(new RegExp(`"${field}":\\s*"([^"]+)"`))?.[1];
  return call('sessions_send', { sessionKey: of('sessionKey'), replyTo: of('replyTo'), message: 'it is green' });
}

/** Every text in a value. */
function texts(value) {
  if (typeof value === 'string') return [value];
  if (value && typeof value === 'object') return Object.values(value).flatMap(texts);
  return [];
}

/** What the newest turn says of unread messages. */
const notice = said => texts(said).join('\n').match(NOTICE)?.[0];

/** Results of tools often stand in a text as JSON in JSON. */
const plain = text => text.replaceAll('\\"', '"');

function openai(asked) {
  const messages = asked.messages ?? [];
  const turn = messages.slice(messages.findLastIndex(message => message.role === 'assistant' && !message.tool_calls?.length) + 1);
  const results = turn.filter(message => message.role === 'tool').map(message => plain(texts(message.content).join('\n')));
  const tools = (asked.tools ?? []).map(tool => tool.function?.name ?? '');
  return { notice: notice(turn.filter(message => message.role === 'user').map(message => message.content)), results, tools };
}

function openaiAnswer(next, model) {
  const id = `call_${++calls}`;
  const delta = next.tool
    ? { role: 'assistant', tool_calls: [{ index: 0, id, type: 'function', function: { name: next.tool, arguments: JSON.stringify(next.args) } }] }
    : { role: 'assistant', content: next.text };
  const chunk = (delta, finish_reason, usage) => ({ id: `chat_${calls}`, object: 'chat.completion.chunk', created: 1, model, choices: [{ index: 0, delta, finish_reason }], usage });
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const finish = next.tool ? 'tool_calls' : 'stop';
  const whole = { id: `chat_${calls}`, object: 'chat.completion', created: 1, model, usage, choices: [{ index: 0, message: delta, finish_reason: finish }] };
  return { whole, chunks: [chunk(delta, null), chunk({}, finish, usage), '[DONE]'] };
}

function google(asked) {
  const contents = asked.contents ?? [];
  const isText = content => content.role === 'model' && !(content.parts ?? []).some(part => part.functionCall);
  const parts = contents.slice(contents.findLastIndex(isText) + 1).flatMap(content => content.parts ?? []);
  const results = parts.filter(part => part.functionResponse).map(part => plain(texts(part.functionResponse.response).join('\n')));
  const tools = (asked.tools ?? []).flatMap(tool => tool.functionDeclarations ?? []).map(tool => tool.name);
  return { notice: notice(parts.filter(part => part.text)), results, tools };
}

function googleAnswer(next) {
  const part = next.tool ? { functionCall: { name: next.tool, args: next.args } } : { text: next.text };
  const whole = { candidates: [{ index: 0, content: { role: 'model', parts: [part] }, finishReason: 'STOP' }], usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 } };
  return { whole, chunks: [whole] };
}

const server = http.createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  if (request.method !== 'POST') {
    response.setHeader('content-type', 'application/json');
    return response.end('{"object":"list","data":[{"id":"stub","object":"model"}]}');
  }
  const asked = JSON.parse(Buffer.concat(pieces).toString() || '{}');
  const isGoogle = request.url.includes('enerateContent');
  const heard = isGoogle ? google(asked) : openai(asked);
  const next = step(heard.tools, heard.notice, heard.results);
  const mesh = heard.tools.filter(tool => /inbox_wait|sessions_send/.test(tool));
  fs.appendFileSync(log, JSON.stringify({ at: Date.now(), path: request.url, notice: heard.notice, mesh, results: heard.results.length, answer: next.args?.id ?? next.tool ?? next.text }) + '\n');
  if (process.env.WHOLE) fs.appendFileSync(process.env.WHOLE, JSON.stringify(asked, null, 1) + '\n');
  const { whole, chunks } = isGoogle ? googleAnswer(next) : openaiAnswer(next, asked.model);
  if (isGoogle ? request.url.includes('alt=sse') : asked.stream) {
    response.setHeader('content-type', 'text/event-stream');
    return response.end(chunks.map(chunk => `data: ${typeof chunk === 'string' ? chunk : JSON.stringify(chunk)}\n\n`).join(''));
  }
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(whole));
});
server.listen(Number(port), '127.0.0.1', () => console.log(server.address().port));
