// node tasks.mjs URL TOKEN [TASK...]
//
// Completes tasks of an assistant with the official TypeScript client of the Model Context Protocol. The server must use the sandbox.
// tasks.py completes the same tasks. Without a TASK, the script completes all tasks. The exit status is 1 if a task fails.
import assert from 'node:assert/strict'
import {setTimeout as sleep} from 'node:timers/promises'
import {Client} from '@modelcontextprotocol/sdk/client/index.js'
import {StreamableHTTPClientTransport} from '@modelcontextprotocol/sdk/client/streamableHttp.js'

const [url, token, ...names] = process.argv.slice(2)
const client = new Client({name: 'tasks', version: '1'})
await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {requestInit: {headers: {Authorization: `Bearer ${token}`}}}))
await client.listTools() // from now on, the client checks results against the output schemas of the tools

// call calls a tool and returns the structured content of its result.
async function call(name, args = {}) {
  const result = await client.callTool({name, arguments: args})
  assert(!result.isError, `${name}: ${result.content[0]?.text}`)
  return result.structuredContent
}

// day returns the UTC day that is the given number of days ago, such as 2026-02-22.
const day = ago => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10)

const tasks = {
  async track() {
    const {videoId} = await call('track_video', {link: 'https://www.youtube.com/shorts/tYpEsCrIpTE', collection_ids: null})
    for (let i = 0; i < 12; i++) {
      const video = await call('get_video', {ad_id: videoId})
      if (video.latest_views !== null) return `${video.ad_link} has ${video.latest_views} views`
      await sleep(2000)
    }
    assert.fail('the tracked video has no numbers after 24 seconds')
  },

  async top_gainers() {
    const {data} = await call('list_videos', {order_by: 'increase_7d', limit: 5, has_metrics: true, fields: ['ad_link', 'latest_views', 'increase_7d']})
    assert.equal(data.length, 5)
    for (let i = 1; i < data.length; i++) assert(data[i - 1].increase_7d >= data[i].increase_7d || data[i].increase_7d === null)
    return `${data[0].ad_link} gained ${data[0].increase_7d} % in 7 days`
  },

  async weekly_report() {
    const {messages} = await client.getPrompt({name: 'weekly_report', arguments: {end_date: day(1)}})
    const instructions = messages[0].content.text
    assert(instructions.includes(`START is ${day(7)} and END is ${day(1)}.`), instructions)
    assert(instructions.includes('get_organisation_history') && instructions.includes('list_videos'), instructions)
    const {items} = await call('get_organisation_history', {start_date: day(7), end_date: day(1)})
    assert(items.length > 1, 'the week has fewer than two points')
    const [last, first] = [items[0], items.at(-1)]
    assert(last.date >= first.date && last.views >= 0)
    const {data, pagination} = await call('list_videos', {uploaded_at_start: day(7), uploaded_at_end: day(1), order_by: 'latest_views', limit: 10})
    assert.equal(data.length, Math.min(10, pagination.total))
    return `${last.views - first.views} more views from ${first.date} to ${last.date}; ${pagination.total} new videos`
  },

  async compare_accounts() {
    const {data} = await call('list_accounts', {include_linked: true, order_by: 'total_views', limit: 2, fields: ['account_id']})
    assert.equal(data.length, 2)
    const accounts = await Promise.all(data.map(a => call('get_account', {account_id: a.account_id})))
    assert.notEqual(accounts[0].account_id, accounts[1].account_id)
    assert(accounts[0].total_views >= accounts[1].total_views)
    return accounts.map(a => `${a.username} has ${a.total_views} views, median ${a.median_views}`).join('; ')
  },

  async missing_number() {
    const links = Array.from({length: 20}, (_, i) => `https://www.youtube.com/shorts/tYpEsCrI${100 + 4 * i}`)
    await call('track_videos', {links})
    const {data} = await call('list_videos', {order_by: 'created_at', limit: 20, fields: ['ad_link', 'latest_views', 'fetch_status', 'fetch_detail']})
    const missing = data.filter(v => v.latest_views === null)
    assert(missing.length > 0, 'every new video has numbers already')
    for (const v of missing) assert(v.fetch_status !== 'ok' && v.fetch_detail?.length > 0, JSON.stringify(v))
    return `${missing[0].ad_link} has no views: ${missing[0].fetch_status}: ${missing[0].fetch_detail}`
  },
}

for (const name of names.length > 0 ? names : Object.keys(tasks)) console.log(`TypeScript: ${name}: ${await tasks[name]()}`)
await client.close()
