// Each operation of the contract has a sample for curl. This module renders the same request in Go, Python and TypeScript.

// addSamples adds the code samples of an operation, in all languages, to the operation's description.
export function addSamples(operation) {
  const written = operation["x-codeSamples"] ?? [];
  const all = written.flatMap((sample) => (sample.lang === "Shell" ? [sample, ...renderSamples(sample.source)] : [sample]));
  const blocks = all.map(({ lang, label, source }) => `${lang} (${label}):\n\n\`\`\`\n${source.trim()}\n\`\`\``);
  operation.description = [operation.description?.trim(), ...blocks].join("\n\n");
}

// renderSamples returns the request of a curl command in Go, Python and TypeScript.
export function renderSamples(command) {
  const request = parse(command);
  return [
    { lang: "Go", label: "net/http", source: golang(request) },
    { lang: "Python", label: "urllib", source: python(request) },
    { lang: "TypeScript", label: "fetch", source: typescript(request) },
  ];
}

// parse returns the request of a curl command. It fails for an unknown option, so that no sample lacks a part of the request.
function parse(command) {
  const [program, ...words] = splitWords(command);
  const request = { method: "GET", target: "", headers: [], body: null };
  if (program !== "curl") {
    throw new Error(`the sample runs ${program} instead of curl`);
  }
  while (words.length > 0) {
    const word = words.shift();
    if (word === "-sS") {
      continue;
    }
    if (word.startsWith("$REELTALLY_URL/")) {
      request.target = word.slice("$REELTALLY_URL".length);
      continue;
    }
    const value = words.shift();
    if (word === "-X" && value) {
      request.method = value;
    } else if (word === "-d" && value) {
      request.body = JSON.parse(value);
    } else if (word === "-H" && value?.includes(": ")) {
      request.headers.push(value.split(/: (.*)/s, 2));
    } else {
      throw new Error(`the sample has an unknown option: ${word}`);
    }
  }
  const authorization = request.headers.findIndex(([name, value]) => name === "Authorization" && value === "Bearer $REELTALLY_TOKEN");
  if (request.target === "" || authorization < 0) {
    throw new Error("the sample has no address or no token");
  }
  request.headers.splice(authorization, 1);
  return request;
}

// splitWords splits a command line into words as a shell does. Variables stay as they are.
function splitWords(command) {
  const words = command.replaceAll("\\\n", " ").match(/(?:[^\s"']|"[^"]*"|'[^']*')+/g) ?? [];
  return words.map((word) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

// golang returns the request as a Go program.
function golang({ method, target, headers, body }) {
  const content = body === null ? "nil" : `strings.NewReader(${goLiteral(JSON.stringify(body))})`;
  const lines = [
    "package main",
    "",
    "import (",
    ...["fmt", "io", "log", "net/http", "os", ...(body === null ? [] : ["strings"])].map((name) => `\t"${name}"`),
    ")",
    "",
    "func main() {",
    `\trequest, err := http.NewRequest("${method}", os.Getenv("REELTALLY_URL")+${JSON.stringify(target)}, ${content})`,
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    '\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("REELTALLY_TOKEN"))',
    ...headers.map(([name, value]) => `\trequest.Header.Set(${JSON.stringify(name)}, ${JSON.stringify(value)})`),
    "\tresponse, err := http.DefaultClient.Do(request)",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tdefer response.Body.Close()",
    "\ttext, err := io.ReadAll(response.Body)",
    "\tif err != nil {",
    "\t\tlog.Fatal(err)",
    "\t}",
    "\tfmt.Println(response.StatusCode, string(text))",
    "}",
  ];
  return lines.join("\n") + "\n";
}

// goLiteral returns a text as a Go string literal, without escapes if possible.
function goLiteral(text) {
  return text.includes("`") ? JSON.stringify(text) : "`" + text + "`";
}

// python returns the request as a Python program.
function python({ method, target, headers, body }) {
  const fields = headers.map(([name, value]) => `, ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  const lines = [
    `import ${body === null ? "" : "json, "}os, urllib.request`,
    "",
    "request = urllib.request.Request(",
    `    os.environ["REELTALLY_URL"] + ${JSON.stringify(target)},`,
    `    method="${method}",`,
    `    headers={"Authorization": "Bearer " + os.environ["REELTALLY_TOKEN"]${fields.join("")}},`,
    ...(body === null ? [] : [`    data=json.dumps(${pythonLiteral(body)}).encode(),`]),
    ")",
    "with urllib.request.urlopen(request) as response:",
    "    print(response.status, response.read().decode())",
  ];
  return lines.join("\n") + "\n";
}

// pythonLiteral returns a JSON value as a Python literal.
function pythonLiteral(value) {
  if (Array.isArray(value)) {
    return `[${value.map(pythonLiteral).join(", ")}]`;
  }
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value)
      .map(([name, member]) => `${JSON.stringify(name)}: ${pythonLiteral(member)}`)
      .join(", ")}}`;
  }
  const names = { true: "True", false: "False", null: "None" };
  return typeof value === "string" ? JSON.stringify(value) : (names[value] ?? String(value));
}

// typescript returns the request as a TypeScript program.
function typescript({ method, target, headers, body }) {
  const fields = headers.map(([name, value]) => `, ${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  const lines = [
    `const response = await fetch(process.env.REELTALLY_URL + ${JSON.stringify(target)}, {`,
    ...(method === "GET" ? [] : [`  method: "${method}",`]),
    `  headers: { Authorization: \`Bearer \${process.env.REELTALLY_TOKEN}\`${fields.join("")} },`,
    ...(body === null ? [] : [`  body: JSON.stringify(${JSON.stringify(body)}),`]),
    "});",
    "console.log(response.status, await response.text());",
  ];
  return lines.join("\n") + "\n";
}
