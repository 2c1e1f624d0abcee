/** @jsxImportSource preact */
import * as actions from "../../../actions/endpoint.ts";
import { verifyFunctions } from "../../../docs/verify-functions.ts";
import { parseOverlap } from "../../../domain/deliveries/delivery.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler } from "../admin-request.ts";
import { InlineCode } from "../code.tsx";
import { Confirm, Copyable, CopyButton, Form, Link, Time } from "../components.tsx";

/** Paths of the tab with the signing secret, and of the page that rotates the secret. */
const TAB = "/webhooks/secret";
const ROTATE = "/webhooks/rotate";

/** How long `webhook-signature` also has a signature with the former secret. Empty means no overlap. */
const OVERLAPS = { "": "Not at all", "1h": "For 1 hour", "24h": "For 24 hours", "7d": "For 7 days" };
const USUAL_OVERLAP = "24h";

export const showSecretTab: Handler = (request, dependencies) => secretPage(request, dependencies);

/** Shows the secret itself. Only a posted form gets this page, so no link can show the secret. */
export const showSecret: Handler = async (request, dependencies) =>
  secretPage(request, dependencies, await actions.showSecret(dependencies.store, request, dependencies.now()));

export const askToRotate: Handler = async () => {
  const content = (
    <Confirm id="rotate-secret" action={ROTATE} button="Make a new secret" back={TAB}>
      <p>
        Make a new signing secret? Webhooks that are queued from then on are signed with it, so your endpoint needs it.
        Older webhooks keep their <code>X-Service-Signature</code>, even when they are sent again. Your endpoint should
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
        Until then, a program that verifies <code>webhook-signature</code> may have either secret. If somebody else may
        know the former secret, choose "{OVERLAPS[""]}".
      </small>
    </Confirm>
  );
  return { title: "Rotate the signing secret", tab: TAB, trail: { to: TAB, name: "Webhooks" }, content };
};

export const rotateSecret: Handler = async (request, { store, now }) => {
  const overlap = request.form.get("overlap") ?? "";
  const overlapMs = overlap === "" ? 0 : parseOverlap(overlap);
  const value = await actions.rotateSecret(store, request, now(), overlapMs);
  const text = "This is the new signing secret. Give it to your endpoint:";
  return { to: TAB, notices: [{ text, copy: { name: "the new signing secret", value } }] };
};

async function secretPage(
  { shop }: AdminRequest,
  { store, now }: AdminDependencies,
  secret?: string,
): Promise<AdminPage> {
  const overlapEndsAt = (await store.webhooks.overlapEndsAt(shop.id)) ?? 0;
  const content = (
    <>
      <p>
        Every webhook is signed with this secret. Your endpoint verifies the signature, and so knows that the webhook
        comes from here.
      </p>
      <div class="columns">
        <SecretPart secret={secret} overlapEndsAt={overlapEndsAt > now() ? overlapEndsAt : null} />
        <VerifyPart highlight={(await import("../../docs/highlighter.tsx")).highlight} />
      </div>
    </>
  );
  return { title: "Webhooks", tab: TAB, content };
}

interface SecretPartProps {
  /** The secret; undefined until the visitor asks to see it. */
  secret: string | undefined;
  overlapEndsAt: number | null;
}

function SecretPart({ secret, overlapEndsAt }: SecretPartProps) {
  return (
    <section class="card" aria-labelledby="secret-heading">
      <h2 id="secret-heading">Signing secret</h2>
      {secret === undefined ? (
        <>
          <p class="secret" aria-hidden="true">
            whsec_••••••••••••••••
          </p>
          <Form id="show-secret" action={TAB}>
            <button type="submit" class="outline">
              Show the signing secret
            </button>
          </Form>
        </>
      ) : (
        <Copyable id="secret" value={secret} name="the signing secret" />
      )}
      {overlapEndsAt === null ? null : (
        <p id="overlap-end">
          Until <Time ms={overlapEndsAt} />, <code>webhook-signature</code> has a signature of the former secret too.
        </p>
      )}
      <p>
        If somebody else may know it, make a new one.{" "}
        <Link id="rotate" to={ROTATE}>
          Rotate the signing secret
        </Link>
      </p>
    </section>
  );
}

interface VerifyPartProps {
  highlight: typeof import("../../docs/highlighter.tsx").highlight;
}

/** Code that verifies a webhook, in several languages. One language is open at a time. */
function VerifyPart({ highlight }: VerifyPartProps) {
  return (
    <section aria-labelledby="verify-heading">
      <h2 id="verify-heading">Verify a webhook</h2>
      <p>
        The header <code>X-Service-Signature</code> is <code>sha256=</code> and the HMAC-SHA256 of the body with the
        secret, in hexadecimal. Take the body as it came, before anything parses it.
      </p>
      {verifyFunctions().map(({ language, framework, rawBody, header, highlighting, code }, index) => (
        <details name="code" open={index === 0} class="language">
          <summary>{language}</summary>
          <div class="title">
            <p>
              Body{framework === undefined ? "" : ` in ${framework}`}: <InlineCode text={rawBody} />. Header:{" "}
              <InlineCode text={header} />.
            </p>
            <CopyButton of={`verify-${highlighting}`} name={`the code in ${language}`} />
          </div>
          <pre tabIndex={0}>
            <code id={`verify-${highlighting}`}>{highlight(code, highlighting)}</code>
          </pre>
        </details>
      ))}
      <p>
        Each webhook also has the headers of Standard Webhooks, which prove its time too.{" "}
        <a href="/docs/webhooks#standard-webhooks">Use a library for them</a>, or take{" "}
        <a href="/docs/receivers">a whole receiver</a>.
      </p>
    </section>
  );
}
