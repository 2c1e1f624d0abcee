/** @jsxImportSource preact */
import { curlCommand, type DeliveryCommand } from "../../actions/delivery-command.ts";
import type { Handler } from "./admin-request.ts";
import { CopyButton, Empty, Link } from "./components.tsx";
import { LOG_OF } from "./deliveries.tsx";

/**
 * Shows a webhook as a curl command. It is a page of its own, because its signatures are of the time when it is opened.
 */
export const showCommand: Handler = async ({ shop, id }, { store, now }) => {
  const made = await curlCommand(store, shop, id, now());
  const trail = { to: `/deliveries/${id}`, name: `Delivery: ${made.topic}` };
  return { title: "Send it with curl", tab: LOG_OF.webhook, trail, content: <CommandPart made={made} /> };
};

function CommandPart({ made }: { made: DeliveryCommand }) {
  if ("command" in made)
    return (
      <>
        <p>
          This command sends the webhook once to your endpoint, from the computer on which you run it. It has the same
          id, body and <code>X-Service-Signature</code> as every attempt. Its <code>webhook-signature</code> is of now:
          receivers that check the time accept it for five minutes. The delivery log does not count it.
        </p>
        <CopyButton of="curl" name="the command" />
        <section aria-label="Command">
          <pre tabIndex={0}>
            <code id="curl" class="body">
              {made.command}
            </code>
          </pre>
        </section>
      </>
    );
  if (made.refused === "too large") return <Empty id="too-large">The payload is too large for a command.</Empty>;
  return (
    <Empty id="no-endpoint">
      The webhook has no address, because no endpoint is set. <Link to="/webhooks">Set an endpoint</Link>
    </Empty>
  );
}
