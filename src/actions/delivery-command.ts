import { headersNow } from "../delivery/deliverer.ts";
import { SdsError } from "../domain/error.ts";
import type { Shop } from "../domain/shop.ts";
import { shellQuoted } from "../lib/shell.ts";
import type { Store } from "../store/port/store.ts";

/** Maximum size in bytes of a body in a command. Linux allows 128 KiB for each argument. */
const MAX_BODY_BYTES = 100_000;

/** A command that sends a webhook, or the reason why no command can be made. */
type DeliveryCommand = { topic: string } & ({ command: string } | { refused: "no endpoint" | "too large" });

/**
 * Makes a curl command that sends a webhook as an attempt would do now: to the shop's present endpoint, with the stored
 * body, and with signatures of the present time.
 * @throws SdsError `not_found`, also for a workflow trigger
 */
export async function curlCommand(
  { deliveries, webhooks }: Pick<Store, "deliveries" | "webhooks">,
  shop: Shop,
  id: string,
  now: number,
): Promise<DeliveryCommand> {
  const [delivery, { url }] = await Promise.all([deliveries.show(shop.id, id), webhooks.settings(shop.id)]);
  const { topic, body, kind } = delivery;
  if (kind === "trigger") throw new SdsError("not_found", `there is no webhook ${id}`);
  if (url === null) return { topic, refused: "no endpoint" };
  if (Buffer.byteLength(body) > MAX_BODY_BYTES) return { topic, refused: "too large" };
  const headers = Object.entries(await headersNow(webhooks, shop.id, delivery, now));
  const options = [
    ...headers.map(([name, value]) => `--header ${shellQuoted(`${name}: ${value}`)}`),
    `--data-raw ${shellQuoted(body)}`,
    shellQuoted(url),
  ];
  // Without --globoff, curl would read brackets in the URL as several URLs.
  return { topic, command: `curl --include --globoff \\\n  ${options.join(" \\\n  ")}` };
}
