/** @jsxImportSource preact */
import { curlCommand } from "../../../actions/delivery-command.ts";
import type { Handler } from "../admin-request.ts";
import { withinHtml } from "../code.tsx";
import { CopyButton, Empty, Link } from "../components.tsx";
import { LOG_OF } from "./log.tsx";

/**
 * Shows a webhook as a curl command. The command has a page of its own, because its signature is made for the current
 * time and soon expires.
 */
export const showCommand: Handler = async ({ shop, id }, { store, now }) => {
  const made = await curlCommand(store, shop, id, now());
  const page = {
    title: "Send it with curl",
    tab: LOG_OF.webhook,
    trail: { to: `/deliveries/${id}`, name: `Delivery: ${made.topic}` },
  };
  if ("command" in made && withinHtml(made.command) === made.command)
    return {
      ...page,
      actions: <CopyButton of="curl" name="the command" />,
      content: <Command command={made.command} />,
    };
  const content =
    "refused" in made && made.refused === "no endpoint" ? (
      <Empty id="no-endpoint">
        The webhook has no address, because no endpoint is set. <Link to="/webhooks">Set an endpoint</Link>
      </Empty>
    ) : (
      <Empty id="too-large">The payload is too large for a command.</Empty>
    );
  return { ...page, content };
};

function Command({ command }: { command: string }) {
  return (
    <>
      <p>
        This command sends the webhook once to your endpoint, from the computer on which you run it. It has the same id,
        body and <code>X-Service-Signature</code> as every attempt. Its <code>webhook-signature</code> is new: receivers
        that check the time accept it for five minutes. The delivery log does not count it.
      </p>
      <section aria-label="Command">
        <pre tabIndex={0}>
          <code id="curl" class="body">
            {command}
          </code>
        </pre>
      </section>
    </>
  );
}
