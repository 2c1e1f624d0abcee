import { type CssNode, type Declaration, ident, property } from "css-tree/dist/csstree.esm";
import { PREFIX, valueNodes } from "./declaration.ts";
import { StyleRefusal } from "./tokens.ts";

/** Words of the `animation` shorthand that are not names of keyframes. */
const ANIMATION_WORDS = new Set(
  [
    "alternate alternate-reverse auto backwards both ease ease-in ease-in-out ease-out forwards infinite linear none",
    "normal paused reverse running step-end step-start inherit initial revert revert-layer unset default",
  ].flatMap((words) => words.split(" ")),
);

/** Returns the name with our prefix. @throws StyleRefusal if `animation` would read the name as one of its keywords */
export function keyframesName(written: string, at: number): string {
  if (ANIMATION_WORDS.has(written.toLowerCase()))
    throw new StyleRefusal(at, `Keyframes can't have the name ${written}: it is a value of the property animation.`);
  return written.startsWith(PREFIX) ? written : PREFIX + written;
}

/**
 * Adds our prefix to the names of keyframes that animations use. These names are in `animation`, in `animation-name`,
 * and in custom properties that these two use with var().
 * @param defined the names of the keyframes in this style, as the merchant wrote them
 */
export function prefixKeyframesNames(declarations: readonly Declaration[], defined: ReadonlySet<string>): void {
  const customProperties = Map.groupBy(
    declarations.filter(({ property: name }) => name.startsWith("--")),
    ({ property: name }) => name,
  );
  const isAnimation = (name: string) => ["animation", "animation-name"].includes(property(name).basename);
  const animations = declarations.filter(({ property: name }) => isAnimation(name));
  const used = new Set<string>();
  const waiting = animations.flatMap((declaration) =>
    renameIn(valueNodes(declaration), (name) => !ANIMATION_WORDS.has(name.toLowerCase())),
  );
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (used.has(name)) continue;
    used.add(name);
    for (const declaration of customProperties.get(name) ?? [])
      waiting.push(...renameIn(valueNodes(declaration), (word) => defined.has(word)));
  }
}

/**
 * Adds our prefix to the names of keyframes in a value. @returns the custom properties that the value uses with var()
 */
function renameIn(nodes: Iterable<CssNode>, isName: (word: string) => boolean): string[] {
  const taken: string[] = [];
  for (const node of nodes) {
    if (node.type === "Identifier") {
      const word = ident.decode(node.name);
      if (isName(word) && !word.startsWith(PREFIX)) node.name = ident.encode(PREFIX + word);
    } else if (node.type === "String") {
      if (isName(node.value) && !node.value.startsWith(PREFIX)) node.value = PREFIX + node.value;
    } else if (node.type === "Function" && node.name.toLowerCase() === "var") {
      const [name, , fallback] = node.children;
      if (name?.type === "Identifier") taken.push(name.name);
      if (fallback?.type === "Value") taken.push(...renameIn(fallback.children, isName));
    }
  }
  return taken;
}
