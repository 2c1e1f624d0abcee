import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { afterTest } from "./cleanup.ts";

interface ReceivedMail {
  from: string;
  to: string[];
  /** Head and body, as sent. */
  text: string;
}

/** A mail server on this machine that keeps what it receives. The test sets how it answers to recipients. */
export interface SmtpTestServer {
  port: number;
  mails: ReceivedMail[];
  /** Answer to RCPT. */
  recipientAnswer: string;
  /** All lines of all clients, without the mails. */
  lines: string[];
}

/** @param tls key and certificate. If they are set, each connection begins with TLS */
export async function smtpServer(tls?: { key: string; cert: string }): Promise<SmtpTestServer> {
  const state: SmtpTestServer = { port: 0, mails: [], recipientAnswer: "250 ok", lines: [] };
  const sockets = new Set<Socket>();
  const serve = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    talk(socket, state);
  };
  const server = tls === undefined ? createServer(serve) : createTlsServer(tls, serve);
  server.on("tlsClientError", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  state.port = address !== null && typeof address === "object" ? address.port : 0;
  afterTest(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return state;
}

function talk(socket: Socket, state: SmtpTestServer): void {
  let waiting = "";
  let mail: ReceivedMail = { from: "", to: [], text: "" };
  let isData = false;
  const say = (text: string) => socket.write(`${text}\r\n`);
  say("220 mail.test ready");
  socket.on("data", (bytes) => {
    waiting += bytes.toString("utf8");
    for (let end = waiting.indexOf("\r\n"); end !== -1; end = waiting.indexOf("\r\n")) {
      const line = waiting.slice(0, end);
      waiting = waiting.slice(end + 2);
      if (isData) {
        isData = line !== ".";
        if (isData) mail.text += `${line}\n`;
        else {
          state.mails.push(mail);
          mail = { from: "", to: [], text: "" };
          say("250 kept");
        }
        continue;
      }
      state.lines.push(line);
      const [, address = ""] = /<(.*)>/.exec(line) ?? [];
      if (/^EHLO/i.test(line)) say("250-mail.test\r\n250 AUTH PLAIN");
      else if (/^AUTH/i.test(line)) say("235 welcome");
      else if (/^MAIL/i.test(line)) {
        mail.from = address;
        say("250 ok");
      } else if (/^RCPT/i.test(line)) {
        mail.to.push(address);
        say(state.recipientAnswer);
      } else if (/^DATA/i.test(line)) {
        isData = true;
        say("354 go on");
      } else if (/^QUIT/i.test(line)) {
        say("221 bye");
        socket.end();
      } else say("250 ok");
    }
  });
}
