import { noAccess } from "../actions/access.ts";
import { type CursorProblem, SdsError } from "../domain/error.ts";
import type { Refusal } from "../domain/records/refusal.ts";
import { RESOURCES, type Resource } from "../domain/resources.ts";

export const DATABASE_BUSY = "The database is busy or cannot be used. It is safe to try again.";

/** Maximum number of records in a body of the intake. It limits the size of a commit. */
export const MAX_INTAKE_RECORDS = 250;
const IMPORT_MORE = "Send more in several bodies, or with `sds import`.";

const CHECKPOINT_TEXTS: Record<CursorProblem, string> = {
  other_shop: "is from another shop. Use the API key of that shop.",
  other_resource: "is from another resource. Each resource has its own checkpoints.",
  restored:
    "is from before a restore or a failover of the database. Read all pages again, and keep the X-Checkpoint of the " +
    "first one.",
  not_issued: "was not issued by this database. Send X-Checkpoint unchanged, URL-encoded.",
};
const CURSOR_TEXTS: Record<CursorProblem, string> = {
  ...CHECKPOINT_TEXTS,
  other_resource: "is from another resource. Pass nextCursor on to the list that gave it.",
  not_issued: "is not from a page of this list. Pass nextCursor on unchanged, URL-encoded.",
};

/** The refusals of the API. The documentation shows these texts too. */
export const refusals = {
  badCursor: (reason: CursorProblem) => new SdsError("bad_cursor", `The cursor ${CURSOR_TEXTS[reason]}`, { reason }),
  badCheckpoint: (reason: CursorProblem) =>
    new SdsError("bad_cursor", `The checkpoint ${CHECKPOINT_TEXTS[reason]}`, { reason }),
  unknownKey: () => new SdsError("unauthorized", "Send a valid API key as `Authorization: Bearer cad_pk_...`."),
  planRequired: () => new SdsError("plan_required", noAccess("API access")),
  notFound: () =>
    new SdsError(
      "not_found",
      `There is nothing here. The API has ${[...RESOURCES, "shop"].map((name) => `/api/v1/${name}`).join(", ")}.`,
    ),
  noRow: (resource: Resource) => new SdsError("not_found", `There are no ${resource} with this id.`),
  methodNotAllowed: (methods: readonly string[]) =>
    new SdsError(
      "method_not_allowed",
      `Only ${methods.join(", ")} ${methods.length === 1 ? "is" : "are"} allowed here.`,
    ),
  /** @param index of the record, counted from 0 */
  badRecord: ({ index, field, reason }: Refusal & { index: number }) => {
    const where = field === "" ? `Record ${index}` : `Record ${index}, field ${field}:`;
    return new SdsError("bad_record", `${where} ${reason}. Nothing of this body was kept.`);
  },
  wrongSignature: () =>
    new SdsError(
      "unauthorized",
      "Send X-Service-Shop, and X-Service-Signature: sha256= and the hex HMAC-SHA256 of the raw body " +
        "with that shop's intake secret.",
    ),
  tooLarge: (maxBytes: number) => new SdsError("too_large", `The body may have ${maxBytes} bytes at most.`),
  tooLargeForIntake: (maxBytes: number) =>
    new SdsError("too_large", `The body may have ${maxBytes} bytes at most. ${IMPORT_MORE}`),
  tooManyRecords: () =>
    new SdsError("too_large", `The body may have ${MAX_INTAKE_RECORDS} records at most. ${IMPORT_MORE}`),
  shopMoves: () =>
    new SdsError("unavailable", "The shop moves to another database. Send this to the service of that database."),
  tooManyRequests: () =>
    new SdsError("rate_limited", "This API key makes too many requests. Slow down, and try again."),
  internal: () => new SdsError("internal", "Something went wrong on our side. It is safe to try again."),
};

export const INTAKE_LIMIT = { maxBytes: 1024 * 1024, tooLarge: refusals.tooLargeForIntake };
