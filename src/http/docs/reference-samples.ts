import type { OpenApiDocument, OpenApiOperation } from "../openapi/parts.ts";

/** An operation with its path and method. */
export interface SampleWithPath {
  method: string;
  path: string;
  operation: OpenApiOperation;
}

/** Sample calls of a list ask for one row, because the example of the answer has one row. */
const SAMPLE_LIMIT = "limit=1";

/** Python code that prints the response, even if the response is an error. */
const PYTHON_ANSWER = `try:
    response = urllib.request.urlopen(request, timeout=60)
except urllib.error.HTTPError as error:
    response = error
with response:
    print(response.status, json.load(response))`;

/** Writes calls of an operation in curl, JavaScript and Python. The programs read the key from the environment. */
export function samples(document: OpenApiDocument, located: SampleWithPath): string {
  const security = (located.operation.security ?? document.security).flatMap(Object.keys);
  const made = security.includes("intakeSignature")
    ? signedSamples(located)
    : readSamples(located, security.length > 0);
  const words = located.operation.operationId.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).split(" ");
  return [
    block("sh", made.shell),
    block("js", `// ${words.join("-")}.mjs\n${made.javaScript}`),
    block("python", `# ${words.join("_")}.py\n${made.python}`),
  ].join("\n\n");
}

function block(language: string, code: string): string {
  return `\`\`\`${language}\n${code.trim()}\n\`\`\``;
}

interface Samples {
  shell: string;
  javaScript: string;
  python: string;
}

/** Returns the path with example values, and with `limit` for a list. */
function samplePath({ path, operation: { parameters = [] } }: SampleWithPath): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String(parameters.find((each) => each.name === name)?.example ?? name)),
  );
  return parameters.some(({ name }) => name === "limit") ? `${filled}?${SAMPLE_LIMIT}` : filled;
}

function readSamples(located: SampleWithPath, withKey: boolean): Samples {
  const path = samplePath(located);
  const names = withKey ? "{ API_URL, API_KEY }" : "{ API_URL }";
  const headers = withKey ? `, {\n  headers: { Authorization: \`Bearer \${API_KEY}\` },\n}` : "";
  const pythonKey = withKey
    ? 'request.add_unredirected_header("Authorization", "Bearer " + os.environ["API_KEY"])\n'
    : "";
  return {
    shell: `curl -s ${withKey ? '-H "Authorization: Bearer $API_KEY" ' : ""}"$API_URL${path}"`,
    javaScript: `
const ${names} = process.env;

const response = await fetch(\`\${API_URL}${path}\`${headers});
console.log(response.status, await response.json());`.trimStart(),
    python: `
import json, os, urllib.error, urllib.request

request = urllib.request.Request(os.environ["API_URL"] + "${path}")
${pythonKey}${PYTHON_ANSWER}`.trimStart(),
  };
}

/** Writes programs that post a record and sign the post with the intake secret. */
function signedSamples({ path, operation: { requestBody } }: SampleWithPath): Samples {
  const { example, examples = {} } = requestBody?.content["application/json"] ?? {};
  const record = example ?? Object.values(examples)[0]?.value ?? {};
  return {
    shell: `
body='${JSON.stringify(record)}'
signature=$(printf %s "$body" | openssl dgst -sha256 -hmac "$INTAKE_SECRET" -r | cut -d' ' -f1)
curl -s -H "X-Service-Shop: $SHOP" -H "X-Service-Signature: sha256=$signature" -d "$body" "$API_URL${path}"`,
    javaScript: `
import { createHmac } from "node:crypto";

const { API_URL, SHOP = "", INTAKE_SECRET = "" } = process.env;
const body = JSON.stringify(${JSON.stringify(record, null, 2)});

const response = await fetch(\`\${API_URL}${path}\`, {
  method: "POST",
  body,
  headers: {
    "X-Service-Shop": SHOP,
    "X-Service-Signature": \`sha256=\${createHmac("sha256", INTAKE_SECRET).update(body).digest("hex")}\`,
  },
});
console.log(response.status, await response.json());`.trimStart(),
    python: `
import hashlib, hmac, json, os, urllib.error, urllib.request

body = json.dumps(${pythonText(record)}).encode()
signature = hmac.new(os.environ["INTAKE_SECRET"].encode(), body, hashlib.sha256).hexdigest()
request = urllib.request.Request(
    os.environ["API_URL"] + "${path}",
    data=body,
    headers={"X-Service-Shop": os.environ["SHOP"], "X-Service-Signature": "sha256=" + signature},
)
${PYTHON_ANSWER}`.trimStart(),
  };
}

/** Writes JSON with Python's words for true, false and null. */
function pythonText(value: unknown): string {
  const words: Record<string, string> = { true: "True", false: "False", null: "None" };
  // A quoted text matches as a whole, so words inside it are not replaced.
  return JSON.stringify(value, null, 4).replaceAll(/"(?:[^"\\]|\\.)*"|true|false|null/g, (part) => words[part] ?? part);
}
