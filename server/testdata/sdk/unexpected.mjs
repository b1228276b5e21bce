// This program calls five operations, and prints as JSON the error of each call. It throws any error that does not come from the library.

import { ReelTally, ReelTallyError } from "@reeltally/client";

const reeltally = new ReelTally();
const read = async entries => { for await (const _ of entries); };
const calls = [
  () => reeltally.listEvents(),
  () => read(reeltally.allVideos()),
  () => reeltally.trackVideos({ links: ["https://www.tiktok.com/@one/video/7338812345678901234"] }),
  () => reeltally.deleteWebhook("01938c33-1c9e-7b54-a0d2-7f6e5d4c3b2a"),
  () => read(reeltally.download("/videos")),
];
const errors = [];
for (const call of calls) {
  try {
    await call();
    errors.push({});
  } catch (error) {
    if (!(error instanceof ReelTallyError)) throw error;
    errors.push({ status: error.status, code: error.code, contentType: error.contentType, body: error.body, message: error.message });
  }
}
console.log(JSON.stringify(errors));
