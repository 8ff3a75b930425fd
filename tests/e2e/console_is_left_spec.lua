-- Every way out of `moontide console` and its exit code: one's own, the terminal's, the process's.
local console = require "support.console_person"
local fake_host = require "support.fake_host"
local proc = require "support.process"
local usage = require "support.usage"

local function nothing() end

describe("the console is left", function()
  it("by ~. at an empty line, at once", function()
    local person = console.start()
    person:type "~."
    person:see "disconnected"
    assert.equal(0, person:wait())
  end)

  it("by ~. while something runs, without the server's help", function()
    local person, host = console.start { ["spin()"] = nothing }
    person:type "spin()\r"
    host:wait_for "eval"
    person:type "~"
    person:type "."
    person:see "disconnected"
    assert.equal(0, person:wait())
  end)

  it("by ~. behind a line that was typed ahead, not in the middle of one", function()
    local person, host = console.start { ["spin()"] = nothing }
    person:type "spin()\r"
    host:wait_for "eval"
    person:type "a~.b\r~."
    person:see "disconnected"
    assert.equal(0, person:wait())
  end)

  it("not by a tilde elsewhere", function()
    local person, host = console.start()
    person:type "a ~.1\r"
    assert.equal("a ~.1", host:wait_for("eval").source)
    person:type "~1\r"
    assert.equal("~1", host:wait_for("eval", 2).source)
    person:type "x\127~\127~.\r" -- the line is not as it was when the tilde came
    person:see "disconnected"
    assert.equal(0, person:wait())
  end)

  it("when the terminal goes away, with the code of a hangup", function()
    for _, source in ipairs { "", "spin()\r" } do
      local person, host = console.start { ["spin()"] = nothing }
      person:type(source)
      if source ~= "" then host:wait_for "eval" end
      person:hang_up()
      assert.equal(129, person:wait())
    end
  end)

  it("with the code of the signal that ends it", function()
    local person = console.start()
    local path = ("/proc/%d/task/%d/children"):format(person.process.pid, person.process.pid)
    proc.run { program = "/bin/kill", argv = { proc.read_file(path):match "%d+" } }
    assert.equal(143, person:wait())
  end)

  it("when the process has gone, at the prompt and in the middle of an evaluation", function()
    for _, source in ipairs { "", "spin()\r" } do
      local person, host = console.start { ["spin()"] = nothing }
      person:type(source)
      if source ~= "" then host:wait_for "eval" end
      host:stop()
      person:see(("process %d has closed the connection"):format(host.pid))
      assert.equal(69, person:wait())
    end
  end)

  it("when the process has had enough of it, with its reason", function()
    local person, host = console.start()
    local conn = host.conns[#host.conns]
    conn:send { type = "event", event = "closed", text = "nothing was asked for 30 minutes" }
    conn.pipe:shutdown()
    person:see "orders>\nmoontide: nothing was asked for 30 minutes\n"
    assert.equal(69, person:wait())
  end)

  it("with 0 when the process has ended in order, and shows its report", function()
    local person, host = console.start()
    local conn = host.conns[#host.conns]
    conn:send { type = "event", event = "state", state = "draining" }
    person:see "%-%- orders is draining\norders>$"
    person:type "\r"
    person:see "\norders%(draining%)>$"
    conn:send { type = "event", event = "report", text = "shutdown in 12 ms\nexit code 0" }
    person:see "shutdown in 12 ms\nexit code 0\n"
    host:stop()
    assert.equal(0, person:wait())
  end)

  it("at the end of its input, once", function()
    local host = fake_host.start "orders"
    host.on.eval = function(conn, message) conn:done(message.id) end
    local code, out, err = proc.run { argv = { "console" }, env = host.env, manage = false }
    assert.same({ 0, "", "" }, { code, out, err })
    code, out, err = proc.run { argv = { "console" }, env = host.env, manage = false,
      stdin = "1\n" }
    assert.same({ 0, "", "" }, { code, out, err })
  end)

  it("when its input is closed, also while something runs", function()
    local host = fake_host.start "orders"
    local asked
    host.on.eval = function(conn, message)
      asked = function() conn:done(message.id) end
    end
    local client = proc.start { argv = { "console" }, env = host.env, manage = false,
      stdin = "slow()\n" }
    host:wait_for "eval"
    -- With the input at its end and nothing to do; in circles it would use all of a processor.
    assert.is_true(usage.cpu_share(client.pid, 0.3) < 0.3)
    asked()
    assert.equal(0, client:wait())
  end)
end)
