-- Every way into Lua is watched, without any signal: a task has its deadline, a callback two
-- seconds. Afterwards the process serves as before.
local http = require "support.http_client"
local proc = require "support.process"

local HEAD = [[
local tide, uv = require "moontide", require "luv"
tide.config { shutdown = { linger = 0 }, uncaught = { task = "log", callback = "log" } }
local function spin() while true do end end
local function pcall_spin() while true do pcall(spin) end end
local server = tide.http.listen { port = tonumber(os.getenv "PORT") }
server:get("/alive", function() return "alive" end)
]]

---@type table<string, { script: string, log: table }>
local places = {
  ["a check, at its timeout"] = {
    script = 'tide.check("bad", { timeout = "200ms", every = "60s" }, spin)',
    log = { component = "readiness", check = "bad" },
  },
  ["a block with a timeout in a task that was woken by a timer"] = {
    script = [[tide.spawn(function() tide.sleep(0.01) tide.timeout("200ms", pcall_spin) end)]],
    log = { level = "error", kind = "task" },
  },
  ["a block with a timeout in a task that was woken by luv"] = {
    script = [[tide.spawn(function()
      local event = tide.event "stat"
      uv.fs_stat("/", function() event:set(true) end)
      event:wait()
      tide.timeout("200ms", spin)
    end)]],
    log = { level = "error", kind = "task" },
  },
  ["a plain coroutine inside a task"] = {
    script = [[tide.spawn(function() tide.timeout("200ms", coroutine.wrap(pcall_spin)) end)]],
    log = { level = "error", kind = "task" },
  },
  ["a luv callback, after two seconds"] = {
    script = "uv.new_timer():start(1, 0, pcall_spin)",
    log = { level = "error", kind = "luv callback" },
  },
  ["an observer of the state, after two seconds"] = {
    script = [[tide.on_state(function(_, to) if to == "ready" then spin() end end)]],
    log = { level = "error" },
  },
}

describe("Lua that spins is interrupted in", function()
  for place, row in pairs(places) do
    it(place, function()
      local app = proc.start { script = HEAD .. row.script }
      local record = app:wait_log(row.log, 6)
      assert.matches("interrupted", record.msg .. tostring(record.error))
      assert.equal("alive", http.get(app.port, "/alive", { timeout = 5 }).body)
      app:signal "TERM"
      assert.equal(0, (app:wait()))
    end)
  end
end)
