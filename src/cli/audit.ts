import type { Command } from "commander";
import { changedText } from "../actions/audit.ts";
import { AUDITED, AUDITED_ACTIONS, type AuditedAction } from "../domain/audit.ts";
import { isoUtc } from "../lib/time.ts";
import type { AuditFilter } from "../store/port/audit.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { findShop, withStore } from "./context.ts";
import { choiceOption, LIMIT_OPTION, timeParser } from "./options.ts";
import { printList } from "./print.ts";

type AuditFlags = JsonFlag & { limit: number; from?: number; to?: number; who?: string; action?: AuditedAction };

export function addAuditCommand(shop: SdsCommand): void {
  shop
    .command("audit <domain>")
    .description("list who changed what, from where and when, newest first; entries are kept for a year")
    .option(...LIMIT_OPTION)
    .option("--who <name>", 'list only entries of these people, such as "staff 42" or "command line"')
    .option(...choiceOption("--action <action>", "list only entries of this action", AUDITED_ACTIONS))
    .option("--from <time>", "list only entries since then: a date, or an age like 7d", timeParser("--from"))
    .option("--to <time>", "list only entries before then", timeParser("--to"))
    .jsonOption()
    .examples("sds shop audit alpha.myshopify.com --from 7d")
    .action(list);
}

async function list(domain: string, { json, limit, ...flags }: AuditFlags, command: Command): Promise<void> {
  const filter: AuditFilter = flags;
  const entries = await withStore(command, async (store) =>
    store.audit.list((await findShop(store, domain)).id, filter, {}, limit),
  );
  const shown = entries.map(({ number: _, at, ...entry }) => ({ at: isoUtc(at), ...entry }));
  printList(json, shown, "No entry matches.", {
    AT: ({ at }) => at,
    WHO: ({ who }) => who,
    FROM: ({ from }) => from ?? "",
    WHAT: ({ action }) => AUDITED[action],
    CHANGE: changedText,
  });
}
