require("support.paths")
local config = require("moontide.config")

--- The errors of a script that calls tide.config(tbl) in line 3.
local function errors_of(tbl)
  config.reset()
  config.set(tbl, "app.lua:3")
  return config.seal()
end

describe("the schema", function()
  it("says which names hold keys", function()
    local schema, groups = require "moontide.config.schema", {}
    for _, row in ipairs(schema.keys) do
      local group, rest = row[1]:match "^([^.]+)%.(.+)$"
      if group then groups[group] = true end
      assert.is_nil(rest and rest:find(".", 1, true), row[1]) -- what `named_row` takes two dots for
    end
    for group in pairs(schema.named) do groups[group] = true end
    assert.same(groups, schema.groups)
  end)
end)

describe("a setting", function()
  before_each(config.reset)
  after_each(config.reset)

  it("has a default", function()
    assert.equal(40, config.get("shutdown.timeout"))
    assert.equal("127.0.0.1", config.get("manage.host"))
    assert.is_true(config.get("manage"))
    assert.is_nil(config.get("manage.token"))
    assert.equal("default", config.origin("shutdown.timeout"))
    assert.is_false(config.is_set("shutdown.timeout"))
  end)

  it("is parsed: durations, sizes, nested and dotted keys", function()
    assert.same({}, errors_of({
      shutdown = { linger = "250ms", timeout = "1m30s" },
      limits = { body = "2MiB" },
      ["log.level"] = "warn",
      console = { uids = { 0, "1000:eval" } },
    }))
    assert.equal(0.25, config.get("shutdown.linger"))
    assert.equal(90, config.get("shutdown.timeout"))
    assert.equal(2 * 1024 * 1024, config.get("limits.body"))
    assert.equal("warn", config.get("log.level"))
    assert.same({ { uid = 0, policy = "inspect" }, { uid = 1000, policy = "eval" } },
      config.get("console.uids"))
    assert.equal("config app.lua:3", config.origin("log.level"))
  end)

  it("is taken from the strongest of script, environment and command line", function()
    config.set({ shutdown = { timeout = 10, drain = 11, linger = 1 } }, "app.lua:3")
    config.override("shutdown.timeout", "12s")
    config.load_env({
      MOONTIDE_SHUTDOWN__TIMEOUT = "40", MOONTIDE_SHUTDOWN__DRAIN = "13s",
    })
    assert.same({}, config.seal())
    assert.equal(12, config.get("shutdown.timeout"))
    assert.equal("command line", config.origin("shutdown.timeout"))
    assert.equal(13, config.get("shutdown.drain"))
    assert.equal("environment MOONTIDE_SHUTDOWN__DRAIN", config.origin("shutdown.drain"))
    assert.equal(1, config.get("shutdown.linger"))
  end)

  it("can be reached by the short names of the environment", function()
    config.load_env({
      MOONTIDE_NAME = "shop", MOONTIDE_STATE_DIR = "/var/lib/shop",
      MOONTIDE_STARTUP_TIMEOUT = "5m", MOONTIDE_SHUTDOWN_TIMEOUT = "25",
    })
    assert.same({}, config.seal())
    assert.equal("shop", config.get("name"))
    assert.equal("/var/lib/shop", config.get("state_dir"))
    assert.equal(300, config.get("startup.timeout"))
    assert.equal(25, config.get("shutdown.timeout"))
  end)

  it("ignores what a Kubernetes Service called moontide injects", function()
    config.load_env({
      MOONTIDE_PORT = "tcp://10.0.0.1:80", MOONTIDE_SERVICE_HOST = "10.0.0.1",
      MOONTIDE_PORT_80_TCP_ADDR = "10.0.0.1", MOONTIDE__B_PORT = "1", PATH = "/bin",
      MOONTIDE_LUA_PATH = "lua", MOONTIDE_MANAGE__PORT = "",
    })
    assert.same({}, config.seal())
    assert.equal(8081, config.get("manage.port"))
  end)

  it("reads booleans, numbers and lists from text", function()
    local environment, name, value = {
      MOONTIDE_STARTUP__PARALLEL = "on", MOONTIDE_MANAGE__PORT = "0",
      MOONTIDE_CONSOLE__UIDS = "0,1000:eval",
    }, nil, nil
    config.load_env(function()
      name, value = next(environment, name)
      return name, value
    end)
    config.override("manage", "false")
    assert.same({}, config.seal())
    assert.is_true(config.get("startup.parallel"))
    assert.equal(0, config.get("manage.port"))
    assert.same({ { uid = 0, policy = "inspect" }, { uid = 1000, policy = "eval" } },
      config.get("console.uids"))
    assert.is_false(config.get("manage"))
  end)

  it("may turn the management listener off or into the api's", function()
    assert.same({}, errors_of({ manage = false }))
    assert.is_false(config.get("manage"))
    assert.same({}, errors_of({ manage = "api" }))
    assert.equal("api", config.get("manage"))
    assert.same({}, errors_of({ manage = { port = 9000 } }))
    assert.is_true(config.get("manage"))
    assert.matches("neither false", errors_of({ manage = "off" })[1])
  end)

  it("holds overrides of phases and reasons under their names", function()
    assert.same({}, errors_of({
      startup = { phases = { db = { timeout = "1m", on_fail = "warn" } } },
      shutdown = {
        phases = { ["service-stop"] = { timeout = "none", after = "x", recover = false } },
        reasons = { admin = { exit_code = 3, skip = { "cluster-leave" }, timeout = 10 } },
      },
    }))
    assert.same({ db = { timeout = 60, on_fail = "warn" } }, config.named("startup.phases"))
    assert.same({
      ["service-stop"] = { timeout = math.huge, after = { "x" }, recover = false },
    }, config.get("shutdown.phases"))
    assert.equal(3, config.get("shutdown.reasons.admin.exit_code"))
    config.reset()
    config.load_env({ MOONTIDE_SHUTDOWN__PHASES__SERVICE_STOP__TIMEOUT = "7" })
    assert.same({}, config.seal())
    assert.equal(7, config.get("shutdown.phases.service-stop.timeout"))
  end)
end)

