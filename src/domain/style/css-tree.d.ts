// Types of the bundled css-tree: its main entry fails in a compiled binary, and the package has types only for that
// entry.
declare module "css-tree/dist/csstree.esm" {
  export * from "css-tree";
}
