// Types for css-tree's bundled file. The package's main entry fails in a compiled binary, but only the main entry has
// types.
declare module "css-tree/dist/csstree.esm" {
  export * from "css-tree";
}
