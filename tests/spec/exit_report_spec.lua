-- The exit report: what it says of phases and tasks, and the files it leaves.
require "moontide" -- the encoder is of its core
local json = require "moontide.json"
local uv = require "luv"

-- What the core's functions do, by luv.
local folders = {
  mkdir = function(path)
    local made, message, name = uv.fs_mkdir(path, 448)
    return (made or name == "EEXIST") or nil, message
  end,
  list = function(path)
    local names, scan = {}, assert(uv.fs_scandir(path))
    for name in function() return (uv.fs_scandir_next(scan)) end do names[#names + 1] = name end
    return names
  end,
}

describe("the exit report", function()
  local report, records, dir

  before_each(function()
    records = {}
    package.loaded["moontide.core"] = {
      host = { pid = math.tointeger(uv.os_getpid()) }, clock = { wall = os.time }, files = folders,
      log = {
        write = function(level, component, message, ...)
          local record = { level = level, component = component, message = message }
          local fields = table.pack(...)
          for i = 1, fields.n, 2 do record[fields[i]] = fields[i + 1] end
          records[#records + 1] = record
        end,
      },
    }
    for name in pairs(package.loaded) do
      if name:find("^moontide%.observe%.report") then package.loaded[name] = nil end
    end
    report = require "moontide.observe.report"
    dir = assert(uv.fs_mkdtemp("/tmp/moontide-report-XXXXXX"))
  end)

  after_each(function()
    os.execute("rm -rf " .. dir)
    for name in pairs(package.loaded) do
      if name == "moontide.core" or name:find("^moontide%.observe%.report") then
        package.loaded[name] = nil
      end
    end
  end)

  local function task(name, at, seconds, more)
    local made = { name = name, at = at, seconds = seconds, outcome = "ok" }
    for key, value in pairs(more or {}) do made[key] = value end
    return made
  end

  local function summary()
    return {
      name = "shop", version = "0.1.0", exit_code = 1,
      reason = { kind = "process-terminate", text = "SIGTERM from pid 7" },
      pipelines = {
        {
          kind = "shutdown", outcome = "failed", started = 1769850000.5, seconds = 12.5, total = 40,
          phases = {
            {
              name = "before-service-unbind", outcome = "ok", at = 0, seconds = 3,
              tasks = { task("linger", 0, 3) },
            },
            {
              name = "service-unbind", outcome = "ok", at = 3, seconds = 0, tasks = {},
            },
            {
              name = "service-stop", outcome = "failed", at = 3, seconds = 9.5, timeout = 9.5,
              tasks = {
                task("worker:outbox", 3, 0.25),
                task("a", 3, 4), task("b", 7, 5.5, { after = "a", outcome = "timed_out",
                  error = "timeout", limit = "its own timeout of 5s" }),
                task("never", nil, nil, { outcome = "skipped", error = "b failed" }),
              },
            },
            { name = "cluster-leave", outcome = "skipped", why = "aborted", tasks = {} },
          },
        },
      },
    }
  end

  it("writes one record a pipeline", function()
    report.write(summary())
    assert.equal(1, #records)
    assert.same({
      level = 2, component = "report", message = "shutdown failed in 12.5s",
      pipeline = "shutdown", outcome = "failed", duration_ms = 12500, task_count = 5,
      phases = "before-service-unbind ok 3.0s, service-stop failed 9.5s",
      tasks = "service-stop/b timed_out 5.5s, service-stop/never skipped -, "
        .. "before-service-unbind/linger ok 3.0s, service-stop/worker:outbox ok 250ms, "
        .. "service-stop/a ok 4.0s",
      blame = "service-stop/b 5.5s, service-stop/a 4.0s, before-service-unbind/linger 3.0s, "
        .. "service-stop/worker:outbox 250ms",
      chain = "before-service-unbind 3.0s (linger) > service-stop 9.5s (a > b)",
    }, records[1])
  end)

  it("lists at most forty tasks, the bad ones first", function()
    local given = summary()
    local phase = { name = "many", outcome = "ok", at = 0, seconds = 1, tasks = {} }
    for i = 1, 1000 do phase.tasks[i] = task("t" .. i, 0, i / 1e6) end
    phase.tasks[999].outcome = "failed"
    given.pipelines[1].phases = { phase }
    report.write(given)
    assert.matches("^many/t999 failed 1ms, many/t1 ok 0ms, ", records[1].tasks)
    assert.matches(" and 960 more$", records[1].tasks)
    assert.equal(1000, records[1].task_count)
    assert.matches("^many/t1000 1ms, many/t999 1ms, many/t998 1ms,", records[1].blame)
  end)

  it("finds the chain through phases that ran at the same time", function()
    local function phase(name, at, seconds, needs)
      return { name = name, outcome = "ok", at = at, seconds = seconds, needs = needs, tasks = {} }
    end
    local given = summary()
    given.pipelines[1].phases = {
      phase("config", 0, 1, {}), phase("db", 1, 5, { "config" }),
      phase("redis", 1, 2, { "config" }),
      phase("jobs", 3, 1, { "redis" }), phase("ready", 6, 0.5, { "db", "jobs" }),
    }
    report.write(given)
    assert.equal("config 1.0s > db 5.0s > ready 500ms", records[1].chain)
  end)

  it("survives tasks that name each other", function()
    local given = summary()
    given.pipelines[1].phases = {
      {
        name = "x", outcome = "ok", at = 0, seconds = 1, needs = { "x" },
        tasks = { task("a", 0, 1, { after = "b" }), task("b", 0, 1, { after = "a" }) },
      },
    }
    report.write(given)
    assert.matches("^x 1.0s", records[1].chain)
  end)

  local function files()
    local names = folders.list(dir)
    table.sort(names)
    return names
  end

  local function read(name)
    local file = assert(io.open(dir .. "/" .. name))
    local text = file:read("a")
    file:close()
    return text
  end

  it("leaves one JSON file, and nothing half-written", function()
    report.write(summary(), { dir = dir })
    local names = files()
    assert.equal(1, #names)
    assert.matches("^report%-%d%d%d%d%d%d%d%dT%d%d%d%d%d%d%.%d%d%dZ%-%d+%.json$", names[1])
    local text = read(names[1])
    local back = assert(json.decode(text))
    assert.equal(1, back.format)
    assert.equal(math.tointeger(uv.os_getpid()), back.pid)
    assert.equal("SIGTERM from pid 7", back.reason.text)
    local pipeline = back.pipelines[1]
    assert.equal(1769850000.5, pipeline.started)
    assert.equal("its own timeout of 5s", pipeline.phases[3].tasks[3].limit)
    assert.equal("b", pipeline.blame[1].task)
    assert.equal("service-stop", pipeline.chain[3].phase)
    assert.matches('"tasks":%[%]', text) -- an empty list, not an object
    assert.same({ 0, "report written" }, { records[2].level, records[2].message })
  end)

  it("makes the directory for this user only", function()
    report.write(summary(), { dir = dir .. "/a/b" })
    assert.equal(448, uv.fs_stat(dir .. "/a/b").mode & 511)
    dir = dir .. "/a/b"
    assert.equal(1, #files())
    dir = dir:sub(1, -5)
  end)

  it("keeps the newest and touches no other file", function()
    for i = 1, 6 do
      local name = ("%s/report-2026010%dT000000.000Z-%d.json"):format(dir, i, 100 - i)
      io.open(name, "w"):close()
    end
    io.open(dir .. "/report-mine.json", "w"):close()
    report.write(summary(), { dir = dir, keep = 3 })
    local names = files()
    assert.equal(4, #names)
    assert.equal("report-20260105T000000.000Z-95.json", names[1])
    assert.equal("report-mine.json", names[4])
  end)

  it("says when it could not be written", function()
    io.open(dir .. "/file", "w"):close()
    report.write(summary(), { dir = dir .. "/file/x" })
    assert.equal(2, records[2].level)
    assert.matches("^the report could not be written: ENOTDIR", records[2].message)
  end)
end)
