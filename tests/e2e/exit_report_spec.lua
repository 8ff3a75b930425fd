-- The report a process leaves behind.
local json = require "moontide.json"
local proc = require "support.process"
local uv = require "luv"

local APP = [[
  local tide = require "moontide"
  tide.startup:phase("db", {}, function() tide.sleep("20ms") end)
  tide.shutdown:task("service-stop", "slow", { timeout = "100ms" }, function() tide.sleep("5s") end)
  tide.shutdown:task("service-stop", "quick", function() end)
]]

local function reports(dir)
  local found = {}
  local scan = uv.fs_scandir(dir)
  while scan do
    local name = uv.fs_scandir_next(scan)
    if not name then break end
    found[#found + 1] = dir .. "/" .. name
  end
  return found
end

describe("the exit report of a process", function()
  it("names outcomes, blame and chain in the log and as JSON", function()
    local code, _, _, process = proc.run { script = APP }
    assert.equal(0, code)

    local record = process:wait_log { component = "report", pipeline = "shutdown" }
    assert.matches("service%-stop/slow timed_out", record.tasks)
    assert.matches("service%-stop/quick ok", record.tasks)
    assert.matches("^service%-stop/slow ", record.blame)
    assert.matches("service%-stop %d+ms %(slow%)", record.chain)
    assert.matches("db ok", process:wait_log { component = "report", pipeline = "startup" }.phases)

    local files = reports(process.dir .. "/state/reports")
    assert.equal(1, #files)
    local report = assert(json.decode(proc.read_file(files[1])))
    assert.equal(0, report.exit_code)
    assert.equal(process.pid, report.pid)
    assert.equal("script-end", report.reason.kind)
    assert.equal("shutdown", report.pipelines[2].kind)
    assert.equal("slow", report.pipelines[2].blame[1].task)
    assert.equal("timed_out", report.pipelines[2].blame[1].outcome)
  end)

  it("comes before the last record, and none when told so", function()
    local code, _, _, process = proc.run {
      script = APP, env = { MOONTIDE_REPORT__KEEP = "0" },
    }
    assert.equal(0, code)
    assert.same({}, reports(process.dir .. "/state/reports"))
    local last = process:logs()[#process:logs()]
    assert.equal("stopped", last.msg)
  end)

  it("says what made a startup fail", function()
    local code, _, _, process = proc.run { script = [[
      local tide = require "moontide"
      tide.startup:phase("db", {}, function() error("no database") end)
    ]] }
    assert.equal(1, code)
    local record = process:wait_log { component = "report", pipeline = "startup" }
    assert.equal("failed", record.outcome)
    local report = assert(json.decode(proc.read_file(
      reports(process.dir .. "/state/reports")[1])))
    assert.equal("startup-failed", report.reason.kind)
    assert.matches("no database", report.pipelines[1].phases[1].tasks[1].error)
  end)
end)
