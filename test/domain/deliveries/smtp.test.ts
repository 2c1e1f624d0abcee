import { expect, test } from "bun:test";
import { parseSmtpUrl } from "../../../src/domain/deliveries/smtp.ts";

const read = (text: string) => parseSmtpUrl("SDS_SMTP_URL_FILE", text);

test("the address of a mail server has a login, a port by its scheme, and a sender", () => {
  const server = { host: "mail.example.com", isLocal: false, from: "sds@example.com" };
  expect(read("smtps://sds%40example.com:p%25w@mail.example.com")).toEqual({
    ...{ ...server, port: 465, isSecure: true },
    login: { user: "sds@example.com", pass: "p%w" },
  });
  expect(read("smtp://mail.example.com?from=sds@example.com")).toEqual({
    ...{ ...server, port: 587, isSecure: false },
    login: null,
  });
  expect(read("smtp://[::1]:2525/?from=sds@example.com")).toMatchObject({ host: "::1", port: 2525, isLocal: true });
});

test("a wrong address is refused without repeating its secrets", () => {
  const wrong = [
    "",
    "hush",
    "https://hush@mail.example.com/?from=sds@example.com",
    "smtps://hush@mail.example.com/",
    "smtps://hush@mail.example.com/path?from=sds@example.com",
    "smtps://hush@mail.example.com/?from=sds@example.com&tls=no",
    "smtps://hush@mail.example.com/?from=a@b.example,c@d.example",
    "smtps://hush%zz@mail.example.com/?from=sds@example.com",
    "smtps://hush@mail.example.com/?from=sds@example.com\nsmtps://other",
  ];
  for (const text of wrong) {
    expect(() => read(text)).toThrow("SDS_SMTP_URL_FILE");
    expect(() => read(text)).not.toThrow("hush");
  }
});
