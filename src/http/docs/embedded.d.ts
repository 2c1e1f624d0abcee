declare module "*/docs.js" {
  const text: string;
  export default text;
}
