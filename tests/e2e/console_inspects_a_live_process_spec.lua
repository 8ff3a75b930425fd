-- What one asks at the console of a real process: connections, tasks, what it waits for, while it
-- starts, serves and drains; and that ten thousand tasks hold up nobody.
local console = require "support.console"
local http = require "support.http_client"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false, shutdown = { linger = 0 } }
local go = tide.event "go"
local server = tide.http.listen { name = "api", port = tonumber(os.getenv "PORT") }
server:get("/slow", function() go:wait() return "served" end)
server:get("/quick", function() return "served" end)
function release() go:set() end
local count, ticking = 0, false
function turns() return count end
function tick(on)
  ticking = on ~= false
  tide.root:spawn(function()
    while ticking do
      count = count + 1
      tide.sleep(0)
    end
  end)
end
function many(n)
  for i = 1, n do tide.root:start({ name = "nap " .. i }, tide.sleep, 1000) end
end
]]

local app, client

local function start(script, options)
  options = options or {}
  options.script = script or APP
  app = proc.start(options)
  client = console.connect(app)
  client:hello()
end

-- What a command returns, as data.
local function data_of(source)
  local reply = client:eval(source, { json = true })
  assert.equal("ok", reply.status, reply.error and reply.error.message)
  return reply.value.json
end

local function text_of(source)
  local reply = client:eval(source)
  assert.equal("ok", reply.status, reply.error and reply.error.message)
  return reply.text
end

local function find(list, key, value)
  for _, item in ipairs(list) do
    if item[key] == value then return item end
  end
end

