/** @jsxImportSource preact */
import { parseOverlap } from "../../domain/deliveries/delivery.ts";
import type { Handler } from "./admin-request.ts";
import { Confirm, Copyable, Form, Link, Time } from "./components.tsx";

/** The page that shows the signing secret. */
export const WEBHOOKS = "/webhooks";

/** How long the former secret signs too, after a rotation. The empty value means no overlap. */
const OVERLAPS = { "": "Not at all", "1h": "For 1 hour", "24h": "For 24 hours", "7d": "For 7 days" };
const USUAL_OVERLAP = "24h";

export const askToRotate: Handler = async () => {
  const content = (
    <Confirm id="rotate-secret" action={`${WEBHOOKS}/rotate`} button="Make a new secret" back={WEBHOOKS}>
      <p>
        Make a new signing secret? Deliveries that are queued from then on are signed with it, so the receiver needs it.
        Older deliveries keep their <code>X-Service-Signature</code>, even when they are sent again. The receiver should
        therefore accept both secrets for a while.
      </p>
      <label for="overlap">
        Make <code>webhook-signature</code> with the former secret too
      </label>
      <select id="overlap" name="overlap" aria-describedby="overlap-help">
        {Object.entries(OVERLAPS).map(([value, text]) => (
          <option value={value} selected={value === USUAL_OVERLAP}>
            {text}
          </option>
        ))}
      </select>
      <small id="overlap-help">
        Until then, a receiver that verifies <code>webhook-signature</code> may have either secret. If somebody else may
        know the former secret, choose "{OVERLAPS[""]}".
      </small>
    </Confirm>
  );
  return { title: "Rotate the signing secret", tab: WEBHOOKS, content };
};

export const rotateSecret: Handler = async ({ shop, form }, { store, now }) => {
  const overlap = form.get("overlap") ?? "";
  const overlapMs = overlap === "" ? 0 : parseOverlap(overlap);
  const value = await store.webhooks.rotateSecret(shop.id, now(), overlapMs);
  const text = "This is the new signing secret. Give it to the receiver:";
  return { to: WEBHOOKS, notices: [{ text, copy: { name: "the new signing secret", value } }] };
};

interface SecretPartProps {
  /** Shown only on request. */
  secret: string | undefined;
  overlapEndsAt: number | null;
}

export function SecretPart({ secret, overlapEndsAt }: SecretPartProps) {
  return (
    <section aria-labelledby="secret-heading">
      <h2 id="secret-heading">Signing secret</h2>
      <p>
        Every webhook has the header <code>X-Service-Signature: sha256=</code> followed by the HMAC-SHA256 of its body
        with this secret, in hexadecimal. The receiver computes the same value and compares the two. Every webhook also
        has <code>webhook-id</code>, <code>webhook-timestamp</code> and <code>webhook-signature</code>, which the
        libraries of Standard Webhooks verify.
      </p>
      {overlapEndsAt === null ? null : (
        <p id="overlap-end">
          Until <Time ms={overlapEndsAt} />, <code>webhook-signature</code> has a signature of the former secret too.
        </p>
      )}
      {secret === undefined ? (
        <Form id="show-secret" class="inline" action={`${WEBHOOKS}/secret`}>
          <button type="submit" class="outline">
            Show the signing secret
          </button>
        </Form>
      ) : (
        <Copyable id="secret" value={secret} name="the signing secret" />
      )}
      <p>
        <Link id="rotate" to={`${WEBHOOKS}/rotate`}>
          Rotate the signing secret
        </Link>
      </p>
    </section>
  );
}
