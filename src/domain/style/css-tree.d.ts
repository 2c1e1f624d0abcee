// The package's main entry fails in a compiled binary, and its types know only that entry.
declare module "css-tree/dist/csstree.esm" {
  export * from "css-tree";
}
