// Calls a server with the types of openapi-typescript.
import createClient from "openapi-fetch";
import type { paths } from "./openapi-typescript/types";

async function main() {
  const client = createClient<paths>({ baseUrl: process.env["CONTRACT_URL"]!, headers: { Authorization: `Bearer ${process.env["CONTRACT_TOKEN"]}` } });
  const { data, error } = await client.GET("/authenticate");
  if (error) throw new Error(error.detail);
  console.log("called as", data.organisation.name);
}

void main();
