--- What must not happen to the process because somebody looked into it: os.exit in an evaluation
--- asks for a drain. (debug.sethook is refused where it is tracked, in the core.)

local running = require "moontide.console.running"

local M = {}

--- The reason of the shutdown that an os.exit asks for, if an evaluation has called it.
---@param code integer 0 to 255
---@return tide.Reason|nil
function M.reason_of_exit(code)
  local evaluation = running.current()
  if not evaluation then return nil end
  local text = ("os.exit(%d) at the console"):format(code)
  evaluation.session:out(evaluation.id, text .. ": the process drains\n")
  return require("moontide.reason").new("console", {
    code = code, exit_code = code, text = text, uid = evaluation.session.uid,
    pid = evaluation.session.pid,
  })
end

return M
