-- Completion and help answer from the live process: while an evaluation runs, in the middle of a
-- statement of several lines, and for the names that exist at that moment.
local console = require "support.console"
local proc = require "support.process"

local APP = [[
local tide = require "moontide"
tide.config { manage = false }
tide.check("database", function() return true end)
tide.shutdown:task("service-stop", "flush the queue", function() end)
jobs = { push = function(what, ...) end, pending = 3 }
strict = setmetatable({}, { __index = function(_, key) error("code of the script: " .. key) end })
setmetatable(_G, { __index = function(_, key) error("no global " .. tostring(key)) end })
tide.spawn(function() tide.sleep(1000) end)
]]

local app, client

local function complete(source, cursor)
  local reply = client:request { type = "complete", source = source, cursor = cursor }
  assert.equal("ok", reply.status)
  return table.concat(reply.value.items, " "), math.tointeger(reply.value.from)
end

describe("completion in a live process", function()
  before_each(function()
    app = proc.start { script = APP }
    client = console.connect(app)
    client:hello()
  end)
  after_each(function() client:close() end)

  it("knows globals, the library, commands and live names", function()
    assert.equal("jobs", (complete "job"))
    assert.equal("pending push", (complete "jobs.p"))
    assert.equal("shield shutdown", (complete "tide.sh"))
    assert.equal("database", (complete "retry(\"dat"))
    assert.equal("flush the queue", (complete "skip('flu"))
    assert.equal("", (complete "strict."))
    assert.same({ "pending", 12 }, { complete("x = f(jobs.pe, 1)", 14) })
  end)

  it("knows what the session has assigned", function()
    assert.equal("ok", client:eval("answer = { to = { everything = 42 } }").status)
    assert.equal("everything", (complete "answer.to.ev"))
    assert.equal("", (complete "answer.to.x"))
  end)

  it("answers while an evaluation spins", function()
    local spinning = client:send { type = "eval", source = "while true do end" }
    assert.equal("pending push", (complete "jobs.p"))
    assert.truthy(client:request({ type = "help", name = "jobs.push" }).value.text)
    client:request { type = "interrupt", of = spinning }
    assert.equal("cancelled", client:finish(spinning).status)
  end)

  it("answers in the middle of a statement", function()
    assert.equal("incomplete", client:eval("for i = 1, 3 do").status)
    assert.equal("pending push", (complete "for i = 1, 3 do\n  jobs.p"))
    assert.equal("incomplete", client:eval("for i = 1, 3 do\n  jobs.push(").status)
    assert.equal("pending", (complete "for i = 1, 3 do\n  jobs.push(\n  jobs.pe"))
  end)

  it("refuses a cursor that is outside", function()
    local reply = client:request { type = "complete", source = "abc", cursor = 7 }
    assert.equal("error", reply.status)
    assert.equal("the cursor is 7; it stands on byte 1 to 4 here", reply.error.message)
    reply = client:request { type = "complete", source = "abc", cursor = "x" }
    assert.equal("error", reply.status)
    assert.matches("cursor has to be an integer", reply.error.message)
  end)

  it("is beside help", function()
    local reply = client:request { type = "help", name = "jobs.push" }
    assert.matches("^jobs%.push%(what, %.%.%.%)\n  .*:%d+$", reply.value.text)
    assert.matches("Starts fn%(%.%.%.%)", client:eval("help(tide.spawn)").text)
    assert.matches("\ntasks ", client:eval("help()").text)
    assert.matches("^skip", client:eval("help 'skip'").text)
    assert.matches("^tasks", client:eval("help(tasks)").text)
    reply = client:request { type = "help", name = "tide.spwan" }
    assert.equal("unknown", reply.status)
    assert.equal("unknown name \"tide.spwan\"; did you mean \"tide.spawn\"?", reply.error.message)
    assert.matches("did you mean \"tasks\"", client:eval("help 'tsks'").error.message)
  end)
end)
