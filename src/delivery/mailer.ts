import { createTransport } from "nodemailer";
import { alertText, overText } from "../domain/deliveries/alert.ts";
import type { SmtpServer } from "../domain/deliveries/smtp.ts";
import { codeOf, SdsError } from "../domain/error.ts";
import type { ClaimedNotice } from "../store/port/alerts.ts";

/** Time limit for sending an e-mail. The claim of its notice lasts longer. */
const TIMEOUT_MS = 20_000;

interface Mail {
  subject: string;
  text: string;
}

/**
 * Returns a function that sends the e-mail of a notice.
 * @param readServer called for each e-mail, because the server may change
 * @param baseOf returns the address that the links begin with
 */
export function createMailer(readServer: () => SmtpServer, baseOf: () => Promise<string>) {
  /** @returns the error, which contains no address and no secret; null if the e-mail was sent */
  return async (claimed: ClaimedNotice): Promise<string | null> => {
    const { number, createdAt, recipient, shop } = claimed;
    if (recipient === null) return null;
    const base = await baseOf();
    const end = `${base}/alerts/end?token=${recipient.token}`;
    const { subject, text } = mailOf(claimed, `${base}/alerts/confirm?token=${recipient.token}`);
    const ending = `End these e-mails: ${end}`;
    const message = {
      ...{ to: recipient.address, subject, text: `${text}\n\n${ending}\n` },
      // A repeated e-mail has the same id, so many mail programs show it once.
      messageId: `<alert.${number}.${createdAt}@${shop.domain}>`,
      // Mail programs show a button to unsubscribe (RFC 8058).
      headers: { "List-Unsubscribe": `<${end}>`, "List-Unsubscribe-Post": "List-Unsubscribe=One-Click" },
    };
    let timer: Timer | undefined;
    try {
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(Object.assign(new Error("late"), { code: "ETIMEDOUT" })), TIMEOUT_MS);
      });
      const server = readServer();
      await Promise.race([transportOf(server).sendMail({ ...message, from: server.from }), late]);
      return null;
    } catch (thrown) {
      return mailError(thrown);
    } finally {
      clearTimeout(timer);
    }
  };
}

function transportOf({ host, port, isSecure, isLocal, login }: SmtpServer) {
  return createTransport({
    ...{ host, port, secure: isSecure, requireTLS: !isLocal, ignoreTLS: isLocal },
    ...(login !== null && { auth: login }),
    ...{ connectionTimeout: TIMEOUT_MS / 3, greetingTimeout: TIMEOUT_MS / 3, socketTimeout: TIMEOUT_MS / 3 },
    ...{ logger: false, disableFileAccess: true, disableUrlAccess: true },
  });
}

/** Says why an e-mail was not sent. Leaves out texts of the mail server, because they can contain addresses. */
function mailError(thrown: unknown): string {
  if (thrown instanceof SdsError) return `the e-mail was not sent: ${thrown.message}`;
  const status = (thrown as { responseCode?: unknown }).responseCode;
  const answer = typeof status === "number" ? ` (the mail server answered ${status})` : "";
  return `the e-mail was not sent: ${codeOf(thrown) || "it failed"}${answer}`;
}

/** @param confirm the link that confirms the address */
function mailOf({ shop: { domain }, notice }: ClaimedNotice, confirm: string): Mail {
  if (notice === null)
    return {
      subject: `Confirm alerts for ${domain}`,
      text:
        `Somebody entered this address in the settings of ${domain}, to get an e-mail when its webhooks or its ` +
        `connection fail.\n\nConfirm it here: ${confirm}\n\nIf that was not you, ignore this e-mail.`,
    };
  const { isOver, link } = notice;
  const state = isOver ? "Well again" : "Needs you";
  return {
    subject: `${state}: ${domain}`,
    text: `${domain}\n\n${isOver ? overText(notice) : alertText(notice)}\n\n${link}`,
  };
}
