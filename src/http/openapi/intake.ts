import type { TObject } from "@sinclair/typebox";
import { RECORD_SCHEMAS, RECORD_TYPES } from "../../domain/records/record-schemas.ts";
import { refusalRefs } from "./errors.ts";
import { COMMON, headerParameter, headerRefs } from "./headers.ts";
import { type JsonSchema, jsonBody, type OpenApiOperation } from "./parts.ts";
import { DOMAIN, SAMPLE_RECORDS } from "./sample-rows.ts";

/** Returns the schema of each type of record, with an example, for `components.schemas`. */
export function recordSchemas(): TObject[] {
  return RECORD_TYPES.map((type) => ({ ...RECORD_SCHEMAS[type], examples: [SAMPLE_RECORDS[type]] }));
}

/** The schema of any record. Generated clients choose the record's schema by `type`. */
export const INTAKE_RECORD: JsonSchema = {
  description: "A record: the state of something, or something that happened.",
  oneOf: RECORD_TYPES.map((type) => ({ $ref: refOf(type) })),
  discriminator: {
    propertyName: "type",
    mapping: Object.fromEntries(RECORD_TYPES.map((type) => [type, refOf(type)])),
  },
};

function refOf(type: keyof typeof RECORD_SCHEMAS): string {
  return `#/components/schemas/${RECORD_SCHEMAS[type].title}`;
}

/** Describes POST /intake. */
export function intakeOperation(): OpenApiOperation {
  const record = { $ref: "#/components/schemas/IntakeRecord" };
  const records = Object.values(SAMPLE_RECORDS);
  return {
    operationId: "postRecords",
    tags: ["Intake"],
    summary: "Send records",
    description:
      "Records from the billing system. They are kept all together or not at all, and applied in their order. The " +
      "answer comes when they are on the disk, with the events that they caused. A record that says nothing new " +
      "changes nothing, so it is safe to send a body again. The content type does not matter.",
    security: [{ intakeSignature: [] }],
    parameters: [headerParameter("X-Service-Shop", "The shop's domain.", { type: "string", examples: [DOMAIN] })],
    requestBody: {
      required: true,
      description:
        "One record, an array of records, or one record on each line (NDJSON): up to 1 MiB of UTF-8 and 250 records.",
      content: {
        "application/json": {
          schema: { anyOf: [record, { type: "array", items: record }] },
          examples: {
            one: { summary: "One record", value: SAMPLE_RECORDS.customer },
            several: { summary: "Several records", value: records },
          },
        },
        "application/x-ndjson": {
          schema: { type: "string" },
          example: records.map((each) => `${JSON.stringify(each)}\n`).join(""),
        },
      },
    },
    responses: {
      202: {
        description: "The records are on the disk.",
        headers: headerRefs(COMMON),
        content: jsonBody("IntakeResult", { accepted: records.length }),
      },
      ...refusalRefs(["BadRecord", "WrongSignature", "TooLarge", "Internal", "Unavailable"]),
    },
  };
}
