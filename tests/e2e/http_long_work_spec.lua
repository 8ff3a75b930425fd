-- Long work over real sockets: 202, polling, one job for each key, and what a shutdown, a kill and
-- a restart leave of it.
local cjson = require "cjson"
local http = require "support.http_client"
local loop = require "support.loop"
local proc = require "support.process"

local SCRIPT = [[
local tide = require "moontide"
tide.config { shutdown = {
  linger = os.getenv "LINGER" or "0s", drain = os.getenv "DRAIN" or "10s", timeout = "20s",
} }
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
local runs = 0
local function run(job)
  runs = runs + 1
  local file = assert(io.open(os.getenv "RUNS", "a"))
  file:write(job.key or "-", job.resumed and " again\n" or "\n")
  file:close()
  local ms = tonumber(job.request.query.ms or 50)
  job:progress(0.5, "half")
  tide.sleep(ms / 1000)
  if job.request.query.fail then error("secret") end
  if job.request.query.http then tide.http.error(409, "the table is in use") end
  if job.request.query.binary then
    return 200, "\0\255", { ["Content-Type"] = "application/octet-stream" }
  end
  return 201, { body = job.request.body, agent = job.request.headers["x-agent"],
    user = job.request.params.user, method = job.request.method }, { ["X-A"] = { "b", "c" } }
end
local function guard(req, next)
  if req.headers.authorization == "no" then return 401, "no" end
  return next(req)
end
local store = os.getenv "STORE"
local function accepted(opts)
  opts.store, opts.resume = store, os.getenv "RESUME" and true or nil
  return tide.http.accepted(opts)
end
server:post("/export", guard, accepted {}, run)
server:post("/free",
  accepted { key = "optional", limit = 3, parallel = 1, retry_after = "2s" }, run)
server:post("/users/:user/export", accepted { key = "optional",
  scope = function(req) return req.params.user end }, run)
server:post("/short", accepted { key = "optional", ttl = "300ms" }, run)
server:get("/runs", function() return tostring(runs) end)
]]

local apps = {}

