import { expect, test } from "bun:test";
import { chmodSync, chownSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { becomeOwnerOf, ownerName, rightsProblem, userName } from "../../src/lib/users.ts";
import { temporaryFolder } from "../support/app.ts";

const NOBODY = 65_534;
const asRoot = process.geteuid?.() === 0;

test("users have the names of /etc/passwd, or their number", () => {
  expect(userName(0)).toBe("root");
  expect(userName(4_000_000)).toBe("4000000");
  expect(ownerName("/")).toBe("root");
  expect(ownerName("/nowhere")).toBe("root");
  expect(ownerName("/nowhere/at/all")).toBe("root");
});

test("becoming the owner of a missing folder, or of one of root, changes nothing", () => {
  const user = process.geteuid?.();
  becomeOwnerOf("/nowhere");
  becomeOwnerOf("/");
  expect(process.geteuid?.()).toBe(user ?? 0);
});

test.skipIf(!asRoot)(
  "root becomes the owner of a folder for good, and may not read its own files any more",
  async () => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    const [data, secret] = [join(folder, "data"), join(folder, "secret")];
    writeFileSync(data, "");
    chownSync(data, NOBODY, NOBODY);
    writeFileSync(secret, "x", { mode: 0o600 });
    const program = `
    import { becomeOwnerOf, rightsProblem } from ${JSON.stringify(join(import.meta.dir, "../../src/lib/users.ts"))};
    becomeOwnerOf(${JSON.stringify(data)});
    const codes = [() => process.setuid(0), () => require("fs").readFileSync(${JSON.stringify(secret)})].map((run) => {
      try { run(); return "done"; } catch (thrown) { return thrown.code; }
    });
    console.log(JSON.stringify([process.getuid(), process.getgid(), process.getgroups(), codes, rightsProblem(${JSON.stringify(secret)})]));`;
    const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", cwd: "/" });
    const [uid, gid, groups, codes, problem] = JSON.parse(await child.stdout.text());
    expect([uid, gid, groups, codes]).toEqual([NOBODY, NOBODY, [NOBODY], ["EPERM", "EACCES"]]);
    expect(problem).toBe(
      `nobody may not use ${secret}, which root owns: run this as root, or change the owner or mode`,
    );
    expect(rightsProblem(data)).toContain("root may not use");
  },
);
