/** @jsxImportSource preact */
import { confirmAlertAddress, removeAlertAddress } from "../actions/alert-address.ts";
import { hashToken, isToken } from "../actions/session.ts";
import type { Store } from "../store/port/store.ts";
import { respondMessage } from "./admin/layout.tsx";
import { queryOf, type Route } from "./routes.ts";

interface AlertLinks {
  store: Pick<Store, "alerts" | "audited">;
  now: () => number;
}

/**
 * Makes the pages that links in e-mails open. The pages need no session, because each link has a token. Mail scanners
 * follow links, so only the button on a page changes something.
 */
export function alertRoutes({ store, now }: AlertLinks): Route[] {
  const find = async (request: Request) => {
    const token = new URLSearchParams(queryOf(request.url)).get("token") ?? "";
    return isToken(token) ? { token, found: await store.alerts.findAddress(hashToken(token)) } : undefined;
  };
  const ask = (verb: "confirm" | "end") => async (request: Request) => {
    const link = await find(request);
    if (link?.found === undefined) return unknownLink();
    const { token, found } = link;
    const [title, question, button] = QUESTIONS[verb];
    const content = (
      <form id={verb} method="post" action={`/alerts/${verb}?token=${token}`}>
        <p>{question(found.shop.domain)}</p>
        <button type="submit" id="yes">
          {button}
        </button>
      </form>
    );
    return respondMessage(200, title, content);
  };
  return [
    {
      path: "/alerts/confirm",
      methods: {
        GET: ask("confirm"),
        POST: async (request) => {
          const link = await find(request);
          if (link?.found === undefined) return unknownLink();
          await confirmAlertAddress(store, link.found.shop, link.found, hashToken(link.token), now());
          return respondMessage(200, "Your address is confirmed", <p>You get an e-mail when something fails.</p>);
        },
      },
    },
    {
      path: "/alerts/end",
      methods: {
        GET: ask("end"),
        POST: async (request) => {
          const link = await find(request);
          if (link?.found !== undefined) await removeAlertAddress(store, link.found.shop, link.found, now());
          return respondMessage(200, "The e-mails have ended", <p>Your address is removed from this service.</p>);
        },
      },
    },
  ];
}

const QUESTIONS = {
  confirm: [
    "Confirm your address",
    (shop: string) => `You then get an e-mail when the webhooks or the connection of ${shop} fail.`,
    "Confirm",
  ],
  end: ["End the e-mails", (shop: string) => `You then get no e-mails about ${shop}.`, "End the e-mails"],
} as const;

function unknownLink(): Response {
  return respondMessage(404, "This link doesn't work", <p>The address was removed, or the link is incomplete.</p>);
}
