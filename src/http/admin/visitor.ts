import type { Shop } from "../../domain/shop.ts";
import type { RouteContext } from "../routes.ts";

/** The start of all paths of the page. Requests below /admin have a cookie. Requests below /app have an ID token. */
type Root = "/admin" | "/app";

/** Who looks at the page, and through which door. Handlers know nothing else about where a request comes from. */
export interface Visitor {
  /** A request cannot name another shop. */
  shop: Shop;
  /** Names the person in logs: a session or the number of a staff member. */
  who: string;
  /** 32 bytes that name the session. The session's used forms and notices are stored under this key. */
  key: Uint8Array;
  /** The token that every form must contain. */
  csrf: string;
  root: Root;
  /** The frame in which the platform's admin shows the page; null outside of that admin. */
  frame: Frame | null;
}

/** A page in a frame of the platform's admin. */
export interface Frame {
  /** Client id of the app, for the platform's script. */
  clientId: string;
  /** The domain of the shop whose admin may frame the page; null for a page that shows no data of a shop. */
  shop: string | null;
}

/** Finds the visitors of requests. Each root has a door of its own. */
export interface Door {
  root: Root;
  /** Finds the visitor of a request, or answers the request. */
  open(request: Request, context: RouteContext): Promise<Visitor | Response>;
  /**
   * Must be called before something is stored for the visitor's session.
   * @returns the visitor with the current data of the shop; undefined if the session has ended
   */
  keep(visitor: Visitor): Promise<Visitor | undefined>;
  /** Answers a request whose session has ended. */
  refuse(): Response;
  /** Returns the frame for an answer to a request without a visitor. */
  frameFor(request: Request): Promise<Frame | null>;
}
