// This program creates a collection, and prints as JSON whether it was created, or the error. It also prints whether the library refuses an empty
// token, and how it refuses an address without a scheme.

import { ReelTally, ReelTallyError } from "@reeltally/client";

let refused = false;
try {
  new ReelTally({ token: "" });
} catch (error) {
  refused = error instanceof TypeError;
}
let address = "";
try {
  new ReelTally({ baseUrl: "localhost:8080" });
} catch (error) {
  address = `${error.name}: ${error.message}`;
}
try {
  await new ReelTally().createCollection({ name: "Launch" });
  console.log(JSON.stringify({ created: true, refused, address }));
} catch (error) {
  if (!(error instanceof ReelTallyError)) throw error;
  console.log(JSON.stringify({ status: error.status, code: error.code, message: error.message, cause: error.cause !== undefined, refused, address }));
}
