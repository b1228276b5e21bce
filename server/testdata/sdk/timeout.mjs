// This program sends one request. Its first argument is the timeout in seconds. It prints the organisation in the response, or the error.

import { ReelTally, ReelTallyError } from "@reeltally/client";

try {
  console.log((await new ReelTally({ timeout: Number(process.argv[2]), maxRetries: 0 }).authenticate()).organisation);
} catch (error) {
  if (!(error instanceof ReelTallyError)) throw error;
  console.log(error.message);
}
