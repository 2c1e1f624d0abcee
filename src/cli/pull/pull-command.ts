import { readAddress } from "../../client/address.ts";
import { ApiError, ConnectionError } from "../../client/api-error.ts";
import { type Client, createClient } from "../../client/client.ts";
import { type CopyStore, copy } from "../../client/copy.ts";
import type { ResourceReader } from "../../client/resource-reader.ts";
import { type Environment, readTextFile } from "../../config.ts";
import { invalid, SdsError } from "../../domain/error.ts";
import { fingerprintOf, isKey } from "../../domain/key.ts";
import { RESOURCES, type Resource } from "../../domain/resources.ts";
import { counted, sentence } from "../../lib/text.ts";
import type { SdsCommand } from "../command.ts";
import { randomBytes } from "../dependencies.ts";
import { choiceOption } from "../options.ts";
import { safeMessage, warn } from "../print.ts";
import { createProgressBar } from "../progress-bar.ts";
import { secretFileWarnings } from "../secret-files.ts";
import { createPullOutput, type PulledRow, type PullOutput } from "./pull-output.ts";
import { openStateFile, type PullSource, type StateFile } from "./pull-state.ts";
import { addFieldKeys, type CsvOptions, createRowFormat, FORMATS, type Format } from "./row-format.ts";

interface PullFlags {
  url: string;
  resource: Resource;
  state: string;
  format: Format;
  header: boolean;
  include?: "customFields";
  sequence?: boolean;
  spreadsheet?: boolean;
  anew?: boolean;
  allowHttp?: boolean;
}

export function addCommands(program: SdsCommand): void {
  program
    .command("pull")
    .description(
      "print the rows of a server's API that are new or changed since the last run. The first run prints all rows; " +
        "the API key comes from the file that SDS_KEY_FILE names",
    )
    .requiredOption("--url <url>", "address of the server, such as https://sds.example.com")
    .requiredOption(...choiceOption("--resource <name>", "what to print", RESOURCES))
    .requiredOption("--state <file>", "file that keeps the position of the last run; the first run makes it")
    .option(...choiceOption("--format <format>", "how to print rows", FORMATS), "ndjson")
    .option(...choiceOption("--include <what>", "add to each subscription", ["customFields"]))
    .option("--sequence", "add _sequence to each row, a number that grows over all runs: the largest is the newest")
    .option("--no-header", "CSV without the line of column names")
    .option("--spreadsheet", "CSV for a spreadsheet: puts ' before text that a spreadsheet would run as a formula")
    .option("--anew", "print all rows again, for instance after a restore of the server's database")
    .option("--allow-http", "send the key over plain http to another machine, where others could read it")
    .examples("sds pull --url https://sds.example.com --resource orders --state orders")
    .action(pull);
}

