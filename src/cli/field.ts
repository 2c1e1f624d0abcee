import type { Command } from "commander";
import { archiveField, changeFields, findFields, setFieldValues } from "../actions/field.ts";
import { invalid, SdsError } from "../domain/error.ts";
import {
  addField,
  changeField,
  FIELD_TYPES,
  type FieldDefinition,
  fieldNamed,
  restoreField,
} from "../domain/fields/definition.ts";
import { isoUtcOrNull } from "../lib/time.ts";
import { createRecordWriter } from "../mirror/record-writer.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { operator, withShop } from "./context.ts";
import { choiceOption, splitList } from "./options.ts";
import { forStdout, printJson, printLine, printList, tell, warn } from "./print.ts";

interface DefinitionFlags extends JsonFlag {
  label?: string;
  type?: FieldDefinition["type"];
  options?: string[];
  option?: string[];
  subscriberEditable?: boolean;
  notSubscriberEditable?: boolean;
  personal?: boolean;
  notPersonal?: boolean;
}

export function addCommands(program: SdsCommand): void {
  const field = program
    .command("field")
    .description("define custom fields of subscriptions, and set their values")
    .examples("sds field add gift_note --label 'Gift note' --type text");

  definitionOptions(field.command("add <key>").description("add a custom field; its key never changes"))
    .examples("sds field add size --label Size --type choice --options S,M,L")
    .action(add);

  field
    .command("list")
    .description("list the custom fields, also archived ones")
    .shopAndJsonOptions()
    .examples("sds field list")
    .action(list);

  definitionOptions(field.command("set <key>").description("change a custom field"))
    .examples("sds field set size --options S,M,L,XL")
    .action(set);

  field
    .command("archive <key>")
    .description("hide a custom field; its values stay stored")
    .option("--undo", "bring the field back, with its values")
    .shopAndJsonOptions()
    .examples("sds field archive size")
    .action(archive);

  field
    .command("value <subscription> <key> [value]")
    .description("set the value of a subscription's custom field, or print it")
    .option("--clear", "remove the value")
    .shopAndJsonOptions()
    .examples("sds field value gid://shopify/SubscriptionContract/1 size M")
    .action(value);
}

function definitionOptions(command: SdsCommand): SdsCommand {
  return command
    .option("--label <text>", "the name that people see, 1 to 80 characters")
    .option(...choiceOption("--type <type>", "type of the values", FIELD_TYPES))
    .option("--options <a,b>", "the options of a choice, separated by commas", splitList)
    .option("--option <text>", "one option of a choice; repeat the flag for each", (text, all: string[] = []) => [
      ...all,
      text,
    ])
    .option("--subscriber-editable", "subscribers may edit the value")
    .option("--not-subscriber-editable", "only the merchant may edit the value (default)")
    .option("--personal", "the redaction of a customer removes the value (default for text)")
    .option("--not-personal", "a redaction keeps the value (default for other types)")
    .shopAndJsonOptions() as SdsCommand;
}

/** Reads the options of a definition. @throws SdsError `invalid` for options that contradict each other */
function definitionOf(flags: DefinitionFlags) {
  const { label, type, options, option } = flags;
  if (options !== undefined && option !== undefined) throw invalid("say either --options or --option");
  const subscriberEditable = oneOf(flags, "subscriberEditable", "notSubscriberEditable", "--subscriber-editable");
  const personal = oneOf(flags, "personal", "notPersonal", "--personal");
  const choices = options ?? option;
  return {
    ...(label !== undefined && { label }),
    ...(type !== undefined && { type }),
    ...(choices !== undefined && { options: choices }),
    ...(subscriberEditable !== undefined && { subscriberEditable }),
    ...(personal !== undefined && { personal }),
  };
}

function oneOf(
  flags: DefinitionFlags,
  yes: "subscriberEditable" | "personal",
  no: "notSubscriberEditable" | "notPersonal",
  name: string,
): boolean | undefined {
  if (flags[yes] && flags[no]) throw invalid(`say either ${name} or --not-${name.slice(2)}`);
  return flags[yes] ?? (flags[no] ? false : undefined);
}

