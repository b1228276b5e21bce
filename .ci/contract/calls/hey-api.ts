// Calls a server with the client of hey-api.
import { authenticate } from "./hey-api/index";
import { client } from "./hey-api/client.gen";

async function main() {
  client.setConfig({ baseUrl: process.env["CONTRACT_URL"]!, auth: () => process.env["CONTRACT_TOKEN"]! });
  const { data } = await authenticate({ throwOnError: true });
  console.log("called as", data.organisation.name);
}

void main();
