-- The families about the process, against what /proc says.
local uv = require "luv"

describe("the process's metrics", function()
  local metrics

  before_each(function()
    package.loaded["moontide.core"] = { log = { write = function() end } }
    package.loaded["moontide.observe.metrics"] = nil
    metrics = require "moontide.observe.metrics"
    require("moontide.observe.metrics.process").declare(metrics)
  end)

  after_each(function()
    package.loaded["moontide.core"] = nil
    package.loaded["moontide.observe.metrics"] = nil
  end)

  local function value(name)
    local text = metrics.render():match("\n" .. name .. " (%S+)\n")
    return tonumber(text), text
  end

  it("says when it began", function()
    local now = uv.gettimeofday()
    assert.is_true(value("process_start_time_seconds") <= now + 1)
    assert.is_true(value("process_start_time_seconds") > now - 600)
  end)

  it("counts open files", function()
    local before = value("process_open_fds")
    local file = assert(io.open("/dev/null"))
    assert.equal(before + 1, value("process_open_fds"))
    file:close()
    assert.equal(before, value("process_open_fds"))
    assert.is_true(value("process_max_fds") >= before)
  end)

  it("measures memory in bytes", function()
    local resident = value("process_resident_memory_bytes")
    assert.is_true(resident > 2 ^ 20 and resident < 2 ^ 32)
    assert.is_true(value("process_virtual_memory_bytes") >= resident)
  end)

  it("counts processor time up", function()
    local before = value("process_cpu_seconds_total")
    local until_then = before + 0.02
    while value("process_cpu_seconds_total") < until_then do end
    assert.is_true(value("process_cpu_seconds_total") < before + 60)
  end)
end)
