--- `moontide healthcheck`: asks a running process, for containers without curl. These
--- may be without argparse as well, so the options are read by hand.
local cli = require("moontide.cli")
local core = require("moontide.core")
local duration = require("moontide.duration")

local M = {}

local LONGEST_ANSWER = 65536

local HELP = [[
usage: moontide healthcheck [--url URL] [--timeout S] [--quiet]

Asks the management listener of a running process. Exits with 0 when the answer
is 200, else with 1.

options:
  --url URL      what to ask; default: /health/ready of the management listener,
                 whose address is taken from the environment (MOONTIDE_MANAGE__HOST,
                 MOONTIDE_MANAGE__PORT), else 127.0.0.1:8081
  --timeout S    how long to wait for the answer, default 3s
  -q, --quiet    print nothing
  -h, --help     print this

examples:
  moontide healthcheck
  moontide healthcheck --url http://127.0.0.1:8081/health/live --timeout 1
  HEALTHCHECK CMD ["moontide", "healthcheck"]
]]

--- Reads the options; nil and an exit code when that was all.
local function read_options(args)
  local values, i = { timeout = "3" }, 1
  while args[i] do
    local name, value = args[i]:match("^(%-%-[^=]+)=(.*)$")
    name = name or args[i]
    if name == "--help" or name == "-h" then
      io.stdout:write(HELP)
      return nil, 0
    elseif name == "--quiet" or name == "-q" then
      values.quiet = true
    elseif name == "--url" or name == "--timeout" then
      if not value then
        i = i + 1
        value = args[i]
      end
      if not value then return nil, cli.wrong(("option %s needs a value"):format(name)) end
      values[name:sub(3)] = value
    else
      return nil, cli.wrong(require("moontide.suggest").unknown("option", name,
        { "--url", "--timeout", "--quiet", "--help" }))
    end
    i = i + 1
  end
  return values
end

--- An address to listen on -> one to ask.
local function reachable(host)
  if host == "0.0.0.0" then return "127.0.0.1" end
  return host == "::" and "::1" or host
end

local function default_url()
  local config = require("moontide.config")
  config.load_env(core.host.environ())
  local host = reachable(config.get("manage.host"))
  if host:find(":", 1, true) then host = "[" .. host .. "]" end
  return ("http://%s:%d/health/ready"):format(host, config.get("manage.port"))
end

--- host, port and path of a URL, or nil.
---@param url string
function M.split(url)
  local rest = url:match("^[Hh][Tt][Tt][Pp]://(.+)$")
  if not rest or rest:find("[%s%c]") then return nil end
  local authority, path = rest:match("^([^/?#]+)([^#]*)")
  if not authority then return nil end
  local host, port = authority:match("^%[([%x:.]+)%]:?(%d*)$")
  if not host then host, port = authority:match("^([^:@%[%]]+):?(%d*)$") end
  port = host and (port == "" and 80 or math.tointeger(tonumber(port)))
  if not port or port < 1 or port > 65535 then return nil end
  if path:sub(1, 1) ~= "/" then path = "/" .. path end
  return host, port, path
end

local function address_of(uv, host)
  if host:find(":", 1, true) or host:find("^%d+%.%d+%.%d+%.%d+$") then return host end
  local found, message = uv.getaddrinfo(host, nil, { socktype = "stream" })
  if not found or not found[1] then return nil, message or "no address" end
  return found[1].addr
end

--- Status and body of an answer that has come whole, or nil.
local function read_answer(text, ended)
  local head_end = select(2, text:find("\r\n\r\n", 1, true))
  local status = text:match("^HTTP/1%.%d (%d%d%d)[ \r]")
  if not status then
    if ended or #text >= 16 then return nil, "the answer is not HTTP" end
    return nil
  end
  if not head_end then return nil end
  local length = tonumber(text:sub(1, head_end):lower():match("\r\ncontent%-length: *(%d+)"))
  local body = text:sub(head_end + 1)
  if not ended and (not length or #body < length) and #text < LONGEST_ANSWER then return nil end
  return math.tointeger(tonumber(status)), body
end

--- Asks; turns the loop until there is an answer, a failure, or no time left.
---@return integer|nil status
---@return string body or message
local function ask(host, port, path, timeout)
  local uv = require("luv")
  local address, problem = address_of(uv, host)
  if not address then return nil, ("%s: %s"):format(host, problem) end
  local socket, timer = uv.new_tcp(), uv.new_timer()
  local status, result, received = nil, nil, {}
  local function settle(err, ended)
    if result then return end
    if err then
      result = err
    else
      status, result = read_answer(table.concat(received), ended)
      if not status and ended then result = result or "the answer broke off" end
    end
  end
  timer:start(math.ceil(timeout * 1000), 0, function()
    settle(("no answer within %s"):format(duration.format(timeout)))
  end)
  socket:connect(address, port, function(err)
    if err then return settle(("cannot connect to %s port %d: %s"):format(host, port, err)) end
    socket:read_start(function(failed, data)
      if data then received[#received + 1] = data end
      settle(failed, data == nil)
    end)
    socket:write(("GET %s HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n\r\n"):format(
      path, host:find(":", 1, true) and "[" .. host .. "]" or host, port))
  end)
  while not result do core.host.turn(true) end
  socket:close()
  timer:close()
  return status, result
end

---@param args string[]
---@return integer code
function M.main(args)
  local values, code = read_options(args)
  if not values then return code end
  local timeout, message = duration.parse(tonumber(values.timeout) or values.timeout, "--timeout")
  if not timeout then return cli.wrong(message) end
  local url = values.url or default_url()
  local host, port, path = M.split(url)
  if not host then return cli.wrong(("--url: \"%s\" is not an http:// address"):format(url)) end
  local status, body = ask(host, port, path, timeout)
  if not values.quiet then
    local out = status == 200 and io.stdout or io.stderr
    out:write(status and ("%d "):format(status) or "moontide: ", (body:gsub("%s+$", "")), "\n")
  end
  return status == 200 and 0 or 1
end

return M
