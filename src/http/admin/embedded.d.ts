declare module "*.css" {
  const text: string;
  export default text;
}

declare module "*/admin.js" {
  const text: string;
  export default text;
}

/** Preact's types include the browser's types. The browser's streams lack members that Bun's streams have. */
interface ReadableStream {
  text(): Promise<string>;
}