local function start(env, dir)
  env = env or {}
  env.RUNS = env.RUNS or (dir or proc.temp_dir()) .. "/runs"
  local app = proc.start { script = SCRIPT, env = env, dir = dir }
  app.runs_file = env.RUNS
  apps[#apps + 1] = app
  app:wait_ready()
  return app
end

local function post(app, path, key, body)
  local headers = { ["Idempotency-Key"] = key, ["X-Agent"] = "test" }
  return assert(http.post(app.port, path, body or "", { headers = headers }))
end

local function document(app, where)
  local response = assert(http.get(app.port, where))
  return cjson.decode(response.body), response
end

local function wait_state(app, where, state)
  local doc, response
  loop.wait(function()
    doc, response = document(app, where)
    return doc.state == state
  end, 10, where .. " to be " .. state)
  return doc, response
end

local function runs_of(app)
  local list = {}
  for line in (proc.read_file(app.runs_file) or ""):gmatch "[^\n]+" do list[#list + 1] = line end
  return list
end

describe("long work", function()
  it("is answered with 202, polled, and ready", function()
    local app = start()
    local response = post(app, "/export?ms=100", '"k"', "data")
    assert.equal(202, response.status)
    assert.equal("1", response.headers["retry-after"])
    assert.equal("no-store", response.headers["cache-control"])
    local where = response.headers.location
    local id = where:match "^/export/(%x+)$"
    assert.equal(32, #id)
    local accepted = cjson.decode(response.body)
    assert.same({ id, where }, { accepted.id, accepted.href })

    local doc, poll = document(app, where)
    assert.equal("RUNNING", doc.state)
    assert.same({ n = 0.5, text = "half" }, doc.progress)
    assert.equal("1", poll.headers["retry-after"])
    assert.equal(409, http.get(app.port, where .. "/result").status)

    doc, poll = wait_state(app, where, "READY")
    assert.is_nil(poll.headers["retry-after"])
    assert.equal(201, doc.result.status)
    assert.same({ body = "data", agent = "test", method = "POST" }, doc.result.body)
    assert.equal(where .. "/result", doc.result.href)
    local answer = http.get(app.port, doc.result.href)
    assert.equal(201, answer.status)
    assert.equal("b, c", answer.headers["x-a"])
    assert.equal('{"agent":"test","body":"data","method":"POST"}', answer.body)
    assert.equal("", http.request("HEAD", app.port, where).body)
    assert.equal("GET, HEAD, DELETE", (http.post(app.port, where, "").headers.allow
      :gsub("DELETE, GET, HEAD", "GET, HEAD, DELETE")))
  end)

  it("wants its key, in the right form, for one request", function()
    local app = start()
    for _, key in ipairs { false, '""', ("x"):rep(300), "a b" } do
      local response = post(app, "/export", key or nil)
      assert.equal(400, response.status)
      assert.equal("application/problem+json", response.headers["content-type"])
      assert.matches("Idempotency%-Key", cjson.decode(response.body).title)
    end
    local first = post(app, "/export", "k", "a")
    assert.equal(202, first.status)
    assert.equal(422, post(app, "/export", "k", "b").status)
    assert.equal(422, post(app, "/export?x", "k", "a").status)
    local again = post(app, "/export", '"k"', "a")
    assert.equal(202, again.status)
    assert.equal("true", again.headers["idempotency-replayed"])
    assert.equal(first.headers.location, again.headers.location)
    wait_state(app, first.headers.location, "READY")
    assert.equal("1", http.get(app.port, "/runs").body)
  end)

  it("is one job for fifty that ask at once", function()
    for _, store in ipairs { "memory", "sqlite:jobs.db" } do
      local app = start { STORE = store }
      local places = {}
      for _, response in ipairs(http.ask_at_once(50, "POST", app.port, "/export?ms=300",
        { body = "same", headers = { ["Idempotency-Key"] = '"once"' } })) do
        assert.equal(202, response.status)
        places[response.headers.location] = true
      end
      local where = next(places)
      assert.is_nil(next(places, where))
      wait_state(app, where, "READY")
      assert.same({ "once" }, runs_of(app))
    end
  end)

  it("goes on when its client leaves before the answer", function()
    local app = start { STORE = "sqlite:jobs.db" }
    for i = 1, 20 do
      local conn = assert(http.connect(app.port))
      conn:send_request("POST", "/free?ms=1",
        { body = "", headers = { ["Idempotency-Key"] = "k" } })
      if i % 2 == 0 then conn:reset() else conn:close() end
    end
    local where = post(app, "/free?ms=1", "k").headers.location
    wait_state(app, where, "READY")
    assert.same({ "k" }, runs_of(app))
  end)

  it("that fails says why, as far as a client may know", function()
    local app = start()
    local where = post(app, "/export?fail=1", "a").headers.location
    local doc = wait_state(app, where, "FAILED")
    assert.equal("the job failed", doc.error)
    assert.equal(500, http.get(app.port, where .. "/result").status)
    local record = app:wait_log { msg = "job failed" }
    assert.matches("secret", record.error)
    assert.matches("app.lua:%d+", record.traceback)
    where = post(app, "/export?http=1", "b").headers.location
    doc = wait_state(app, where, "FAILED")
    assert.equal("the table is in use", doc.error)
    assert.equal(409, http.get(app.port, where .. "/result").status)
  end)

  it("may have a result that is no text", function()
    local app = start { STORE = "sqlite:jobs.db" }
    local where = post(app, "/export?binary=1", "a").headers.location
    local doc = wait_state(app, where, "READY")
    assert.is_nil(doc.result.body)
    assert.equal("\0\255", http.get(app.port, doc.result.href).body)
  end)

  it("has the middleware of its route at its places too", function()
    local app = start()
    local where = post(app, "/export", "a").headers.location
    local no = { headers = { Authorization = "no", ["Idempotency-Key"] = "a" } }
    assert.equal(401, http.post(app.port, "/export", "", no).status)
    assert.equal(401, http.get(app.port, where, no).status)
    assert.equal(401, http.get(app.port, where .. "/result", no).status)
    assert.equal(401, http.request("DELETE", app.port, where, no).status)
  end)

  it("belongs to the path and the scope where it was asked for", function()
    local app = start()
    local one, two = post(app, "/users/a/export", "k"), post(app, "/users/b/export", "k")
    assert.same({ 202, 202 }, { one.status, two.status })
    assert.are_not.equal(one.headers.location:match "%x+$", two.headers.location:match "%x+$")
    assert.equal("a", wait_state(app, one.headers.location, "READY").result.body.user)
    local elsewhere = one.headers.location:gsub("/users/a/", "/users/b/")
    assert.equal(404, http.get(app.port, elsewhere).status)
    assert.equal(404, http.get(app.port, "/export/" .. one.headers.location:match "%x+$").status)
    assert.equal(404, http.get(app.port, "/export/" .. ("0"):rep(32)).status)
  end)

  it("beyond the limit is refused with the time to come again", function()
    local app = start()
    local places = {}
    for i = 1, 3 do places[i] = post(app, "/free?ms=200").headers.location end
    local response = post(app, "/free?ms=200")
    assert.equal(503, response.status)
    assert.equal("2", response.headers["retry-after"])
    assert.equal("QUEUED", document(app, places[3]).state)
    wait_state(app, places[3], "READY")
    assert.equal(202, post(app, "/free").status)
  end)

  it("can be ended by its client", function()
    local app = start()
    local running = post(app, "/free?ms=60000").headers.location
    local waiting = post(app, "/free?ms=60000").headers.location
    local gone = http.request("DELETE", app.port, waiting)
    assert.equal(200, gone.status)
    assert.equal("FAILED", cjson.decode(gone.body).state)
    assert.equal(202, http.request("DELETE", app.port, running).status)
    local doc = wait_state(app, running, "FAILED")
    assert.equal("cancelled", doc.reason)
    assert.equal(200, http.request("DELETE", app.port, running).status)
    assert.equal(1, #runs_of(app))
    assert.equal(404, http.request("DELETE", app.port, "/free/" .. ("0"):rep(32)).status)
  end)

  it("is counted with what is in flight, until its outcome is kept", function()
    local app = start()
    local where = post(app, "/export?ms=700", "k").headers.location
    local function counted()
      local text = http.get(app.manage_port, "/metrics").body
      local of = '{kind="jobs:api POST /export"} (%d+)\n'
      return text:match("\nmoontide_work_in_flight" .. of),
        text:match("\nmoontide_work_total" .. of),
        cjson.decode(http.get(app.manage_port, "/lifecycle").body).in_flight
    end
    assert.same({ "1", "1", 1 }, { counted() })
    wait_state(app, where, "READY")
    assert.same({ "0", "1", 0 }, { counted() })
  end)

  it("is forgotten after its time", function()
    local app = start { STORE = "sqlite:jobs.db" }
    local where = post(app, "/short?ms=1", "k").headers.location
    wait_state(app, where, "READY")
    loop.wait(function() return http.get(app.port, where).status == 404 end, 10, "its end")
    assert.are_not.equal(where, post(app, "/short?ms=1", "k").headers.location)
  end)
end)

describe("a shutdown", function()
  it("lets a job finish; its client polls meanwhile, and finds it after a restart", function()
    local app = start { STORE = "sqlite:jobs.db", LINGER = "1500ms" }
    local where = post(app, "/export?ms=600", "k", "data").headers.location
    app:signal "TERM"
    app:wait_log { component = "lifecycle", to = "draining" }
    local doc, response = document(app, where)
    assert.equal("RUNNING", doc.state)
    assert.equal("close", response.headers.connection)
    local late = post(app, "/export?ms=900", "late") -- LINGER still serves
    assert.equal(202, late.status)
    wait_state(app, where, "READY")
    assert.equal(0, (app:wait()))

    local after = start({ STORE = "sqlite:jobs.db", RUNS = app.runs_file }, app.dir)
    doc = document(after, where)
    assert.equal("READY", doc.state)
    assert.equal("data", doc.result.body.body)
    assert.equal("READY", document(after, late.headers.location).state)
    assert.equal(where, post(after, "/export?ms=600", "k", "data").headers.location)
    assert.same({ "k", "late" }, runs_of(after))
  end)

  it("takes no new job once it waits for those there are, and finds the known ones", function()
    local app = start { LINGER = "100ms" }
    local where = post(app, "/export?ms=1500", "k").headers.location
    -- Requests that are under way when the drain begins are answered: their heads are here, their
    -- bodies come after the drain has begun.
    local function half(key)
      local conn = assert(http.connect(app.port))
      conn:send(("POST /export?ms=1500 HTTP/1.1\r\nHost: a\r\nIdempotency-Key: %s\r\n"
        .. "Content-Length: 1\r\n\r\n"):format(key))
      return conn
    end
    local other, poll = half "new", http.connect(app.port)
    poll:send("GET " .. where .. " HTTP/1.1\r\nHost: a\r\n")
    assert.equal(200, http.get(app.port, "/runs").status) -- so the halves are read
    app:signal "TERM"
    app:wait_log { phase = "service-unbind", msg = "shutdown phase ok" }
    other:send "x"
    local response = assert(other:read_response())
    assert.equal(503, response.status)
    assert.equal("1", response.headers["retry-after"])
    poll:send "\r\n"
    response = assert(poll:read_response())
    assert.equal("RUNNING", cjson.decode(response.body).state)
    assert.equal(0, (app:wait()))
    app:wait_log { task = "jobs:api POST /export", outcome = "ok" }
    assert.same({ "k" }, runs_of(app))
  end)

  for _, resume in ipairs { false, true } do
    it("that is out of time ends a job and says so, resume = " .. tostring(resume), function()
      local env = { STORE = "sqlite:jobs.db", DRAIN = "300ms", RESUME = resume and 1 or false }
      local app = start(env)
      local begun = post(app, "/free?ms=1000", "a").headers.location
      local waiting = post(app, "/free?ms=10", "b").headers.location
      app:signal "TERM"
      assert.equal(0, (app:wait()))
      assert.is_true(app.exited_at - app.signalled_at < 5) -- not the job's minute

      env.RUNS = app.runs_file
      local after = start(env, app.dir)
      if resume then
        wait_state(after, begun, "READY")
      else
        assert.equal("interrupted by shutdown", wait_state(after, begun, "FAILED").error)
      end
      wait_state(after, waiting, "READY")
      assert.same(resume and { "a", "a again", "b" } or { "a", "b" }, runs_of(after))
    end)
  end
end)

describe("a forced shutdown", function()
  it("records and names what it broke off", function()
    local app = start { STORE = "sqlite:jobs.db" }
    local where = post(app, "/export?ms=60000", "k").headers.location
    wait_state(app, where, "RUNNING") -- one that is queued has not begun, and would run later
    app:signal "INT"
    app:wait_log { phase = "service-unbind", msg = "shutdown phase ok" }
    app:signal "INT"
    app:wait()
    assert.is_true(app.exited_at - app.signalled_at < 5) -- not the job's minute
    local named = app:find_logs { msg = "job interrupted" }
    assert.same({ 1, where, "RUNNING", "api POST /export" },
      { #named, "/export/" .. named[1].job, named[1].state, named[1].route })
    local after = start({ STORE = "sqlite:jobs.db", RUNS = app.runs_file }, app.dir)
    assert.equal("interrupted by shutdown", document(after, where).error)
  end)
end)

describe("a kill -9", function()
  for _, resume in ipairs { false, true } do
    it("loses no record; what ran is told apart, resume = " .. tostring(resume), function()
      local env = { STORE = "sqlite:jobs.db", RESUME = resume and 1 or false }
      local app = start(env)
      local done = post(app, "/export?ms=1", "done").headers.location
      wait_state(app, done, "READY")
      local begun = post(app, "/free?ms=1000", "begun").headers.location
      local waiting = post(app, "/free?ms=1", "waiting").headers.location
      loop.wait(function() return #runs_of(app) == 2 end, 10, "the job to begin")
      app:signal "KILL"
      app:wait()

      env.RUNS = app.runs_file
      local after = start(env, app.dir)
      assert.equal("READY", document(after, done).state)
      wait_state(after, waiting, "READY")
      if resume then
        wait_state(after, begun, "READY")
      else
        assert.equal("interrupted: its process ended", wait_state(after, begun, "FAILED").error)
      end
      assert.equal(begun, post(after, "/free?ms=1000", "begun").headers.location)
      assert.same(resume and { "done", "begun", "begun again", "waiting" }
        or { "done", "begun", "waiting" }, runs_of(after))
    end)
  end
end)

describe("two processes with one file", function()
  it("know each other's jobs, and leave the living alone", function()
    local one = start { STORE = "sqlite:jobs.db" }
    local two = start({ STORE = "sqlite:jobs.db", RUNS = one.runs_file }, one.dir)
    local where = post(one, "/export?ms=400", "k").headers.location
    assert.equal(where, post(two, "/export?ms=400", "k").headers.location)
    wait_state(two, where, "RUNNING")
    assert.equal(409, http.request("DELETE", two.port, where).status)
    one:signal "TERM"
    wait_state(two, where, "READY")
    assert.equal(0, (one:wait()))
    assert.same({ "k" }, runs_of(two))
  end)
end)
