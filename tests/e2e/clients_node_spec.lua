-- Node's clients: fetch, which is undici, and http.Agent.
local foreign = require "support.foreign"

local NODE = foreign.find "node"

for _, client in ipairs { "fetch", "agent" } do
  describe("Node's " .. client, function()
    if not NODE then
      return pending "nodejs is not installed (scripts/setup.sh does)"
    end
    local node = { program = NODE, argv = { foreign.clients .. "client.mjs", client } }

    it("gets and sends all kinds of bodies", function()
      foreign.basics(node)
    end)

    it("meets no error in a drain, before it is refused", function()
      -- eight at a time, each asking every few milliseconds for a second
      assert.is_true(foreign.drain(node).answered > 100)
    end)
  end)
end
