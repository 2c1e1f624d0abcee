declare module "*.css" {
  const text: string;
  export default text;
}

declare module "*/admin.js" {
  const text: string;
  export default text;
}

/** Preact's types bring those of a browser along, which know less of streams than Bun does. */
interface ReadableStream {
  text(): Promise<string>;
}
