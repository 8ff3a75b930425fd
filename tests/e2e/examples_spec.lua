-- The examples: their scripts start and drain, their manifests are well-formed,
-- and the times in the manifests fit the times in the scripts.
local cjson = require "cjson"
local http = require "support.http_client"
local proc = require "support.process"
local uv = require "luv"

local examples = (os.getenv "MOONTIDE_SOURCE" or ".") .. "/examples/"

local function program(path, ...)
  local code, out, err = proc.run { program = path, argv = { ... } }
  assert(code == 0, ("%s: code %s\n%s%s"):format(path, code, out, err))
  return out
end

-- The documents of a YAML file.
local function yaml(file)
  return cjson.decode(program("/usr/bin/python3", "-c", [[
import json, sys, yaml
print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))]], examples .. file))
end

-- A key of a unit file, less comments.
local function unit(file, key)
  return assert(proc.read_file(examples .. file)):match("\n" .. key .. "=([^\n]*)")
end

local function check(app, grace, prestop)
  local code, out, err = proc.run {
    argv = { "check", examples .. app, "--grace", grace, "--prestop", prestop or 0 },
  }
  return code, out .. err
end

describe("examples/kubernetes", function()
  local pod = yaml("kubernetes/deployment.yaml")[1].spec.template.spec
  local container = pod.containers[1]

  it("fits the grace period of its manifest, and not the default one", function()
    local prestop = tonumber(container.lifecycle.preStop.exec.command[2])
    local code, said = check("kubernetes/app.lua", pod.terminationGracePeriodSeconds, prestop)
    assert.equal(0, code, said)
    code, said = check("kubernetes/app.lua", 30, prestop)
    assert.equal(78, code, said)
  end)

  it("probes the management port, which the pod opens to the kubelet", function()
    for _, probe in ipairs { "startupProbe", "readinessProbe", "livenessProbe" } do
      assert.equal("manage", container[probe].httpGet.port)
    end
    local host
    for _, variable in ipairs(container.env) do
      if variable.name == "MOONTIDE_MANAGE__HOST" then host = variable.value end
    end
    assert.equal("0.0.0.0", host)
  end)

  it("gives the startup probe longer than the startup total", function()
    local probe = container.startupProbe
    assert.is_true(probe.periodSeconds * probe.failureThreshold > 120)
  end)

  it("names files that are there", function()
    local kustomization = yaml("kubernetes/kustomization.yaml")[1]
    for _, file in ipairs(kustomization.resources) do yaml("kubernetes/" .. file) end
    for _, file in ipairs(kustomization.configMapGenerator[1].files) do
      assert.is_string(proc.read_file(examples .. "kubernetes/" .. file))
    end
  end)
end)

describe("examples/systemd", function()
  it("fits the stop timeout of its unit", function()
    local code, said = check("systemd/app.lua", unit("systemd/orders.service", "TimeoutStopSec"))
    assert.equal(0, code, said)
  end)

  it("has units that systemd finds nothing wrong with", function()
    local analyze = "/usr/bin/systemd-analyze"
    if not proc.read_file(analyze) then return pending "systemd is not installed" end
    local dir = proc.temp_dir()
    for _, name in ipairs { "orders.service", "orders.socket" } do
      local text = assert(proc.read_file(examples .. "systemd/" .. name))
      -- The program must exist where the unit says.
      text = text:gsub("/usr/local/bin/moontide", (os.getenv "MOONTIDE"))
      proc.write_file(dir .. "/" .. name, text)
    end
    local code, out, err = proc.run {
      program = analyze, argv = { "verify", dir .. "/orders.service", dir .. "/orders.socket" },
    }
    assert.equal(0, code)
    assert.equal("", out .. err)
  end)

  it("serves on the socket that the socket unit names", function()
    local socket = uv.new_tcp()
    assert(socket:bind("127.0.0.1", 0))
    assert(socket:listen(128, function() end))
    local port = socket:getsockname().port
    local app = proc.start {
      program = "/bin/sh", inherit = socket:fileno(), env = { PORT = port },
      argv = { "-c", ("export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=%s; exec %s run %s"):format(
        unit("systemd/orders.socket", "FileDescriptorName"), os.getenv "MOONTIDE",
        examples .. "systemd/app.lua") },
    }
    socket:close()
    app:wait_ready()
    assert.same({}, app:find_logs { level = "warn" })
    assert.equal(200, http.get(port, "/orders/7").status)
    app:signal "TERM"
    assert.equal(0, (app:wait()))
  end)
end)

describe("examples/compose", function()
  it("fits the grace period of its service", function()
    local service = yaml("compose/compose.yaml")[1].services.orders
    local grace = service.stop_grace_period:match "^(%d+)s$"
    local code, said = check("compose/app.lua", grace)
    assert.equal(0, code, said)
  end)
end)

