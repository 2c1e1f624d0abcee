import { connected, HOUR_MS } from "../../support/connected.ts";

/** Makes a shop with a contract that was loaded an hour ago. */
export async function loadedAnHourAgo() {
  const all = await connected();
  await all.queueAllEvents();
  const contract = all.createContract();
  all.test.clock.ms += HOUR_MS;
  await all.load();
  all.test.clock.ms += HOUR_MS;
  return { ...all, contract };
}
