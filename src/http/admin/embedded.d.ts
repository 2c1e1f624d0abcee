declare module "*.css" {
  const text: string;
  export default text;
}

declare module "*/admin.js" {
  const text: string;
  export default text;
}

/** Preact's types include those of a browser, whose streams lack what Bun's have. */
interface ReadableStream {
  text(): Promise<string>;
}
