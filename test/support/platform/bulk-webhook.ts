import type { BulkOperation } from "./bulk-operations.ts";
import { zoned } from "./timestamps.ts";

/** The body of `bulk_operations/finish`. It has no URL of the result, so the receiver has to query the operation. */
export function bulkBody({ id, status, createdAt, completedAt, errorCode }: BulkOperation) {
  return {
    admin_graphql_api_id: id,
    completed_at: zoned(completedAt),
    created_at: zoned(createdAt),
    error_code: errorCode?.toLowerCase() ?? null,
    status: status.toLowerCase(),
    type: "query",
  };
}