describe("each example", function()
  local names = { "quickstart", "kubernetes", "systemd", "compose", "rolling", "takeover" }
  for _, name in ipairs(names) do
    it(name .. " becomes ready, serves and exits 0 on SIGTERM", function()
      local app = proc.start {
        script = examples .. name .. "/app.lua",
        env = { MOONTIDE_SHUTDOWN__LINGER = "0" },
      }
      app:wait_ready()
      local response = assert(http.get(app.port, "/orders/7"))
      assert.equal(200, response.status)
      assert.equal("7", cjson.decode(response.body).id)
      app:signal "TERM"
      assert.equal(0, (app:wait()))
    end)
  end
end)

describe("examples/quickstart", function()
  it("is at most forty lines long", function()
    local _, lines = assert(proc.read_file(examples .. "quickstart/app.lua")):gsub("\n", "")
    assert.is_true(lines <= 40)
  end)

  it("answers its slow requests after SIGTERM", function()
    local app = proc.start { script = examples .. "quickstart/app.lua" }
    app:wait_ready()
    local conns = {}
    for i = 1, 10 do
      conns[i] = assert(http.connect(app.port))
      conns[i]:send_request("GET", "/slow")
    end
    -- Answered on another connection: the ten have been read before it.
    assert.equal(200, assert(http.get(app.port, "/")).status)
    app:signal "TERM"
    for i = 1, 10 do
      local response = assert(conns[i]:read_response())
      assert.equal(200, response.status)
      assert.equal("close", response.headers.connection)
      conns[i]:close()
    end
    assert.equal(0, (app:wait()))
  end)

  it("tries its database three times", function()
    local app = proc.start { script = examples .. "quickstart/app.lua" }
    app:wait_ready()
    local done = app:wait_log(function(record)
      return record.phase == "db" and record.duration_ms and record.attempts
    end)
    assert.equal(3, done.attempts)
  end)
end)

describe("examples/takeover", function()
  local function run(times)
    return proc.run {
      program = examples .. "takeover/run.sh", argv = { times }, manage = false, timeout = 60,
      env = {
        MOONTIDE = os.getenv "MOONTIDE", PORT = proc.free_port(), MANAGE = proc.free_port(),
      },
    }
  end

  it("fails no request", function()
    local code, out, err = run(3)
    assert.equal(0, code, out .. err)
    assert.equal("", err)
    local answered = tonumber(out:match "\nanswered=(%d+) failed=0 versions=1,2,3,4\n$")
    assert.is_true(answered and answered > 100, out)
  end)

  it("says how it is used", function()
    local code, _, err = run "often"
    assert.equal(64, code)
    assert.matches("run.sh 5", err)
  end)
end)

describe("examples/rolling", function()
  local function run(mode, times, proxy)
    local env = { MOONTIDE = os.getenv "MOONTIDE" }
    for _, name in ipairs { "FRONT", "ONE", "TWO", "ONE_MANAGE", "TWO_MANAGE" } do
      env[name] = proc.free_port()
    end
    return proc.run {
      program = examples .. "rolling/run.sh", argv = { mode, times, proxy }, env = env,
      manage = false, timeout = 60,
    }
  end

  for _, case in ipairs { { "rolling", "haproxy" }, { "blue-green", "haproxy" },
    { "rolling", "nginx" } } do
    local mode, proxy = table.unpack(case)
    it(("fails no request: %s, %s"):format(mode, proxy), function()
      if not proc.read_file("/usr/sbin/" .. proxy) then
        return pending(proxy .. " is not installed (scripts/setup.sh does)")
      end
      local code, out, err = run(mode, 2, proxy)
      assert.equal(0, code, out .. err)
      assert.equal("", err)
      local answered = tonumber(out:match "\nanswered=(%d+) failed=0 versions=1,2,3\n$")
      assert.is_true(answered and answered > 100, out)
    end)
  end

  it("says how it is used", function()
    for _, words in ipairs { { "sideways", 2 }, { "rolling", 0 }, { "rolling", "x" },
      { "blue-green", 2, "nginx" }, { "rolling", 2, "varnish" } } do
      local code, _, err = run(table.unpack(words))
      assert.equal(64, code)
      assert.matches("run.sh rolling 5", err)
    end
  end)

  it("is not content when a request fails", function()
    -- The clients of the example against a server that answers something else.
    local app = proc.start { script = examples .. "quickstart/app.lua" }
    app:wait_ready()
    local load = proc.start { script = examples .. "rolling/load.lua", manage = false,
      env = { FRONT = app.port } }
    load:wait_log { msg = "request failed" }
    load:signal "TERM"
    assert.equal(0, (load:wait()))
    assert.matches("failed=[1-9]", load:stdout())
  end)
end)
