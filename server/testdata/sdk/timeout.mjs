// This program sends one request with the timeout of the first argument, in seconds, and prints the organisation of the answer or the error.

import { ReelTally, ReelTallyError } from "@reeltally/client";

try {
  console.log((await new ReelTally({ timeout: Number(process.argv[2]), maxRetries: 0 }).authenticate()).organisation);
} catch (error) {
  if (!(error instanceof ReelTallyError)) throw error;
  console.log(error.message);
}
