-- What a registered task gives its registrar, and what it is given when it runs.
local lifecycle = require "support.lifecycle"

describe("the handle of a task", function()
  it("withdraws it only before it has started, and says so", function()
    local handles, seen = {}, {}
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      local shutdown = tide.shutdown
      handles.running = shutdown:task("service-stop", "running", function()
        seen[#seen + 1] = handles.running:cancel()
        tide.sleep(0.1)
      end)
      handles.withdrawn = shutdown:task("service-stop", "withdrawn", { after = "running" },
        function() seen[#seen + 1] = "ran" end)
      shutdown:task("service-stop", "beside", function()
        seen[#seen + 1] = handles.withdrawn:cancel()
      end)
      shutdown:task("cluster-leave", "later", function()
        seen[#seen + 1] = handles.running:cancel()
      end)
    end)
    life:signal "SIGTERM"
    life:advance(5)
    assert.equal(0, life.code)
    assert.same({ false, true, false }, seen)
    assert.equal("ok", handles.running:outcome())
    assert.equal("cancelled", handles.withdrawn:outcome())
  end)
end)

describe("the context of a task", function()
  it("has a log that names phase and task", function()
    local life = lifecycle.new(function(tide)
      tide.startup:phase("db", {})
      tide.startup:task("db", "open", function(ctx)
        ctx.log.info("opened", { pool = 4 })
      end)
    end)
    local record = life:logged({ message = "^opened$" })[1]
    assert.same({ phase = "db", task = "open", pool = 4 }, record.fields)
    assert.equal("app", record.component)
  end)

  it("keeps its own names for itself", function()
    local messages = {}
    lifecycle.new(function(tide)
      tide.startup:phase("db", function(ctx)
        for _, name in ipairs { "log", "deadline", "remaining" } do
          local ok, message = pcall(function() ctx[name] = 1 end)
          messages[#messages + 1] = not ok and message:match "ctx%.%a+ belongs to the host"
        end
      end)
    end)
    assert.same({ "ctx.log belongs to the host", "ctx.deadline belongs to the host",
      "ctx.remaining belongs to the host" }, messages)
  end)

  it("shows the shutdown what the startup has put there", function()
    local seen
    local life = lifecycle.new(function(tide, world)
      world.alive = true
      tide.startup:phase("db", function(ctx) ctx.db = "connection" end)
      tide.shutdown:on("db", function(_, ctx) seen = ctx.db end)
    end)
    life:signal "SIGTERM"
    assert.equal("connection", seen)
  end)
end)

describe("the main chunk", function()
  it("may take thirty seconds", function()
    local life = lifecycle.new(function(tide) tide.sleep(29) end)
    life:advance(29.5)
    assert.not_equal("starting", life.state)

    local ended = lifecycle.new(function(tide)
      tide.shutdown:on("hook", function() end)
      tide.sleep(60)
    end)
    ended:advance(32)
    assert.equal(1, ended.code)
    assert.matches("main chunk's limit of 30 s", ended:logged({ level = "error" })[1].message)
  end)
end)
