// This program uses the library as a page in a browser does, with a path on the server of the page as the address. The global fetch of Node sends the
// requests. As in a browser, a redirect that is not followed has no status and no headers. The program prints as JSON a downloaded
// list and the error of a redirected request.
import { ReelTally, ReelTallyError } from "@reeltally/client";

globalThis.location = new URL("/dashboard/", process.env.REELTALLY_URL);
const browserFetch = async (url, init) => {
  const response = await fetch(new URL(url, location), init);
  if (init.redirect !== "manual" || response.status < 300 || response.status >= 400) return response;
  return { type: "opaqueredirect", ok: false, status: 0, headers: new Headers(), body: null, text: async () => "" };
};
const { REELTALLY_TOKEN: token } = process.env;

let downloaded = "";
for await (const part of new ReelTally({ baseUrl: "/reeltally", token, fetch: browserFetch }).download("/videos", { limit: 1 })) downloaded += new TextDecoder().decode(part);
try {
  await new ReelTally({ baseUrl: "/old", token, fetch: browserFetch }).createCollection({ name: "Launch" });
} catch (error) {
  if (!(error instanceof ReelTallyError)) throw error;
  console.log(JSON.stringify({ downloaded, status: error.status, message: error.message }));
}
