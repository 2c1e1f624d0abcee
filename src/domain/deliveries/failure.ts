import type { Outcome } from "./delivery.ts";

/** Describes a failed attempt to the person who runs the endpoint. */
interface FailureText {
  what: string;
  /** What to change, as one or two sentences. */
  todo: string;
}

const READ_LOG = "Look at your program's log of this time.";
const BEHIND_PROXY = "A proxy answered because your program did not. Check that your program runs.";
const WRONG_PATH = "Your server has nothing at this path. Correct the path of the address.";

const REMEDY_OF_STATUS: Record<number, string> = {
  400: `Your program did not accept the body. ${READ_LOG}`,
  401: "Your program refused the signature, or asks for a password. Check that it has the current signing secret.",
  403: "A firewall, a password or your program refused the request. Let it through, and check the signing secret.",
  404: WRONG_PATH,
  405: "This path accepts no POST. Correct the path of the address, or let your program accept POST there.",
  408: "Your server gave up before it had read the request. Check your proxy's time limits.",
  410: WRONG_PATH,
  411: "Your server did not understand the length of the body. Check your proxy's settings.",
  413: "Your server takes only smaller bodies. Allow bodies of at least 260 KiB.",
  415: "Your program refused the content type. Let it accept application/json.",
  422: `Your program did not accept the body. ${READ_LOG}`,
  429: "Your server limits how many requests it takes. Raise the limit for webhooks.",
  501: "This path accepts no POST. Correct the path of the address, or let your program accept POST there.",
  502: BEHIND_PROXY,
  503: `Your server is overloaded, or your program is not running. ${READ_LOG}`,
  504: BEHIND_PROXY,
};

const OPEN_SERVER = "Check that the server is running, and that its firewall accepts connections from the internet.";
const PUBLIC_CERTIFICATE = "Install a certificate of a public authority, with its whole chain.";

/** What to do, for each text that a stored error can contain (docs/webhooks.md, "Retries"). The first match is used. */
const REMEDY_OF_ERROR: readonly [part: string, todo: string][] = [
  ["has no endpoint", "Enter the address of your endpoint."],
  ["is not allowed", "Enter a public address that begins with https:// and uses port 443 or a port from 1024 up."],
  ["did not answer within", "Answer with a 2xx status first, and do the work afterwards."],
  ["did not resolve in time", "The name servers of this domain do not answer. Ask whoever runs the domain."],
  ["does not resolve", "Correct the name in the address, or add the name to the DNS of your domain."],
  ["connection was refused", "No program listens at this address and port. Start your program, or correct the port."],
  ["connection was closed", `Your server closed the connection before it had answered. ${READ_LOG}`],
  ["host did not answer", OPEN_SERVER],
  ["cannot be reached", OPEN_SERVER],
  ["certificate is for another name", "Install a certificate for the name in the address, or correct the name."],
  ["certificate has expired", "Renew the certificate of your server."],
  ["certificate is not valid yet", "Install a certificate that is valid today."],
  ["self-signed", PUBLIC_CERTIFICATE],
  ["unknown authority", PUBLIC_CERTIFICATE],
  ["certificate", PUBLIC_CERTIFICATE],
  ["TLS failed", "Check that this port of your server speaks https."],
  ["is not HTTP", "Another program answers at this port. Correct the port."],
  ["headers are too large", "Send at most 64 KiB of headers in the answer."],
];

/**
 * Says what failed and what to change, in the words of the settings page.
 * @returns undefined if the attempt succeeded
 */
export function explainFailure({ statusCode, error }: Pick<Outcome, "statusCode" | "error">): FailureText | undefined {
  if (error === null) return undefined;
  if (statusCode !== null) return { what: `Your endpoint answered ${statusCode}.`, todo: todoOfStatus(statusCode) };
  const what = error
    .replace(/^Could not/, "We could not")
    .replace(/\bthe endpoint/i, (found) => (found.startsWith("T") ? "Your endpoint" : "your endpoint"));
  const known = REMEDY_OF_ERROR.find(([part]) => error.includes(part));
  return { what, todo: known?.[1] ?? OPEN_SERVER };
}

function todoOfStatus(status: number): string {
  const known = REMEDY_OF_STATUS[status];
  if (known !== undefined) return known;
  if (status >= 300 && status < 400)
    return "It redirects to another address, and we follow no redirect. Enter the address to which it redirects.";
  return status >= 500 ? `Your program failed. ${READ_LOG}` : `Your program refused the request. ${READ_LOG}`;
}
