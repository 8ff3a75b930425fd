// The least a Node service would be: a health route and one with a parameter.
const http = require("http");

const server = http.createServer((request, response) => {
  if (request.url.startsWith("/orders/")) {
    response.setHeader("Content-Type", "text/plain");
    response.end("order " + request.url.slice(8));
    return;
  }
  if (request.url.startsWith("/slow?ms=")) {
    setTimeout(() => response.end("slow"), Number(request.url.slice(9)));
    return;
  }
  response.setHeader("Content-Type", "application/json");
  response.end('{"status":"ready"}');
});
if (process.env.KEEP_ALIVE_MS) {
  server.keepAliveTimeout = Number(process.env.KEEP_ALIVE_MS);
}
server.listen(Number(process.argv[2]), "127.0.0.1");
process.on("SIGTERM", () => server.close(() => process.exit(0)));
