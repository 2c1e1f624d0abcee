declare module "*.css" {
  const text: string;
  export default text;
}

declare module "*/admin.js" {
  const text: string;
  export default text;
}

/** Preact's types include the browser's types, whose streams lack members that Bun's have. */
interface ReadableStream {
  text(): Promise<string>;
}
