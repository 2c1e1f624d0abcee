import { parseArgs } from "node:util";
import { StandIn } from "./stand-in.ts";

/** The stand-in as a process of its own, for flow tests and benches. They control it through `/control`. */
const { values } = parseArgs({
  options: {
    port: { type: "string", default: "0" },
    "webhooks-to": { type: "string" },
    "restore-rate": { type: "string", default: "100" },
    "maximum-available": { type: "string", default: "2000" },
    "token-life": { type: "string" },
    "client-secret-file": { type: "string" },
  },
});

const secretFile = values["client-secret-file"];
const webhooksTo = values["webhooks-to"];
const tokenLife = values["token-life"];
const standIn = await StandIn.start({
  port: Number(values.port),
  restoreRate: Number(values["restore-rate"]),
  maximumAvailable: Number(values["maximum-available"]),
  ...(webhooksTo === undefined ? {} : { webhooksTo }),
  ...(tokenLife === undefined ? {} : { tokenLife: Number(tokenLife) }),
  ...(secretFile === undefined ? {} : { clientSecret: (await Bun.file(secretFile).text()).trim() }),
});
process.stdout.write(`listening on ${standIn.address}\n`);
