require("support.paths")
local graph = require("moontide.pipeline.graph")
local phases = require("moontide.pipeline.phases")
local retry = require("moontide.retry")

local function refusal(kind, name, opts)
  local ok, message = pcall(function()
    graph.new({ kind = kind }):phase(name, opts, "app.lua:12")
  end)
  assert.is_false(ok)
  assert.matches("^app%.lua:12: ", message)
  return message
end

describe("a phase option", function()
  local cases = {
    { "shutdown", { depends_on = { "a" } }, "did you mean \"after\"?" },
    { "startup", { dependsOn = "a" }, "did you mean \"after\"?" },
    { "shutdown", { timout = 1 }, "unknown option \"timout\"; did you mean \"timeout\"?" },
    { "shutdown", { colour = 1 }, "unknown option \"colour\"; known: after, before, timeout" },
    { "startup", { recover = false }, "in startup it is on_fail" },
    { "shutdown", { on_fail = "exit" }, "in shutdown it is recover" },
    { "shutdown", { timeout = 0 }, "timeout 0 is refused" },
    { "shutdown", { timeout = "0s" }, "timeout 0 is refused" },
    { "shutdown", { timeout = -1 }, "timeout: -1 is negative" },
    { "shutdown", { timeout = 0 / 0 }, "timeout: NaN" },
    { "shutdown", { timeout = math.huge }, "timeout: infinity" },
    { "shutdown", { timeout = "5" }, "timeout: \"5\" has no unit" },
    { "shutdown", { timeout = {} }, "timeout: a table is not a duration" },
    { "shutdown", { after = 5 }, "after is a phase name or a list of them, not 5" },
    { "shutdown", { after = "" }, "after is a phase name" },
    { "shutdown", { after = { "a", 5 } }, "item 2 is 5" },
    { "shutdown", { before = { a = true } }, "before is a plain list" },
    { "shutdown", { recover = "yes" }, "recover is a boolean, true or false, not \"yes\"" },
    { "shutdown", { mode = "serial" }, "mode is \"parallel\", \"lifo\" or \"fifo\"" },
    { "startup", { on_fail = "retry" }, "on_fail is \"exit\", \"warn\" or tide.retry{...}" },
    { "startup", { enabled = 1 }, "enabled is a boolean" },
    { "startup", 5, "options are a table, not 5" },
  }
  for _, case in ipairs(cases) do
    it("is refused in " .. case[1] .. ": " .. case[3], function()
      local message = refusal(case[1], "db", case[2])
      assert.matches("phase \"db\": ", message, 1, true)
      assert.matches(case[3], message, 1, true)
    end)
  end

  it("is refused in the same words whichever comes first in the table", function()
    for _ = 1, 20 do
      assert.matches("unknown option \"aa\"", refusal("shutdown", "db", { zz = 1, aa = 1, mm = 1 }))
    end
  end)

  it("is kept when it is right", function()
    local policy = retry({ base = 1 })
    local g = graph.new({ kind = "startup" })
    g:phase("a")
    local node = g:phase("db", {
      after = "a", timeout = "2m", on_fail = policy, mode = "fifo", enabled = false, always = true,
    }, "app.lua:3")
    assert.same({ "a" }, node.after)
    assert.equal(120, node.timeout)
    assert.equal("call app.lua:3", node.timeout_origin)
    assert.equal(policy, node.on_fail)
    assert.equal("fifo", node.mode)
    assert.is_false(node.enabled)
    assert.is_true(node.always)
    assert.is_nil(node.recover)
  end)

  it("has a default", function()
    local node = graph.new({ kind = "shutdown" }):phase("a")
    assert.is_true(node.recover)
    assert.is_true(node.enabled)
    assert.is_false(node.always)
    assert.equal("parallel", node.mode)
    assert.is_nil(node.timeout)
    assert.equal("exit", graph.new({ kind = "startup" }):phase("a").on_fail)
  end)

  it("may be \"none\", which only the total bounds", function()
    local node = graph.new({ kind = "shutdown" }):phase("a", { timeout = "none" })
    assert.equal(math.huge, node.timeout)
  end)

  it("is copied: the script may change its list afterwards", function()
    local g, list = graph.new({ kind = "startup" }), { "a" }
    g:phase("a")
    g:phase("b", { after = list })
    list[1] = "c"
    assert.is_nil(g:seal())
  end)
end)

describe("a phase name", function()
  it("is a text that is not empty", function()
    assert.matches("has a name, not an empty one", refusal("startup", ""))
    assert.matches("has a name, not nil", refusal("startup", nil))
    assert.matches("has a name, not 5", refusal("startup", 5))
  end)

  it("is defined once, and the message says where it was", function()
    local g = graph.new({ kind = "startup" })
    g:phase("db", nil, "app.lua:3")
    local _, message = pcall(g.phase, g, "db", nil, "app.lua:9")
    assert.equal("app.lua:9: phase \"db\" is already defined at app.lua:3", message)
  end)

  it("of a built-in phase leads to the settings", function()
    local g = graph.new({ kind = "shutdown" })
    g:builtin("service-stop")
    local _, message = pcall(g.phase, g, "service-stop", nil, "app.lua:9")
    assert.matches("is built in: .*shutdown%.phases%[\"service%-stop\"%]", message)
  end)

  it("comes too late after the seal", function()
    local g = graph.new({ kind = "startup" })
    g:seal()
    assert.error_matches(function() g:phase("a") end, "sealed")
  end)
end)

describe("the constants", function()
  it("name the twelve shutdown phases", function()
    assert.equal("service-unbind", phases.names.ServiceUnbind)
    assert.equal("actor-system-terminate", phases.names.ActorSystemTerminate)
    local count = 0
    for constant, name in pairs(phases.names) do
      count = count + 1
      assert.equal(name, phases.names[constant])
    end
    assert.equal(12, count)
  end)

  it("raise for a name they lack, and cannot be changed", function()
    assert.error_matches(function() return phases.names.ServiceUnbnd end,
      "tide.phases: unknown phase \"ServiceUnbnd\"; did you mean \"ServiceUnbind\"?", 1, true)
    assert.error_matches(function() phases.names.New = "new" end, "cannot be changed")
  end)
end)