describe("at the console of a live process", function()
  after_each(function() client:close() end)

  it("conns() shows what each connection is doing", function()
    start()
    local slow, idle = assert(http.connect(app.port)), assert(http.connect(app.port))
    slow:send_request("GET", "/slow?secret=1")
    idle:send_request("GET", "/quick")
    assert.equal(200, idle:read_response().status)
    local api = find(data_of("conns()").listeners, "name", "api")
    assert.equal(2, api.connections)
    assert.equal(1, api.in_flight)
    assert.same({ "handler", "GET", "/slow" },
      { api.list[1].state, api.list[1].method, api.list[1].path })
    assert.is_true(api.list[1].request_age > 0 and api.list[1].request_age < 10)
    assert.same({ "idle", 1 }, { api.list[2].state, api.list[2].served })
    assert.is_true(api.list[2].written > 50)
    assert.matches("^127%.0%.0%.1:%d+$", api.list[1].peer)
    local text = text_of "conns { max = 1 }"
    assert.matches("^api 127%.0%.0%.1:%d+: 2 connections, 1 in flight\n", text)
    assert.matches("\nhandler +127%.0%.0%.1:%d+ .- GET /slow, .-\n… 1 more$", text)
    assert.equal("error", client:eval("conns { listener = \"apy\" }").status)
    slow:close()
    idle:close()
  end)

  it("tasks() shows handlers, and the evaluation itself", function()
    start()
    local slow = assert(http.connect(app.port))
    slow:send_request("GET", "/slow")
    assert.equal(200, assert(http.get(app.port, "/quick")).status)
    local tasks = data_of("tasks()").tasks
    local handler = find(tasks, "name", "GET /slow")
    assert.same({ "handler", "event go" }, { handler.kind, handler.waiting_on })
    assert.is_not_nil(find(tasks, "kind", "console"))
    assert.matches("app%.lua:5: in ", text_of(("where(%d)"):format(handler.id)))
    slow:close()
  end)

  it("an unknown task is an error at once, with those that there are", function()
    start()
    client:eval "tasks()"
    local reply = client:eval "where(4711)"
    assert.equal("error", reply.status)
    assert.matches("no task has the number 4711; there are %d", reply.error.message)
    assert.equal(reply.error.message, reply.error.traceback) -- no stack: it is no fault of Lua's
    assert.is_true(reply.ms < 2000) -- it would be for ever; a busy machine takes its time
  end)

  it("status and why() say what a drain waits for, and who asked for it", function()
    start()
    local slow = assert(http.connect(app.port))
    slow:send_request("GET", "/slow")
    assert.equal(200, assert(http.get(app.port, "/quick")).status)
    app:signal "TERM"
    client:event "state"
    local status = client:request { type = "status" }.value.status
    assert.equal("draining", status.state)
    assert.same({ "process-terminate", "SIGTERM" }, { status.reason.kind, status.reason.signal })
    assert.is_true(status.reason.pid > 0 and type(status.reason.program) == "string")
    assert.equal(1, status.in_flight.active)
    assert.equal(1, find(status.listeners, "name", "api").in_flight)
    app:wait_log { phase = "service-unbind", outcome = "ok" }
    local text = text_of "why()"
    assert.matches("shutdown phase service%-requests%-done: drain:api, ", text)
    assert.matches("\n +1 in flight: http:api", text)
    assert.matches("service%-requests%-done +running", text_of "phases()")
    client:eval "release()"
    assert.equal(200, slow:read_response().status)
    assert.equal(0, (app:wait()))
  end)

  it("why() says what a start waits for", function()
    app = proc.start { script = [[
      local tide = require "moontide"
      tide.config { manage = false }
      tide.startup:phase("db", function() tide.sleep(1000) end)
    ]] }
    client = console.connect(app)
    local text = text_of "why()"
    assert.matches("^not ready: it starts\n", text)
    assert.matches("startup phase db: db, %d+%.%d of 30 s, sleep", text)
    assert.equal("starting", client:request { type = "status" }.value.status.state)
  end)

  it("handles() and timers() name the lines that made luv's", function()
    start [[
      local tide = require "moontide"
      local uv = require "luv"
      tide.config { manage = false }
      kept = {}
      for i = 1, 3 do kept[i] = uv.new_timer() end
      kept[1]:start(60000, 5000, function() end)
    ]]
    local handles = data_of "handles()"
    assert.same({ 3, 1 }, { handles.total, handles.found })
    assert.same({ 3, 1, "timer" },
      { handles.sites[1].open, handles.sites[1].active, handles.sites[1].type })
    assert.matches("app%.lua:5$", handles.sites[1].site)
    local timer = find(data_of("timers()").timers, "kind", "luv timer")
    assert.equal(5, timer.every)
    assert.is_true(timer.due > 30 and timer.due <= 60)
    assert.matches("app%.lua:5$", timer.site)
  end)

  it("they are there also for one who may only look", function()
    start(nil, { env = { MOONTIDE_ENV = "production" } })
    for _, name in ipairs { "tasks", "ended", "phases", "checks", "why", "handles", "conns", "mem",
      "loop", "timers", "config", "work", "status" } do
      local reply = client:eval(name .. "()")
      assert.equal("ok", reply.status, name)
      assert.is_true(#reply.text > 0, name)
    end
    assert.equal(2, #data_of("tasks { max = 2 }").tasks)
    assert.equal("error", client:eval("where(4711)").status)
  end)

  it("asking for 10,000 tasks lets everybody else have their turn meanwhile", function()
    start()
    client:eval "many(10000)"
    -- 500 tasks are looked at between two turns of the others.
    for _, source in ipairs { "tasks()", "tasks { find = 'nap 77' }", "pcall(where, 'nobody')",
      "timers()" } do
      client:eval "tick()"
      local turns = text_of(("local from = turns() %s return turns() - from"):format(source))
      client:eval "tick(false)"
      assert.is_true(tonumber(turns) >= 15, source .. ": " .. turns)
    end
    local data = data_of "tasks { max = 5 }"
    assert.equal(5, #data.tasks)
    assert.equal(10000, find(data.scopes, "name", "root").tasks)
  end)
end)
