import type { DataRequest } from "../../domain/people/data-request.ts";
import type { Queries } from "./database.ts";

/** Adds requests of a shop in the caller's transaction, except those that are there already. */
export async function insertDataRequests(tx: Queries, shopId: number, requests: readonly DataRequest[]): Promise<void> {
  if (requests.length === 0) return;
  await tx.run(
    `INSERT INTO data_requests (shop_id, id, customer, requested_at, due_at)
     SELECT $1::bigint, * FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) ON CONFLICT DO NOTHING`,
    [
      shopId,
      requests.map(({ id }) => id),
      requests.map(({ customer }) => customer),
      requests.map(({ requestedAt }) => requestedAt),
      requests.map(({ dueAt }) => dueAt),
    ],
  );
}
