// node tokens.mjs URL TOKEN
//
// Counts the tokens of the responses to tools/list and to a call of list_videos, with the tokenizer o200k_base of language models. The exit
// status is 1 if a count reaches its limit. docs/mcp.md lists the counts.
import {encode} from 'gpt-tokenizer/encoding/o200k_base'

const [url, token] = process.argv.slice(2)

// count sends a JSON-RPC message to POST /mcp and returns the number of tokens of the whole response.
async function count(method, params) {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: {Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream'},
    body: JSON.stringify({jsonrpc: '2.0', id: 1, method, params}),
  })
  const text = await response.text()
  if (!response.ok || JSON.parse(text).error || JSON.parse(text).result.isError) throw new Error(text)
  return encode(text).length
}

const limits = [
  ['tools/list', 12_000, await count('tools/list', {})],
  ['list_videos without arguments', 4_000, await count('tools/call', {name: 'list_videos', arguments: {}})],
]
for (const [name, limit, tokens] of limits) {
  console.log(`tokens: ${name}: ${tokens} of at most ${limit}`)
  if (tokens > limit) process.exitCode = 1
}
