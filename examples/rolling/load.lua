-- The clients: moontide the other way round. Each is a worker, so that SIGTERM lets
-- it finish the request in hand. None of them tries anything twice, and every answer
-- must be the one to its own request.
--
-- At the end one line on standard output: "answered=N failed=M versions=1,2".
local tide, uv = require "moontide", require "luv"

tide.config { name = "load", manage = false, shutdown = { linger = 0 } }

local port = tonumber(os.getenv "FRONT" or 8000)
local answered, failed, versions = 0, 0, {}

local function connect()
  local conn, waiter = uv.new_tcp(), tide.task.waiter "connect"
  conn:connect("127.0.0.1", port, function(err) waiter:wake(err) end)
  return conn, waiter:wait()
end

-- Status, body and whether to keep the connection; or nil and why.
local function talk(conn, request)
  local answer, waiter = "", tide.task.waiter "answer"
  conn:read_start(function(err, data)
    answer = answer .. (data or "")
    local head, body = answer:match "^(.-\r\n)\r\n(.*)"
    local length = head and tonumber(head:lower():match "\r\ncontent%-length: (%d+)\r\n")
    if length and #body == length then
      conn:read_stop()
      waiter:wake(tonumber(head:match "^HTTP/1.1 (%d+)"), body,
        not head:lower():find "\r\nconnection: close\r\n")
    elseif not data then
      conn:read_stop()
      waiter:wake(nil, err or ("the connection ended after %d bytes"):format(#answer))
    end
  end)
  conn:write(request)
  return waiter:wait()
end

local function count(id, status, body)
  local version = body and body:match '"version":"([^"]*)"'
  if (status == 200 or status == 201) and body:find('"id":"' .. id .. '"', 1, true) then
    answered, versions[version] = answered + 1, true
  else
    failed = failed + 1
    tide.log.error("request failed", { id = id, status = status, body = body })
  end
end

-- `method`: of all its requests. `keep`: whether its connection serves all of them.
local function client(name, method, keep)
  local conn, sequence = nil, 0
  tide.worker(name, { every = "5ms" }, function()
    local err
    sequence = sequence + 1
    local id = name .. "-" .. sequence
    if not conn then
      conn, err = connect()
    end
    local status, body, keep_it = nil, err, false
    if not err then
      status, body, keep_it = talk(conn, ("%s /orders/%s HTTP/1.1\r\nHost: orders\r\n%s\r\n")
        :format(method, id, method == "POST" and "Content-Length: 0\r\n" or ""))
    end
    count(id, status, body)
    if not (keep and keep_it) then
      conn:close()
      conn = nil
    end
  end)
end

for i = 1, 4 do
  client("get-kept-" .. i, "GET", true)
  client("post-kept-" .. i, "POST", true)
  client("get-" .. i, "GET", false)
  client("post-" .. i, "POST", false)
end

tide.shutdown:task("before-actor-system-terminate", "report", function()
  local seen = {}
  for version in pairs(versions) do seen[#seen + 1] = version end
  table.sort(seen)
  print(("answered=%d failed=%d versions=%s"):format(answered, failed, table.concat(seen, ",")))
end)

tide.run_until_terminated()
