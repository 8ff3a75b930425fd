--- Settings of the control socket that cannot be; a row of `illegal`. Pure.

-- A Unix socket's path has at most 107 bytes, a pid at most 7 digits.
local LONGEST, PID = 107, "4194304"

local function path_too_long(config)
  local dir = config.get("control.dir")
  if not dir or not config.get("control.socket") then return nil end
  local path = ("%s/%s-%s.sock"):format(dir, config.get("name") or "unnamed", PID)
  if #path <= LONGEST then return nil end
  return ("control.dir (%s): with the file's name, %s/NAME-PID.sock is a path of %d bytes; a Unix"
    .. " socket has at most %d"):format(config.origin("control.dir"), dir, #path, LONGEST)
end

-- The other directories are private, or made by somebody for this user.
local function users_without_directory(config)
  local uids = config.get("console.uids")
  if not uids or #uids == 0 or config.get("control.dir") then return nil end
  return ("console.uids (%s) needs control.dir: a directory that these users can enter and only"
    .. " this one can change"):format(config.origin("console.uids"))
end

---@param subject tide.Subject
---@return string[] messages
return function(subject)
  local messages = {}
  messages[#messages + 1] = path_too_long(subject.config)
  messages[#messages + 1] = users_without_directory(subject.config)
  return messages
end
