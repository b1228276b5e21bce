// Calls a server with the client of orval, whose requests have relative addresses.
import { authenticate } from "./orval/client";

async function main() {
  const send = globalThis.fetch;
  globalThis.fetch = (path, init) => send(process.env["CONTRACT_URL"] + String(path), init);
  const answer = await authenticate({ headers: { Authorization: `Bearer ${process.env["CONTRACT_TOKEN"]}` } });
  if (answer.status !== 200) throw new Error(`status ${answer.status}`);
  console.log("called as", answer.data.organisation.name);
}

void main();
