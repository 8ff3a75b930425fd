local lifecycle = require "support.lifecycle"

local NAMES = {
  "startup", "shutdown", "phases", "profiles", "config", "component", "check", "heartbeat",
  "worker", "retry", "permanent", "reason", "log", "metrics", "json", "now", "state", "on_state",
  "root", "spawn", "sleep", "timeout", "all", "race", "scope", "event", "channel", "shield",
  "offload", "task", "terminate", "on_signal", "run_until_terminated", "install_process_hooks",
  "remove_process_hooks", "handles", "version",
}

describe("require \"moontide\"", function()
  it("has every public name, whether loaded yet or not", function()
    local life = lifecycle.new(function() end)
    for _, name in ipairs(NAMES) do
      assert.is_not_nil(life.tide[name], name)
      assert.equal(life.tide[name], life.tide[name])
    end
  end)

  it("is nil for any other name", function()
    local life = lifecycle.new(function() end)
    assert.is_nil(life.tide.shutdwn)
  end)

  it("loads neither HTTP nor JSON nor checks for a script that names none of them", function()
    lifecycle.new(function(tide, world)
      world.alive = true
      tide.startup:phase("a", {})
    end)
    for _, name in ipairs { "http", "json", "readiness", "worker", "component", "dump", "systemd",
      "describe", "pipeline.phase_run", "pipeline.task_run", "pipeline.waiting" } do
      assert.is_nil(package.loaded["moontide." .. name], name)
    end
  end)
end)
