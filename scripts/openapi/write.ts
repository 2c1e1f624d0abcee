/** Writes the document of /openapi.json into a file. `bun scripts/openapi/write.ts FILE` */
import { openApiDocument } from "../../src/http/openapi/document.ts";

const [file = "openapi.json"] = process.argv.slice(2);
await Bun.write(file, JSON.stringify(openApiDocument("http://127.0.0.1:8080"), null, 2));
