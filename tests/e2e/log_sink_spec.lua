-- tide.log.sink: the script's own way of writing the log.
local json = require "moontide.json"
local proc = require "support.process"

-- Runs a script to its end; the file that it may write to, and its log.
local function run(script)
  local dir = proc.temp_dir()
  local path = dir .. "/sink.log"
  local code, _, err, process = proc.run { script = script, env = { SINK = path } }
  return { code = code, err = err, app = process, written = proc.read_file(path) or "" }
end

local HEAD = [[
  local tide = require "moontide"
  local file = assert(io.open(os.getenv "SINK", "w"))
  file:setvbuf "full"
]]

describe("a log sink", function()
  after_each(proc.cleanup)

  it("is given every record as JSON, the last ones of the process too", function()
    local ran = run(HEAD .. [[
      tide.log.sink {
        name = "file", level = "info",
        write = function(line, level)
          if line:find "await" then tide.sleep "5ms" end
          file:write(level, " ", line, "\n")
        end,
        flush = function() tide.sleep "1ms" file:write "flush\n" end,
        close = function() file:write "close\n" file:close() end,
      }
      tide.log.debug "below its level"
      tide.log.info("an await", { id = 7 })
      tide.log.warn "second"
    ]])
    assert.equal(0, ran.code, ran.err)
    local records, tail = {}, {}
    for line in ran.written:gmatch "[^\n]+" do
      local level, text = line:match "^(%a+) ({.*})$"
      if level then
        local record = assert(json.decode(text))
        assert.equal(level, record.level)
        records[#records + 1] = record
      else
        tail[#tail + 1] = line
      end
    end
    assert.same({ "flush", "close" }, tail)
    assert.equal("an await", records[1].msg)
    assert.equal(7, records[1].id)
    assert.equal("second", records[2].msg)
    assert.equal("stopped", records[#records].msg)
  end)

  it("that fails is named, and gets no more records", function()
    local ran = run(HEAD .. [[
      tide.log.sink { name = "bad", write = function(line)
        file:write(line, "\n")
        file:flush()
        error "disk full"
      end }
      tide.log.info "one"
      tide.startup:phase("p", {}, function() tide.sleep "20ms" tide.log.info "two" end)
    ]])
    assert.equal(0, ran.code)
    local record = ran.app:wait_log { component = "log", sink = "bad", level = "error" }
    assert.matches("^bad failed and gets no more records: .*app.lua:7: disk full$", record.msg)
    assert.matches("app.lua:7: in ", record.traceback)
    assert.equal(1, select(2, ran.written:gsub("\n", "")))
  end)

  it("that logs is told that it cannot", function()
    local ran = run(HEAD .. [[
      tide.log.sink { name = "loop", write = function(line) tide.log.info("got " .. line) end }
      tide.log.info "one"
    ]])
    assert.equal(0, ran.code)
    assert.matches("log.info: a sink cannot log: each record would bring the next",
      ran.app:wait_log { sink = "loop" }.msg, 1, true)
  end)

  it("that is too slow loses records, which are counted, and holds up nobody", function()
    local ran = run(HEAD .. [[
      local first = true
      tide.log.sink { name = "slow", queue = 10, write = function(line)
        if first then first = false tide.sleep "50ms" end
        file:write(line, "\n")
      end, close = function() file:close() end }
      tide.startup:phase("p", {}, function()
        for i = 1, 100 do tide.log.info("n" .. i) end
        tide.sleep "100ms"
        tide.log.info "later"
      end)
    ]])
    assert.equal(0, ran.code)
    local record = ran.app:wait_log { sink = "slow" }
    assert.equal("slow is too slow: records are lost to it", record.msg)
    local _, kept = ran.written:gsub('"msg":"n%d+"', "")
    assert.equal(100, kept + record.records)
    assert.is_true(kept > 0 and kept < 20, kept) -- others of the host's wait as well
    assert.matches('"msg":"later"', ran.written, 1, true)
  end)

  it("that hangs is left behind, in the middle and at the end", function()
    local ran = run(HEAD .. [[
      tide.config { log = { close_timeout = "200ms" } }
      tide.log.sink { name = "stuck", timeout = "50ms", write = function() tide.sleep "1h" end }
      tide.log.sink { name = "spins", write = function() end, flush = function()
        while true do end
      end }
      tide.log.sink { name = "waits", write = function() end, flush = function()
        tide.sleep "1h"
      end }
      tide.log.info "one"
      tide.startup:phase("p", {}, function() tide.sleep "100ms" end)
    ]])
    assert.equal(0, ran.code)
    assert.matches("^stuck failed and gets no more records: timed out",
      ran.app:wait_log { sink = "stuck" }.msg)
    assert.matches("^spins did not end well: ", ran.app:wait_log { sink = "spins" }.msg)
    assert.matches("^waits did not end well: ", ran.app:wait_log { sink = "waits" }.msg)
  end)

  it("can be removed, and then has written what it was given", function()
    local ran = run(HEAD .. [[
      local sink = tide.log.sink { write = function(line) file:write(line, "\n") end,
        close = function() file:close() end }
      tide.startup:phase("p", {}, function()
        tide.log.info "before"
        sink:remove()
        sink:remove()
        tide.log.info "behind"
      end)
    ]])
    assert.equal(0, ran.code, ran.err)
    assert.matches('"msg":"before"', ran.written, 1, true)
    assert.is_nil(ran.written:find "behind")
  end)

  it("is refused with the line when it is no sink", function()
    for text, message in pairs {
      ["{}"] = "log.sink: write: a function is wanted, not a nil",
      ["{ write = print, levle = 1 }"] = "log.sink: unknown option",
      ["{ write = print, level = \"warning\" }"] = "log.sink: level: unknown level",
      ["{ write = print, queue = 0 }"] = "log.sink: queue must be a whole number from 1 on",
      ["7"] = "log.sink: the options must be a table, not a number",
    } do
      local ran = run("local tide = require \"moontide\"\ntide.log.sink(" .. text .. ")")
      assert.equal(78, ran.code)
      assert.matches("app.lua:2: ", ran.err, 1, true)
      assert.is_truthy(ran.err:find(message, 1, true), ran.err)
    end
  end)
end)