async function pull(flags: PullFlags): Promise<void> {
  const { resource, format, header, allowHttp = false, spreadsheet = false, anew = false, include } = flags;
  const { sequence = false } = flags;
  if (include !== undefined && resource !== "subscriptions")
    throw invalid(`--include ${include} needs --resource subscriptions`);
  const address = parseAddress(flags.url, allowHttp);
  const key = readApiKey(process.env);
  warn(secretFileWarnings(process.env["SDS_KEY_FILE"]));
  const url = address.href.replace(/\/$/, "");
  const source = { url, resource, key: fingerprintOf(key), ...(include !== undefined && { include }) };
  const stateFile = openStateFile(flags.state, source, { anew, random: randomBytes, now: Date.now() });

  const progress = createProgressBar(process.stderr);
  const client = createClient({
    url,
    key,
    allowHttp,
    onRetry: ({ message }) => progress.update(undefined, safeMessage(`${sentence(message)} Trying again.`)),
  });
  const withoutColumn = new Set<string>();
  const csv: CsvOptions = { header, spreadsheet, sequence, onFieldWithoutColumn: (key) => withoutColumn.add(key) };
  let output: PullOutput | undefined;
  let rows = 0;
  try {
    if (include !== undefined && format === "csv")
      csv.fieldKeys = stateFile.fieldKeys ??= await findFieldKeys(client, (count) =>
        progress.update(undefined, `looking for custom fields in ${counted(count, "row", "rows")}`),
      );
    const printed = createPullOutput(createRowFormat(resource, format, csv), stateFile);
    output = printed;
    await printed.begin();
    const store: CopyStore<PulledRow> = {
      load: async () => stateFile.state,
      async save(changed, state) {
        const numbered = sequence ? changed.map((row) => ({ ...row, _sequence: stateFile.nextSequence() })) : changed;
        await printed.write(numbered, state);
        rows += changed.length;
        progress.update(undefined, counted(rows, "row", "rows"));
      },
      clear: () => Promise.reject(restoredSince(stateFile, source)),
    };
    if (include === undefined) await copy(client[resource] as unknown as ResourceReader<PulledRow, object>, store);
    else await copy(client.subscriptions, store as CopyStore<object>, { include: [include] });
  } catch (thrown) {
    if (!(thrown instanceof ApiError || thrown instanceof ConnectionError)) throw thrown;
    throw refusalOf(thrown, url, flags.state);
  } finally {
    progress.end();
    // Saves the state even after an error, so that the next run does not print these rows again.
    output?.end();
  }
  if (withoutColumn.size > 0)
    warn([
      `custom fields without a column of their own: ${[...withoutColumn].sort().join(", ")}. Their values are in the ` +
        "column customFields; --anew prints all rows again, with a column for each field",
    ]);
}

/**
 * Returns the keys of the custom fields that have values. Each such field gets a column in CSV. Needs to read all rows.
 */
async function findFieldKeys({ subscriptions }: Client, onPage: (rows: number) => void): Promise<string[]> {
  const keys: string[] = [];
  let rows = 0;
  for await (const page of subscriptions.pages({ include: ["customFields"] })) {
    for (const row of page.rows) addFieldKeys(keys, { ...row });
    rows += page.rows.length;
    onPage(rows);
  }
  return keys;
}

/** Parses the server's address. @throws SdsError `invalid`; the message omits the address, which may have a password */
function parseAddress(text: string, allowHttp: boolean): URL {
  const url = readAddress(text, allowHttp);
  if (url === "form")
    throw invalid("--url must be an address such as https://sds.example.com, without user, query and fragment");
  if (url === "http")
    throw invalid(
      "--url is http:, and everybody on the way could read the key: use https:, or --allow-http in a network that " +
        "you trust",
    );
  return url;
}

function refusalOf(error: ApiError | ConnectionError, url: string, state: string): SdsError {
  if (error instanceof ConnectionError) return new SdsError("failed", error.message, { cause: error });
  if (error.reason === "other_shop")
    return new SdsError(
      "failed",
      `${state} belongs to another shop than the API key: use the key of that shop, or another file for --state`,
      { cause: error },
    );
  const id = error.requestId === null ? "" : ` (request ${error.requestId})`;
  return new SdsError("failed", `${url} answered ${error.status}: ${error.message}${id}`, { cause: error });
}

/** Error for a checkpoint that was made before a restore. */
function restoredSince({ path }: StateFile, { url }: PullSource): SdsError {
  return new SdsError(
    "failed",
    `The database of ${url} was restored from a backup after the checkpoint in ${path}: run with --anew, which ` +
      "prints all rows again, and throw away what you have",
  );
}

/** Reads the API key for commands that ask a server. Messages do not repeat the key. @throws SdsError `invalid` */
function readApiKey(env: Environment): string {
  const path = env["SDS_KEY_FILE"];
  if (path === undefined || path.trim() === "") throw invalid("set SDS_KEY_FILE to a file that holds the API key");
  const key = readTextFile("SDS_KEY_FILE", path);
  if (isKey(key)) return key;
  throw invalid(`SDS_KEY_FILE ${path} holds no API key: it must be cad_pk_ and 48 hexadecimal digits`);
}
