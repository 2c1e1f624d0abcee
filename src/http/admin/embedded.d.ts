declare module "*/admin.js" {
  const text: string;
  export default text;
}

/** Adds `text`, which Bun's streams have. Preact brings the browser's types, in which streams lack it. */
interface ReadableStream {
  text(): Promise<string>;
}
