import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { codeOf, isForbidden, messageOf } from "../../domain/error.ts";
import { bytesText } from "../../lib/text.ts";
import { currentUser, ownerName, rightsProblem, userName } from "../../lib/users.ts";
import { readMasterKey } from "../../store/files/master-key.ts";
import { openToAll } from "../secret-files.ts";
import { type Check, type Finding, failed, type Patient, passed } from "./check.ts";

/** A disk with less free space than this is reported as almost full. */
const LITTLE_BYTES = 256_000_000;
const MORE_SPACE =
  "delete old databases that `sds status` lists, old backups, or what other programs wrote there; or use a larger disk";
const WRONG_MODE = "the mode keeps the owner out, or lets other users in";
/** Number of file descriptors that `serve` needs for clients, files and the platform. Each attempt needs one more. */
const OTHER_DESCRIPTORS = 256;

export const FILE_CHECKS: readonly Check[] = [
  { name: "data folder", run: checkFolder },
  { name: "secret files", run: checkSecretFiles },
  { name: "disk", run: checkDisk },
  { name: "master key", run: checkMasterKey },
  { name: "open files", run: checkDescriptors },
];

function checkFolder({ config: { data, database } }: Patient): Finding {
  try {
    const folder = statSync(data);
    const user = process.geteuid?.() ?? 0;
    const owner = userName(folder.uid);
    if (user !== 0 && user !== folder.uid)
      return failed(`${data} belongs to ${owner}, and you are ${userName(user)}`, `run sds as ${owner}`);
    const isModeOf = (path: string, needed: number, refused: number) => {
      const { mode } = statSync(path);
      return (mode & needed) === needed && (mode & refused) === 0;
    };
    if (!isModeOf(data, 0o700, 0o022)) return failed(`${data}: ${WRONG_MODE}`, `run chmod 700 ${data}`);
    const files = readdirSync(data)
      .filter((name) => /^(sds\.db(-wal|-shm)?|sds\.lock|master\.key)$/.test(name))
      .map((name) => join(data, name));
    const strange = files.filter((file) => statSync(file).uid !== folder.uid);
    if (strange.length > 0)
      return failed(
        `${strange.join(", ")}: the owner is ${ownerName(strange[0] ?? "")}, but the folder belongs to ${owner}`,
        `run chown -R ${owner} ${data}`,
      );
    const wrong = files.filter((file) => !file.endsWith(".key") && !isModeOf(file, 0o600, 0o026));
    if (wrong.length > 0) return failed(`${wrong.join(", ")}: ${WRONG_MODE}`, `run chmod 600 ${wrong.join(" ")}`);
    return passed(`${data} belongs to ${owner}`);
  } catch (thrown) {
    if (isForbidden(thrown))
      return failed(rightsProblem(data), `keep the data where ${currentUser()} may open each folder`);
    if (codeOf(thrown) !== "ENOENT") return failed(messageOf(thrown), `correct the path of the data folder`);
    if (database !== null) return passed("the data is on a PostgreSQL server");
    return failed(`there is no folder ${data}`, "name the folder of your data with --data or SDS_DATA");
  }
}

function checkSecretFiles({ config }: Patient): Finding {
  const files = openToAll(config);
  if (files.length > 0)
    return failed(
      `every user of this machine can read or change ${files.join(", ")}`,
      `run chmod 600 ${files.join(" ")}`,
    );
  return passed("only their owner can read them");
}

/** Returns the remedy for a file that this user may not use. */
function giveAway(file: string): string {
  const user = currentUser();
  return `run chown ${user} ${file}, and keep it in a folder that ${user} may open; or run sds as ${ownerName(file)}`;
}

async function checkDisk({ config: { data, database }, opened, freeBytes }: Patient): Promise<Finding> {
  if (database !== null) return passed("the data is on a PostgreSQL server, whose disk is not seen from here");
  const free = freeBytes(data);
  if (free === undefined) return failed(`the disk of ${data} cannot be examined`, "check the path of the data folder");
  const room = `${bytesText(free)} free on the disk of ${data}`;
  if (free < LITTLE_BYTES) return failed(`the disk is almost full: ${room}`, MORE_SPACE);
  const figures = "checkup" in opened ? await opened.checkup.figures() : { bytes: 0, walBytes: 0 };
  const needed = figures.bytes + (figures.walBytes ?? 0);
  if (free >= needed) return passed(room);
  return failed(
    `${room}, too little for a backup there: it needs ${bytesText(needed)}`,
    `write backups to another disk, or ${MORE_SPACE}`,
  );
}

async function checkMasterKey({ config: { masterKeyFile: file }, opened }: Patient): Promise<Finding> {
  const expected = "checkup" in opened ? opened.checkup.sealedWith : undefined;
  const restore = `put the right key into ${file} from your copy; if it is lost for good: sds master-key reset`;
  try {
    const key = await readMasterKey(file, expected);
    const isCompared = expected !== undefined;
    if (key === undefined && isCompared)
      return failed(`the master key ${file} is missing, and stored secrets need it`, restore);
    if (key === undefined) return passed("there is no master key yet: the first start of sds makes it");
    if (isCompared && key.fingerprint !== expected)
      return failed(`${file} is not the key that stored secrets were encrypted with`, restore);
    return passed(isCompared ? `${file} opens the stored secrets` : `${file} was not compared with the database`);
  } catch (thrown) {
    const cause = thrown instanceof Error ? thrown.cause : undefined;
    return failed(messageOf(thrown), isForbidden(cause) ? giveAway(file) : restore);
  }
}

async function checkDescriptors({ config, opened, descriptorLimit }: Patient): Promise<Finding> {
  const serves = "checkup" in opened && opened.checkup.schema.isCurrent ? await opened.checkup.serves() : [];
  const limits = serves.map(({ processId }) => (processId === null ? null : descriptorLimit(processId)));
  const ofServe = limits.find((limit) => limit !== null);
  const limit = ofServe ?? descriptorLimit(null);
  const needed = config.deliveryConcurrency + OTHER_DESCRIPTORS;
  if (limit === null) return passed("the limit is unknown on this system");
  const whose = ofServe === undefined ? "a program started here" : "the running `sds serve`";
  const detail = `${whose} may open ${limit.toLocaleString("en")} files`;
  if (limit >= needed) return passed(detail);
  return failed(
    `${detail}, and needs ${needed}`,
    "raise the limit (LimitNOFILE=65536 in the systemd unit, ulimit -n in a shell), or lower SDS_DELIVERY_CONCURRENCY",
  );
}
