// Tracks the links in the arguments and prints the result for each.
import { ReelTally, ReelTallyError } from "@reeltally/client";

try {
  const { results, warnings } = await new ReelTally().trackVideos({ links: process.argv.slice(2) });
  for (const result of results) console.log(result.status, result.url);
  for (const warning of warnings) console.warn(warning);
} catch (error) {
  if (!(error instanceof ReelTallyError)) throw error;
  console.error(error.code, error.message);
  process.exitCode = 1;
}
