--- The jobs of a route without a route, for specs on the virtual clock.
local jobs_room = require "moontide.http.jobs"
local store_room = require "moontide.http.store"

local M = {}

local REQUEST = { method = "POST", path = "/x", body = "" }

---@param handler fun(job: moontide.Job): ...
---@param more table|nil fields over the defaults
---@return moontide.Jobs
function M.new(handler, more)
  local opts = {
    name = "api POST /x", scope = "api POST /x", store = store_room.memory(), handler = handler,
    limit = 100, parallel = 10, ttl = 60, site = "test:1",
  }
  for name, value in pairs(more or {}) do opts[name] = value end
  return jobs_room.new(opts)
end

--- Asks for a job as a request would.
---@return table|nil job
---@return table|nil why
---@return boolean|nil is_new
function M.ask(room, key, print)
  return room:submit {
    key = key, scope = room.scope, fingerprint = print or "f", path = "/x", request = REQUEST,
  }
end

--- How the job stands.
function M.state(room, id)
  local job = room:get(id, "/x")
  return job and job.state, job
end

return M
