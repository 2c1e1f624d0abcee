import type { Command } from "commander";
import { clearStyle, saveStyle, styleRefusal } from "../actions/style.ts";
import { invalid } from "../domain/error.ts";
import { MAX_STYLE_BYTES } from "../domain/shop.ts";
import { decodeUtf8 } from "../lib/text.ts";
import type { JsonFlag, SdsCommand } from "./command.ts";
import { operator, withShop } from "./context.ts";
import { openInput, readFailure } from "./import.ts";
import { forStdout, printJson, tell, warn, writeOut } from "./print.ts";

export function addCommands(program: SdsCommand): void {
  const style = program
    .command("style")
    .description("style the storefront widget with CSS, which changes nothing outside it")
    .examples("sds style set widget.css");

  style
    .command("set <file>")
    .description(`check a CSS file of at most ${MAX_STYLE_BYTES / 1024} KiB, and save it; - reads stdin`)
    .shopAndJsonOptions()
    .examples("sds style set widget.css")
    .action(set);

  style
    .command("show")
    .description("print the style as it was written")
    .shopAndJsonOptions()
    .examples("sds style show > widget.css")
    .action(show);

  style.command("clear").description("remove the style").shopAndJsonOptions().examples("sds style clear").action(clear);
}

async function set(file: string, { json }: JsonFlag, command: Command): Promise<void> {
  const source = await readStyle(file);
  const saved = await withShop(command, (store, shop) =>
    saveStyle(store, { shop, source, actor: operator() }, Date.now()),
  );
  if ("refused" in saved) throw invalid(styleRefusal(saved));
  warn(saved.warnings);
  if (json) printJson({ bytes: saved.bytes });
  else tell(`Saved ${saved.bytes} bytes. Browsers keep the former style for up to a day.`);
}

/** @throws SdsError `invalid` for a text that is too large or not UTF-8, `not_found` or `failed` for the file */
async function readStyle(file: string): Promise<string> {
  const { stream } = openInput(file);
  const pieces: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const piece of stream) {
      pieces.push(piece);
      size += piece.length;
      if (size > MAX_STYLE_BYTES) break;
    }
  } catch (thrown) {
    throw readFailure(file, thrown);
  }
  if (size > MAX_STYLE_BYTES) throw invalid(`this style is too large: it may have at most ${MAX_STYLE_BYTES} bytes`);
  const source = decodeUtf8(Buffer.concat(pieces));
  if (source === undefined) throw invalid("the style is not UTF-8");
  return source;
}

async function show({ json }: JsonFlag, command: Command): Promise<void> {
  const stored = await withShop(command, (store, shop) => store.styles.find(shop.id));
  const source = stored?.source ?? "";
  if (json) printJson({ bytes: Buffer.byteLength(source), source });
  else if (stored === undefined) tell("The widget has no style yet. Save one with `sds style set widget.css`.");
  else await writeOut(forStdout(source));
}

async function clear({ json }: JsonFlag, command: Command): Promise<void> {
  const existed = await withShop(command, (store, shop) => clearStyle(store, { shop, actor: operator() }, Date.now()));
  if (json) printJson({ bytes: 0 });
  else tell(existed ? "The style is removed." : "The widget had no style.");
}
