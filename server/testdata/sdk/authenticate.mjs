// This program sends one request, and prints whether the server accepted or refused it.

import { ReelTally, ReelTallyError } from "@reeltally/client";

try {
  await new ReelTally().authenticate();
  console.log("accepted");
} catch (error) {
  if (!(error instanceof ReelTallyError)) throw error;
  console.log("refused");
}