describe("a wrong setting", function()
  after_each(config.reset)

  local cases = {
    { { shutdown = { timeot = 1 } }, "\"shutdown.timeot\"; did you mean \"shutdown.timeout\"?" },
    { { shutdwn = {} }, "unknown key \"shutdwn\"; did you mean \"shutdown\"?" },
    { { timeout = 1 }, "did you mean \"startup.timeout\" or \"shutdown.timeout\"?" },
    { { shutdown = 5 }, "shutdown: is a table of settings, not 5" },
    { { shutdown = { timeout = 0 } }, "shutdown.timeout: 0 is refused" },
    { { shutdown = { timeout = "none" } }, "shutdown.timeout: \"none\" is refused" },
    { { shutdown = { linger = -1 } }, "shutdown.linger: -1 is negative" },
    { { shutdown = { drain = "30" } }, "shutdown.drain: \"30\" has no unit" },
    { { manage = { port = 70000 } }, "manage.port: 70000 is not between 0 and 65535" },
    { { manage = { port = "x" } }, "manage.port: \"x\" is not an integer" },
    { { limits = { body = "1 lot" } }, "limits.body: \"1 lot\" is not a size" },
    { { log = { level = "wran" } }, "did you mean \"warn\"?" },
    { { startup = { parallel = "yes" } }, "startup.parallel: \"yes\" is not a boolean" },
    { { shutdown = { phases = { a = 5 } } }, "phases.a: is a table (an object of settings)" },
    { { shutdown = { phases = { a = { dependsOn = {} } } } }, "did you mean \"after\"?" },
    { { shutdown = { phases = { a = { on_fail = "exit" } } } }, "unknown key \"on_fail\"" },
    { { startup = { phases = { a = { on_fail = "retry" } } } }, "nor tide.retry{...}" },
    { { shutdown = { phases = { a = { after = { 1 } } } } }, "one of a list of names" },
    { { "x" }, "keys are names, not 1" },
    { "x", "tide.config takes a table" },
  }
  for _, case in ipairs(cases) do
    it("is refused: " .. case[2], function()
      local errors = errors_of(case[1])
      assert.equal(1, #errors)
      assert.matches("^app%.lua:3: ", errors[1])
      assert.matches(case[2], errors[1], 1, true)
    end)
  end

  it("is listed with all the others", function()
    config.reset()
    config.set({ shutdown = { linger = -1, timeot = 2 }, log = { level = "loud" } }, "app.lua:3")
    config.load_env({ MOONTIDE_SHUTDOWN__TIMEOT = "1", MOONTIDE_MANAGE__PORT = "http" })
    config.override("shutdown.drai", "9s")
    local errors = config.seal()
    assert.equal(6, #errors)
    assert.matches("^environment MOONTIDE_SHUTDOWN__TIMEOT: ", errors[5])
    assert.matches("did you mean \"MOONTIDE_SHUTDOWN__TIMEOUT\"", errors[5])
    assert.matches("^command line: .*shutdown%.drain", errors[6])
  end)

  it("does not show a secret in its message", function()
    for _, message in ipairs(errors_of({ manage = { token = { "hunter2" } } })) do
      assert.not_matches("hunter2", message)
    end
    config.reset()
    config.load_env({ MOONTIDE_MANAGE__TOKEN = "hunter2\n" })
    assert.not_matches("hunter2", config.seal()[1])
  end)

  it("comes too late after the seal, and the second time", function()
    config.reset()
    config.set({}, "app.lua:3")
    config.set({}, "app.lua:9")
    assert.matches("app.lua:9: tide.config was called already %(app.lua:3%)", config.seal()[1])
    local ok, message = pcall(config.set, {}, "app.lua:12")
    assert.is_false(ok)
    assert.matches("^app.lua:12: the configuration is sealed", message)
  end)

  it("cannot be asked for", function()
    assert.error_matches(function() config.get("shutdown.tmeout") end, "\"shutdown.timeout\"")
  end)
end)

describe("the shutdown total", function()
  after_each(config.reset)

  it("leaves a second of the grace period when that is set", function()
    assert.same({}, errors_of({ shutdown = { grace = 30, prestop = 5 } }))
    assert.equal(24, config.get("shutdown.timeout"))
    assert.matches("shutdown.grace", config.origin("shutdown.timeout"))
    assert.same({}, config.warnings)
  end)

  it("warns when it was set to more than that", function()
    assert.same({}, errors_of({ shutdown = { grace = 30, timeout = 50 } }))
    assert.equal(29, config.get("shutdown.timeout"))
    assert.equal(1, #config.warnings)
    assert.matches("shutdown.timeout 50s %(config app.lua:3%) does not fit", config.warnings[1])
  end)

  it("stays as it is when it is shorter", function()
    assert.same({}, errors_of({ shutdown = { grace = 60, prestop = 10 } }))
    assert.equal(40, config.get("shutdown.timeout"))
  end)

  it("cannot be made of nothing", function()
    assert.matches("leaves no time", errors_of({ shutdown = { grace = 10, prestop = 10 } })[1])
  end)

  it("shortens a default linger, not a chosen one", function()
    assert.same({}, errors_of({ shutdown = { timeout = 2 } }))
    assert.equal(0.5, config.get("shutdown.linger"))
    assert.same({}, errors_of({ shutdown = { timeout = 2, linger = 1 } }))
    assert.equal(1, config.get("shutdown.linger"))
  end)
end)

describe("the explanation of the settings", function()
  it("shows value and origin of each, and masks secrets", function()
    config.reset()
    config.set({
      manage = { token = "hunter2" },
      shutdown = { linger = "5s", phases = { b = { after = { "x", "y" } } } },
    }, "app.lua:3")
    config.seal()
    local lines = {}
    for key, value, origin in config.explain() do lines[key] = value .. " | " .. origin end
    assert.equal("******** | config app.lua:3", lines["manage.token"])
    assert.equal("5s | config app.lua:3", lines["shutdown.linger"])
    assert.equal("2m | default", lines["startup.timeout"])
    assert.equal("unset | default", lines["log.file"])
    assert.equal("x, y | config app.lua:3", lines["shutdown.phases.b.after"])
    config.reset()
  end)
end)
