/** An endpoint that accepts every delivery. `bun scripts/bench/sink.ts` */
import { serve } from "bun";

const server = serve({
  hostname: "127.0.0.1",
  port: 0,
  development: false,
  async fetch(request) {
    await request.arrayBuffer();
    return new Response();
  },
});
process.stderr.write(`listening on ${server.url}\n`);
