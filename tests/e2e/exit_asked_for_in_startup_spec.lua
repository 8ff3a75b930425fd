-- os.exit in a startup step is a request: the step does not wait for a shutdown that waits for it.
local proc = require "support.process"

local HEAD = [[
local tide = require "moontide"
local function say(text) io.stdout:write(text, "\n") io.stdout:flush() end
local function leave() say "leaves" os.exit(3) say "went on" end
]]

describe("os.exit in a startup step", function()
  local function run(script)
    local code, out, _, app = proc.run { script = HEAD .. script }
    assert.equal(3, code)
    -- Nothing in it takes time; a busy machine does.
    assert.is_true(app.exited_at - app.started_at < 1)
    return out
  end

  it("rolls back what had started, and nothing else", function()
    local out = run [[
      tide.component("one", { start = function() end, stop = function() say "one down" end })
      tide.component("two", { needs = "one", start = leave, stop = function() say "never" end })
      tide.component("three", { needs = "two", start = function() say "never" end })]]
    assert.equal("leaves\none down\n", out)
  end)

  it("that is the first one ends a process in which nothing has started", function()
    assert.equal("leaves\n", run [[
      tide.component("one", { start = leave, stop = function() say "never" end })]])
  end)

  it("is heard from a task of the step, too", function()
    assert.equal("leaves\none down\n", run [[
      tide.component("one", { start = function() end, stop = function() say "one down" end })
      tide.component("two", { needs = "one", start = function()
        tide.spawn(leave):await()
        say "went on"
      end })]])
  end)
end)
