// Node's two clients, fetch (which is undici) and http.Agent, against a server; see
// tests/support/foreign.lua. Usage: node client.mjs fetch|agent basics|drain URL
import http from "node:http";

const [client, mode, url] = process.argv.slice(2);
const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });

// Both as (method, path, body, headers) -> { status, headers, body }.
const ask = {
  async fetch(method, path, body, headers = {}) {
    const answer = await fetch(url + path, { method, body, headers, duplex: "half" });
    const bytes = Buffer.from(await answer.arrayBuffer());
    return { status: answer.status, headers: Object.fromEntries(answer.headers), body: bytes };
  },

  agent(method, path, body, headers = {}) {
    return new Promise((resolve, reject) => {
      const request = http.request(url + path, { method, headers, agent }, (answer) => {
        const pieces = [];
        answer.on("data", (piece) => pieces.push(piece));
        answer.on("error", reject);
        answer.on("end", () =>
          resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(pieces) }));
      });
      request.on("error", reject);
      if (headers.Expect) {
        request.flushHeaders();
        request.on("continue", () => request.end(body));
      } else if (body instanceof ReadableStream) {
        (async () => {
          for await (const piece of body) request.write(piece);
          request.end();
        })();
      } else {
        request.end(body);
      }
    });
  },
}[client];

function expect(what, got, wanted) {
  const same = Buffer.isBuffer(got) ? got.equals(Buffer.from(wanted)) : got === wanted;
  if (same) return;
  console.error(`${what}: got ${String(got).slice(0, 200)}, wanted ${String(wanted).slice(0, 200)}`);
  process.exit(1);
}

function pieces(bytes) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.subarray(at, (at += 100000)));
    },
  });
}

async function basics() {
  const large = Buffer.alloc(5120000, Buffer.from(Array.from({ length: 256 }, (_, i) => i)));
  const first = (await ask("GET", "/remote")).body;
  for (let i = 0; i < 20; i++) {
    expect("GET", (await ask("GET", "/echo/a")).body, "a");
    expect("POST", (await ask("POST", "/echo/b", "body")).body, "body");
    expect("404", (await ask("GET", "/nowhere")).status, 404);
    expect("405", (await ask("DELETE", "/echo/a")).status, 405);
    expect("204", (await ask("GET", "/nothing")).status, 204);
    expect("304", (await ask("GET", "/old")).status, 304);
    const head = await ask("HEAD", "/big?n=1000000");
    expect("HEAD", head.status, 200);
    expect("HEAD body", head.body.length, 0);
  }
  for (let i = 0; i < 2; i++) {
    expect("large GET", (await ask("GET", "/big?n=5000000")).body, "0123456789".repeat(500000));
    expect("chunked GET", (await ask("GET", "/chunked")).body.length, 1000);
    expect("large POST", (await ask("POST", "/upload", large)).body, large);
    const chunked = await ask("POST", "/upload", pieces(large));
    expect("chunked POST", chunked.body, large);
    expect("encoding", chunked.headers["x-encoding"], "chunked");
  }
  if (client === "agent") {
    const headers = { Expect: "100-continue", "Content-Length": large.length };
    expect("100-continue", (await ask("POST", "/upload", large, headers)).body, large);
  }
  // fetch opens a second connection while it still cleans up after the first answer,
  // and one more after a HEAD: few, and all of them used again.
  const used = new Set();
  for (let i = 0; i < 30; i++) used.add((await ask("GET", "/remote")).body.toString());
  expect("few connections", used.size <= (client === "agent" ? 1 : 4), true);
  if (client === "agent") expect("the same connection", used.has(first.toString()), true);
  expect("too large", (await ask("POST", "/small", "more than ten bytes")).status, 413);
}

function refused(error) {
  return error.code === "ECONNREFUSED" || error.cause?.code === "ECONNREFUSED";
}

async function drain() {
  const counts = { answered: 0, posts: 0, refused: 0, errors: [] };
  let begun = 0;
  async function work(number) {
    for (let n = 0; ; n++) {
      const id = `${number}-${n}`;
      try {
        const answer = await (n % 2 === 0
          ? ask("GET", `/echo/${id}?ms=5`)
          : ask("POST", `/echo/${id}`, id));
        counts.answered++;
        counts.posts += n % 2;
        if (answer.status !== 200 || answer.body.toString() !== id)
          counts.errors.push(`${id}: ${answer.status} ${answer.body}`);
      } catch (error) {
        if (refused(error)) counts.refused++;
        else counts.errors.push(`${id}: ${error} ${error.code} ${error.cause?.code}`);
        return;
      }
      if (n === 3 && ++begun === 8) console.log("under way");
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
  await Promise.all(Array.from({ length: 8 }, (_, i) => work(i)));
  console.log(JSON.stringify(counts));
}

await { basics, drain }[mode]();
