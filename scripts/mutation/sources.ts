import { join } from "node:path";
import { API } from "typescript/unstable/async";
import { candidatesIn, type Mutant } from "./candidates.ts";

/** Lists every change that is tried in the files. @param folder with the tsconfig.json; `paths` are relative to it */
export async function candidatesOf(folder: string, paths: readonly string[]): Promise<Mutant[]> {
  const api = new API({ cwd: folder });
  try {
    const snapshot = await api.updateSnapshot({ openProject: join(folder, "tsconfig.json") });
    const [project] = snapshot.getProjects();
    const candidates: Mutant[] = [];
    for (const path of paths) {
      const source = await project?.program.getSourceFile(join(folder, path));
      if (source === undefined) throw new Error(`${path} is not part of the project`);
      candidates.push(...candidatesIn(source, path));
    }
    return candidates;
  } finally {
    await api.close();
  }
}
