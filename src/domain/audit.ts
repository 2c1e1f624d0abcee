/** Who runs an action, and from where. The audit list of the shop names both. */
export interface Actor {
  /** If the shop's plan lacks a feature, a merchant is refused. An operator only gets a warning. */
  role: "merchant" | "operator";
  /** A staff member of the platform, a session of the settings page, the command line, or the platform itself. */
  who: string;
  /** A visitor's network address, or the user and the machine that ran a command; null if neither is known. */
  from: string | null;
}

/** The actor of each installation and uninstallation of the app. */
export const PLATFORM: Actor = { role: "operator", who: "platform", from: null };

/** The actor of an action that a command runs. The user's name is not included. */
export const COMMAND_LINE: Actor = { role: "operator", who: "command line", from: null };

/** The actions that the audit list records. Each value is the name that people see. */
export const AUDITED = {
  "app.installed": "App installed",
  "app.uninstalled": "App uninstalled",
  "shop.connected": "Shop connected",
  "shop.disconnected": "Shop disconnected",
  "shop.renamed": "Shop renamed",
  "shop.moved": "Shop moved to another database",
  "shop.changed": "Shop settings changed",
  "triggers.changed": "Workflow triggers changed",
  "key.created": "API key created",
  "key.revoked": "API key revoked",
  "endpoint.changed": "Endpoint changed",
  "endpoint.removed": "Endpoint removed",
  "alert_address.added": "Address for alerts added",
  "alert_address.confirmed": "Address for alerts confirmed",
  "alert_address.removed": "Address for alerts removed",
  "secret.shown": "Signing secret shown",
  "secret.rotated": "Signing secret rotated",
  "intake_secret.shown": "Intake secret shown",
  "secrets.replaced": "All secrets replaced, because the master key was lost",
  "test.sent": "Test event sent",
  "delivery.resent": "Delivery sent again",
  "deliveries.resent": "Dead deliveries sent again",
  "item.retried": "Failed item tried again",
  "fields.changed": "Custom fields changed",
  "values.changed": "Values of custom fields changed",
  "style.saved": "Widget style saved",
  "style.removed": "Widget style removed",
  "person.shown": "Customer's data shown",
  "person.exported": "Customer's data exported",
  "person.answered": "Data request answered",
  "person.redacted": "Customer's data removed",
  "link.made": "Sign-in link made",
  "session.begun": "Signed in",
  "session.ended": "Signed out",
  "sessions.ended": "All sessions ended",
} as const;
export type AuditedAction = keyof typeof AUDITED;
export const AUDITED_ACTIONS = Object.keys(AUDITED) as AuditedAction[];

/** Values before or after a change. They never contain a secret or a token. A URL is cut to its host. */
export type AuditedValues = Readonly<Record<string, string | number | boolean | null>>;

/** An entry in a shop's audit list. */
export interface AuditEntry {
  /** Epoch milliseconds. */
  at: number;
  who: string;
  from: string | null;
  action: AuditedAction;
  /** What was changed or looked at: an id, a label or a gid; null for the shop itself. */
  subject: string | null;
  before: AuditedValues | null;
  after: AuditedValues | null;
}

export function auditEntry(
  { who, from }: Actor,
  at: number,
  action: AuditedAction,
  { subject = null, before = null, after = null }: Partial<Pick<AuditEntry, "subject" | "before" | "after">> = {},
): AuditEntry {
  return { at, who, from, action, subject, before, after };
}
