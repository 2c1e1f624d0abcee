declare module "*/admin.js" {
  const text: string;
  export default text;
}

/** Declares `text` of Bun's streams. Preact brings the browser's types, and those do not have `text`. */
interface ReadableStream {
  text(): Promise<string>;
}
