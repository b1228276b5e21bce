import { addSamples } from "./samples.mjs";

const page = document.getElementById("swagger-ui");
const contract = new URL(page.dataset.contract, document.baseURI);

// api is the address of the server: the folder of the contract's URL. The contract cannot contain this address, because it depends on the
// proxy. The Content-Security-Policy of this page allows requests to no other host.
const api = new URL(".", contract).href.replace(/\/$/, "");

// describeExamples moves the example and the default of an optional parameter to its description. Swagger UI would fill the field with the
// example and send it. A request with all filters and a cursor would return an empty list.
function describeExamples(parameter, schemas) {
  if (parameter.required) {
    return;
  }
  const schema = { ...(schemas[parameter.schema.$ref?.split("/").pop()] ?? parameter.schema) };
  const values = [
    ["Example", parameter.example ?? schema.example],
    ["Default", schema.default],
  ].filter(([, value]) => value !== undefined);
  parameter.description = [parameter.description?.trim(), ...values.map(([name, value]) => `${name}: \`${value}\``)].join("\n\n");
  delete parameter.example;
  delete schema.example;
  delete schema.default;
  parameter.schema = schema;
}

// foldDescription hides the rules in the description of the API until the reader opens them, so that the operations are near the top of the page.
function foldDescription(description) {
  const [first, ...rules] = description.split("\n\n");
  return [first, "<details><summary>Rules for all operations: authentication, tiers, rate limits, errors, pages, times, links, CSV</summary>", ...rules, "</details>"].join("\n\n");
}

// adapt returns the contract for Swagger UI: it adds the address of this server and code samples, and moves the examples of optional
// parameters to their descriptions.
function adapt(document) {
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  [...Object.values(document.components.parameters), ...operations.flatMap((operation) => operation.parameters ?? [])]
    .filter((parameter) => !parameter.$ref)
    .forEach((parameter) => describeExamples(parameter, document.components.schemas));
  operations.forEach(addSamples);
  return { ...document, info: { ...document.info, description: foldDescription(document.info.description) }, servers: [{ url: api, description: "This server" }] };
}

// Highlighting the syntax of a page of 5,000 videos takes a browser minutes. So texts with more than maxHighlighted characters are shown as
// plain text, which takes seconds.
const maxHighlighted = 100_000;
const highlightShortTexts = (Highlighter, system) => (props) =>
  props.children?.length > maxHighlighted
    ? system.React.createElement(system.getComponent("PlainTextViewer"), null, props.children)
    : system.React.createElement(Highlighter, props);

// Swagger UI uses dark colours if the root element has the class dark-mode. The class is set if the browser prefers dark colours.
const dark = matchMedia("(prefers-color-scheme: dark)");
const setDarkMode = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", setDarkMode);
setDarkMode();

SwaggerUIBundle({
  domNode: page,
  url: contract.href,
  deepLinking: true,
  displayRequestDuration: true,
  persistAuthorization: false, // a token is a secret, so it must not be written to local storage
  validatorUrl: null, // the default would send the contract to the host of Swagger's validator
  responseInterceptor: (response) => {
    if (response.headers["reeltally-sandbox"] === "true") {
      document.getElementById("sandbox").hidden = false;
    }
    return response;
  },
  plugins: [
    {
      statePlugins: { spec: { wrapActions: { updateJsonSpec: (show) => (document) => show(adapt(document)) } } },
      wrapComponents: { SyntaxHighlighter: highlightShortTexts },
    },
  ],
});