async function add(key: string, flags: DefinitionFlags, command: Command): Promise<void> {
  const { label, type, ...more } = definitionOf(flags);
  if (label === undefined || type === undefined) throw invalid("say --label and --type");
  await change(command, key, flags, (fields) => addField(fields, { key, label, type, ...more }), "Added");
}

async function set(key: string, flags: DefinitionFlags, command: Command): Promise<void> {
  const definition = definitionOf(flags);
  if (Object.keys(definition).length === 0)
    throw invalid("say what to set: --label, --type, --options, --subscriber-editable or --personal");
  await change(command, key, flags, (fields) => changeField(fields, key, definition), "Changed");
}

async function archive(key: string, flags: JsonFlag & { undo?: boolean }, command: Command): Promise<void> {
  if (flags.undo) return change(command, key, flags, (fields) => restoreField(fields, key), "Brought back");
  const now = Date.now();
  const fields = await withShop(command, (store, shop) => archiveField(store, { shop, actor: operator() }, key, now));
  report(fields, key, flags, "Archived");
}

/** Changes the definitions, and reports the changed field. */
async function change(
  command: Command,
  key: string,
  flags: JsonFlag,
  changeDefinitions: (fields: FieldDefinition[]) => FieldDefinition[],
  done: string,
): Promise<void> {
  const request = { change: changeDefinitions, subject: key, actor: operator() };
  const { fields, warnings } = await withShop(command, (store, shop) =>
    changeFields(store, { shop, ...request }, Date.now()),
  );
  warn(warnings);
  report(fields, key, flags, done);
}

/** A definition as the commands print it. */
function shownField({ archivedAt, hasValues: _, ...field }: FieldDefinition) {
  return { ...field, archivedAt: isoUtcOrNull(archivedAt) };
}

/** @param done begins the message, for example "Archived" */
function report(fields: readonly FieldDefinition[], key: string, { json }: JsonFlag, done: string): void {
  if (json) printJson(shownField(fieldNamed(fields, key)));
  else tell(`${done} the field ${key}.`);
}

async function list({ json }: JsonFlag, command: Command): Promise<void> {
  const fields = await withShop(command, (store, shop) => store.fields.list(shop.id));
  const ifEmpty =
    "There is no custom field yet. Add one with `sds field add gift_note --label 'Gift note' --type text`.";
  printList(json, fields.map(shownField), ifEmpty, {
    KEY: ({ key }) => key,
    LABEL: ({ label }) => label,
    TYPE: ({ type, options }) => (type === "choice" ? `choice: ${options.join(", ")}` : type),
    "EDITABLE BY": ({ subscriberEditable }) => (subscriberEditable ? "subscribers" : "the merchant"),
    PERSONAL: ({ personal }) => (personal ? "yes" : "no"),
    ARCHIVED: ({ archivedAt }) => archivedAt ?? "",
  });
}

type ValueFlags = JsonFlag & { clear?: boolean };

async function value(
  name: string,
  key: string,
  text: string | undefined,
  { clear = false, json }: ValueFlags,
  command: Command,
): Promise<void> {
  if (clear && text !== undefined) throw invalid("say either a value or --clear");
  const stored = await withShop(command, async (store, shop) => {
    const { subscription } = await findFields(store, shop, name);
    if (clear || text !== undefined) {
      const writer = createRecordWriter(store.mirror, Date.now);
      const changes = [{ key, text: clear ? null : (text ?? null) }];
      const request = { shop, subscription: subscription.shopifyId, changes, actor: operator() };
      warn(await setFieldValues(store, writer, request, Date.now()));
    }
    const { fields } = await findFields(store, shop, name);
    const found = fields.find(({ definition }) => definition.key === key);
    if (found === undefined) throw new SdsError("not_found", `there is no field ${key}, or it is archived`);
    return { subscription: subscription.shopifyId, key, value: found.value };
  });
  if (json) printJson(stored);
  else if (stored.value === null) tell("The field has no value.");
  else printLine(forStdout(String(stored.value)));
}
