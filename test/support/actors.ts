import { type Actor, type AuditEntry, auditEntry } from "../../src/domain/audit.ts";

export const MERCHANT: Actor = { role: "merchant", who: "session 1a2b3c", from: "192.0.2.7" };
export const OPERATOR: Actor = { role: "operator", who: "command line", from: "ada@vm" };

/** The audit entry about the beginning of a session. */
export function signInAt(at: number): AuditEntry {
  return auditEntry(MERCHANT, at, "session.begun");
}
