import { type ClusterShop, postReward, type startWatchingReceiver } from "./cluster-traffic.ts";
import type { CompiledProgram } from "./program.ts";

const POST_INTERVAL_MS = 15;
const CROWDED_INTERVAL_MS = 200;
const DRAIN_LIMIT_MS = 180_000;
/** Above this number of concurrent posts, new posts are slowed down. */
const CROWD = 100;

/** Adds shops whose webhooks about rewards go to the receiver. */
export async function openShops(
  run: CompiledProgram["run"],
  receiverUrl: string,
  names: readonly string[],
): Promise<ClusterShop[]> {
  const shops: ClusterShop[] = [];
  for (const name of names) {
    const domain = `${name}.myshopify.com`;
    await run(["shop", "add", domain]);
    await run(["webhook", "set", "--shop", domain, "--url", receiverUrl, "--topics", "loyalty.reward_earned"]);
    const { key } = JSON.parse(await run(["key", "create", "--shop", domain, "--label", "Probe", "--json"]));
    const { secret } = JSON.parse(await run(["intake", "secret", "--shop", domain, "--json"]));
    shops.push({ domain, key, intakeSecret: secret });
  }
  return shops;
}

/**
 * Posts one record after another, to any node. Repeats posts that were not acknowledged.
 * @param anyAddress gives the address of one of the nodes
 */
export function startRewards(
  anyAddress: () => string,
  shops: readonly ClusterShop[],
  receiver: ReturnType<typeof startWatchingReceiver>,
) {
  const acknowledged = new Set<string>();
  let isOver = false;
  let posted = 0;

  /** Posts a record. @returns whether the record was acknowledged */
  async function postOne(address: string, mark = String(++posted)): Promise<boolean> {
    const shop = shops[Number(mark) % shops.length] as ClusterShop;
    const isAcknowledged = await postReward(address, shop, mark);
    if (isAcknowledged) acknowledged.add(mark);
    return isAcknowledged;
  }

  async function postMany(): Promise<void> {
    const waiting: string[] = [];
    const underWay = new Set<Promise<void>>();
    while (!isOver) {
      const mark = waiting.shift() ?? String(++posted);
      const sent = postOne(anyAddress(), mark).then((isAcknowledged) => {
        underWay.delete(sent);
        if (!isAcknowledged) waiting.push(mark);
      });
      underWay.add(sent);
      await Bun.sleep(underWay.size > CROWD ? CROWDED_INTERVAL_MS : POST_INTERVAL_MS);
    }
    await Promise.all(underWay);
  }

  const posting = postMany();
  return {
    acknowledged,
    /** Posts a new record to the node at this address. @returns whether the record was acknowledged */
    postTo: (address: string) => postOne(address),
    /** Waits until all acknowledged records are delivered. @returns what is wrong with the deliveries */
    async end(): Promise<string[]> {
      isOver = true;
      await posting;
      const began = performance.now();
      const missing = () => [...acknowledged].filter((mark) => !receiver.ids.has(mark));
      while (missing().length > 0) {
        if (performance.now() - began > DRAIN_LIMIT_MS)
          throw new Error(`${missing().length} records were acknowledged and never delivered, such as ${missing()[0]}`);
        await Bun.sleep(200);
      }
      const doubled = [...receiver.ids].filter(([, ids]) => ids.size > 1);
      return [...receiver.wrong, ...doubled.map(([mark, ids]) => `${mark} has ${ids.size} ids`)];
    },
  };
}
