import { addSamples } from "./samples.mjs";

const page = document.getElementById("swagger-ui");
const contract = new URL(page.dataset.contract, document.baseURI);

// The server is the one that gave the contract, next to it, whatever host or path a proxy put both under. The contract
// cannot know that address, and the policy of this page lets requests go to no other host.
const api = new URL(".", contract).href.replace(/\/$/, "");

// Swagger UI fills every field that has an example and sends it. An optional parameter is a filter or a cursor: to send
// them all is to ask for nothing, so their examples and defaults are told instead of filled in.
function tell(parameter, schemas) {
  if (parameter.required) {
    return;
  }
  const schema = { ...(schemas[parameter.schema.$ref?.split("/").pop()] ?? parameter.schema) };
  const told = [
    ["Example", parameter.example ?? schema.example],
    ["Default", schema.default],
  ].filter(([, value]) => value !== undefined);
  parameter.description = [parameter.description?.trim(), ...told.map(([name, value]) => `${name}: \`${value}\``)].join("\n\n");
  delete parameter.example;
  delete schema.example;
  delete schema.default;
  parameter.schema = schema;
}

function adapt(document) {
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  [...Object.values(document.components.parameters), ...operations.flatMap((operation) => operation.parameters ?? [])]
    .filter((parameter) => !parameter.$ref)
    .forEach((parameter) => tell(parameter, document.components.schemas));
  operations.forEach(addSamples);
  return { ...document, servers: [{ url: api, description: "This server" }] };
}

// Colours for a full page of videos keep a browser busy for minutes; as plain text it takes seconds.
const longest = 100_000;
const colourShort = (Colourful, system) => (props) =>
  props.children?.length > longest
    ? system.React.createElement(system.getComponent("PlainTextViewer"), null, props.children)
    : system.React.createElement(Colourful, props);

// Swagger UI has a dark look, which it shows where the root element has this class.
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

SwaggerUIBundle({
  domNode: page,
  url: contract.href,
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false, // a token is a secret, and local storage is no place for one
  validatorUrl: null, // the default sends the contract to somebody else's host
  responseInterceptor: (response) => {
    if (response.headers["reeltally-sandbox"] === "true") {
      document.getElementById("sandbox").hidden = false;
    }
    return response;
  },
  plugins: [
    {
      statePlugins: { spec: { wrapActions: { updateJsonSpec: (show) => (document) => show(adapt(document)) } } },
      wrapComponents: { SyntaxHighlighter: colourShort },
    },
  ],
});
