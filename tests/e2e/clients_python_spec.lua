-- Python's http.client, which retries nothing.
local foreign = require "support.foreign"

local PYTHON = { program = "/usr/bin/python3", argv = { foreign.clients .. "client.py" } }

describe("Python's http.client", function()
  it("gets and sends all kinds of bodies on one connection", function()
    foreign.basics(PYTHON)
  end)

  it("meets no error in a drain, before it is refused", function()
    -- eight threads, each asking every few milliseconds for a second
    assert.is_true(foreign.drain(PYTHON).answered > 100)
  end)
end)
