// The least a Node service would be.
const http = require("http");

const server = http.createServer((_request, response) => {
  response.setHeader("Content-Type", "application/json");
  response.end('{"status":"ready"}');
});
server.listen(Number(process.argv[2]), "127.0.0.1");
process.on("SIGTERM", () => server.close(() => process.exit(0)));
