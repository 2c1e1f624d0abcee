import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { currentUser, ownerName } from "../lib/users.ts";
import { SETTING_NAMES } from "../setting-names.ts";
import type { SdsCommand } from "./command.ts";
import { configOf } from "./context.ts";
import { INITIAL_ENVIRONMENT, programCommand } from "./dependencies.ts";
import { printLine, warn } from "./print.ts";

/** The folder that systemd makes for a unit with `StateDirectory=sds`. */
const STATE_FOLDER = "/var/lib/sds";

/**
 * The limits of the service. PostgreSQL's socket needs AF_UNIX. `MemoryDenyWriteExecute` is left out, because it
 * disables the compiler inside Bun.
 */
const SANDBOX = [
  "CapabilityBoundingSet=",
  "NoNewPrivileges=yes",
  "ProtectSystem=strict",
  "PrivateTmp=yes",
  "PrivateDevices=yes",
  "PrivateUsers=yes",
  "ProtectHostname=yes",
  "ProtectClock=yes",
  "ProtectKernelTunables=yes",
  "ProtectKernelModules=yes",
  "ProtectKernelLogs=yes",
  "ProtectControlGroups=yes",
  "ProtectProc=invisible",
  "ProcSubset=pid",
  "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
  "RestrictNamespaces=yes",
  "RestrictRealtime=yes",
  "RestrictSUIDSGID=yes",
  "LockPersonality=yes",
  "RemoveIPC=yes",
  "SystemCallArchitectures=native",
  "SystemCallFilter=@system-service",
  "SystemCallFilter=~@privileged @resources",
  "SystemCallErrorNumber=EPERM",
  "DevicePolicy=closed",
];

export function addCommands(program: SdsCommand): void {
  const service = program
    .command("service")
    .description("run the service under systemd")
    .examples("sds --data /var/lib/sds service print > /etc/systemd/system/sds.service");

  service
    .command("print")
    .description("print a systemd unit that runs this program on this data folder, as the folder's owner")
    .examples("sds --data /var/lib/sds service print > /etc/systemd/system/sds.service")
    .action((_options: object, command: Command) => {
      const { data } = configOf(command);
      printLine(unitFor(data, programCommand()));
      if (data !== STATE_FOLDER && !existsSync(data))
        warn([`there is no ${data} yet: the service needs it, so add a shop first`]);
      else if (data !== STATE_FOLDER && ownerName(data) === "root")
        warn([`the service runs as root, who owns ${data}: give the folder to a user of its own with chown -R`]);
      const lost = Object.keys(INITIAL_ENVIRONMENT).filter(
        (name) => name !== "SDS_DATA" && SETTING_NAMES.includes(name),
      );
      if (lost.length > 0)
        warn([`the unit does not have ${lost.join(", ")} of this environment: put that into ${join(data, "sds.env")}`]);
    });
}

/**
 * Writes a systemd unit that runs the program as the owner of the data folder. Settings come from files that the
 * program reads itself.
 * @param flags empty for the unit of the Debian package, because the package's settings file names the folder
 */
export function unitFor(folder: string, program: readonly string[], flags = ["--data", folder]): string {
  const isStateFolder = folder === STATE_FOLDER;
  // systemd creates the state folder for the user sds. For any other folder, the service runs as the folder's owner. If
  // the folder does not exist yet, the current user will own it.
  const place = isStateFolder
    ? ["User=sds", "StateDirectory=sds", "StateDirectoryMode=0700"]
    : [`User=${existsSync(folder) ? ownerName(folder) : currentUser()}`, `ReadWritePaths=${quoted(folder)}`];
  // ProtectHome would hide a data folder or a program in a home folder.
  const isHome =
    /^\/(?:home|root|run\/user)\//.test(`${folder}/`) || program.some((part) => /^\/(?:home|root)\//.test(part));
  const command = [...program, ...flags, "serve"].map(quoted).join(" ");
  return [
    "[Unit]",
    "Description=Subscription Data Service",
    "Wants=network-online.target",
    "After=network-online.target postgresql.service",
    "",
    "[Service]",
    "Type=exec",
    `ExecStart=${command}`,
    "ExecReload=/bin/kill -HUP $MAINPID",
    ...place,
    "UMask=0077",
    "Restart=on-failure",
    "RestartSec=2",
    "RestartPreventExitStatus=2 3",
    "TimeoutStopSec=30",
    "LimitNOFILE=65536",
    ...(isHome ? [] : ["ProtectHome=yes"]),
    ...SANDBOX,
    "",
    "[Install]",
    "WantedBy=multi-user.target",
  ].join("\n");
}

/** Quotes an argument for a unit file, where `%` and `$` begin placeholders (systemd.unit(5), systemd.service(5)). */
function quoted(word: string): string {
  const escaped = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  return /^[\w/.:@+%$-]+$/.test(escaped) ? escaped : `"${escaped.replaceAll(/["\\]/g, "\\$&")}"`;
}
