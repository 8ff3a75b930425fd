--- An app whose shutdown task spins until it is interrupted, and says when that was.
local M = {}

-- The task runs the body until its timeout of 0.3 s. `seen` notes the moment of the first raise, as
-- a pcall inside the task sees it; the next phase notes when it begins.
local SCRIPT = [==[
local tide = require "moontide"
local core = require "moontide.core"
local now, began, first = core.clock.now, nil, nil

local function say(...)
  io.stdout:write(table.concat({ ... }, " "), "\n")
  io.stdout:flush()
end

local function seen(err)
  if not first then
    first = now()
    say("raised", first - began - 0.3, tostring(err.kind))
  end
end

local function spin() while true do end end

tide.shutdown:task("service-stop", "bad", { timeout = "300ms" }, function()
  began = now()
  %s
end)
tide.shutdown:task("cluster-leave", "next", function() say("next", now() - began - 0.3) end)
]==]

---@param body string Lua; it may call spin(), seen(err) and say(...)
---@return string script says "raised SECONDS interrupted" and "next SECONDS" after the deadline
function M.script(body)
  return SCRIPT:format(body)
end

--- Ways to spin.
---@type table<string, string>
M.bodies = {
  ["loop"] = "spin()",
  ["pcall loop"] = "while true do seen(select(2, pcall(spin))) end",
  ["nested coroutines"] = [[
    while true do
      coroutine.wrap(function()
        coroutine.resume(coroutine.create(function() seen(select(2, pcall(spin))) spin() end))
        spin()
      end)()
    end
  ]],
  ["xpcall handler"] = "while true do seen(select(2, xpcall(spin, spin))) end",
  ["<close> that spins"] = [[
    while true do
      seen(select(2, pcall(function()
        local _ <close> = setmetatable({}, {
          __close = function(_, err)
            seen(err)
            spin()
          end,
        })
        spin()
      end)))
    end
  ]],
  ["<close> that does not"] = [[
    local _ <close> = setmetatable({}, {
      __close = function(_, err)
        seen(err)
        local sum = 0
        for i = 1, 10000 do sum = sum + i end
        say("closed", sum)
      end,
    })
    spin()
  ]],
}

return M
