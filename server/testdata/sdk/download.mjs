// This program downloads a list to a file. Its arguments are the path and the query of the list, the format and the file. It prints the header
// Exported-Until of the last page and the highest memory of the program in KiB.
import { createWriteStream, readFileSync } from "node:fs";
import { pipeline } from "node:stream/promises";
import { ReelTally } from "@reeltally/client";

const [path, query, format, file] = process.argv.slice(2);
let headers = new Headers();
await pipeline(async function* () {
  headers = yield* new ReelTally().download(path, Object.fromEntries(new URLSearchParams(query)), format);
}, createWriteStream(file));
console.log(headers.get("Exported-Until") ?? "-", /VmHWM:\s*(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);
