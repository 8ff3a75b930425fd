-- A listener or a route that cannot work is refused where it is declared.
local tide = require "moontide"

local names = 0
local function server()
  names = names + 1
  return tide.http.listen { name = "s" .. names, port = 0 }
end

local function handler() return "" end

describe("tide.http.listen", function()
  local function refuses(options, pattern)
    local ok, err = pcall(tide.http.listen, options)
    assert.is_false(ok)
    assert.matches(pattern, err)
  end

  it("names the nearest option", function()
    refuses({ prot = 1 }, "prot.*did you mean \"port\"")
    refuses({ port = 1, limits = { bdoy = 1 } }, "bdoy.*did you mean \"body\"")
    refuses({ port = 1, timeouts = { idel = 1 } }, "idel.*did you mean \"idle\"")
  end)

  it("reads limits and timeouts as the configuration does", function()
    refuses({ port = 1, limits = { body = "1 lot" } }, "limits.body: \"1 lot\" is not a size")
    refuses({ port = 1, limits = { header_count = 101 } }, "not between 1 and 100")
    refuses({ port = 1, limits = { request_line = "1MiB" } }, "not between 16 and 16384")
    refuses({ port = 1, timeouts = { idle = "soon" } }, "timeouts.idle: .*soon")
    refuses({ port = 1, timeouts = { header = 0 } }, "timeouts.header: 0 is refused")
    local s = tide.http.listen { name = "own", port = 0,
      limits = { body = "2MiB" }, timeouts = { idle = "90s", write_min_rate = "1KiB" } }
    assert.equal(2 * 1024 * 1024, s.opts.limits.body)
    assert.equal(90, s.opts.timeouts.idle)
    assert.equal(1024, s.opts.timeouts.write_min_rate)
  end)

  it("reads durations where they are declared", function()
    refuses({ port = 1, stream_grace = "5" }, "stream_grace")
    refuses({ port = 1, handler_timeout = {} }, "handler_timeout")
    refuses({ port = 1, cancel_on_disconnect = "yes" }, "cancel_on_disconnect is a boolean")
    refuses({ port = 1, idle_close_spread = "2" }, "idle_close_spread")
    refuses({ port = 1, linger_adaptive = 1 }, "linger_adaptive is a boolean")
    refuses({ port = 1, linger_adaptiv = true }, "did you mean \"linger_adaptive\"")
    refuses({ port = 1, timeouts = { first_byte_grac = 1 } }, "did you mean \"first_byte_grace\"")
    refuses({ port = 1, timeouts = { header_in_drain = 0 } }, "header_in_drain: 0 is refused")
    assert.has_no_error(function()
      tide.http.listen { name = "durations", port = 0, stream_grace = "1m", handler_timeout = 2,
        cancel_on_disconnect = false }
        :post("/", { body_limit = "10MB", timeout = "none", stream = true }, handler)
    end)
  end)

  it("wants a place to listen", function()
    refuses({}, "one of port, path and fd")
    refuses({ port = 1, path = "/tmp/x" }, "port and path are two places")
    refuses({ host = "::1", path = "/tmp/x" }, "host and path are two places")
    refuses({ host = "::1", fd = "web" }, "host and fd are two places")
    refuses({ path = "" }, "1 to 107 bytes, not 0")
    refuses({ path = ("x"):rep(108) }, "1 to 107 bytes, not 108")
    refuses("8080", "a table of options")
    refuses({ port = 70000 }, "not between 0 and 65535")
    refuses({ port = "80" }, "port is an integer")
    refuses({ port = 1, accept = "late" }, "\"early\" or \"ready\"")
    refuses({ fd = "", port = 1 }, "fd is empty")
    refuses({ fd = "web", path = "/tmp/x" }, "path and fd are two places")
    refuses({ port = 1, backlog = 0 }, "backlog 0 is not between 1 and 65535")
  end)

  it("wants each listener to have its own name", function()
    tide.http.listen { name = "twice", port = 0 }
    refuses({ name = "twice", port = 0 }, "named \"twice\" is declared already")
    refuses({ name = "manage", port = 0 }, "\"manage\" is the name of the management listener")
    refuses({ name = "", port = 0 }, "the name is empty")
  end)
end)

describe("a route", function()
  local function refuses(pattern, ...)
    local s, arguments = server(), table.pack(...)
    local ok, err = pcall(function() s:get(table.unpack(arguments, 1, arguments.n)) end)
    assert.is_false(ok)
    assert.matches(pattern, err)
  end

  it("of a shape that is there already is refused", function()
    local s = server():get("/orders/:id", handler)
    local ok, err = pcall(s.get, s, "/orders/:name", handler)
    assert.is_false(ok)
    assert.matches("GET route \"/orders/:name\" has the same shape as \"/orders/:id\"", err, 1,
      true)
    assert.has_no_error(function() s:post("/orders/:name", handler) end)
  end)

  it("needs a path and a handler", function()
    refuses("must begin with a slash", "orders", handler)
    refuses("the last argument must be the handler", "/orders")
    refuses("the last argument must be the handler", "/orders", "text")
    refuses("did you mean \"stream\"", "/orders", { straem = true }, handler)
    refuses("body_limit is a whole number of bytes", "/orders", { body_limit = -1 }, handler)
    refuses("body_limit is a whole number of bytes", "/orders", { body_limit = "10 feet" }, handler)
    refuses("did you mean \"cancel_on_disconnect\"", "/", { cancel_on_disconect = true }, handler)
    refuses("stream is true or false", "/orders", { stream = "yes" }, handler)
    refuses("timeout is \"none\" or a duration", "/orders", { timeout = "soon" }, handler)
    refuses("argument 1 must be middleware or a table", "/orders", 7, handler)
  end)

  it("of a method that does not exist is refused", function()
    local s = server()
    assert.has_error(function() s:route("FETCH", "/", handler) end,
      "unknown HTTP method \"FETCH\"")
  end)
end)

describe("middleware", function()
  it("is a function", function()
    local s = server()
    assert.has_error(function() s:use("log") end,
      "server:use: middleware is a function, not a string")
  end)
end)

describe("tide.http.accepted and tide.http.idempotent", function()
  local function refuses(pattern, make)
    local ok, err = pcall(make)
    assert.is_false(ok)
    assert.matches(pattern, err)
    assert.matches("http_declarations_are_strict_spec.lua:%d+: ", err)
  end

  it("name the nearest option, and what is wrong with a value", function()
    for _, name in ipairs { "accepted", "idempotent" } do
      local make = tide.http[name]
      refuses("tide.http." .. name .. ": unknown option \"tll\"; did you mean \"ttl\"",
        function() make { tll = 1 } end)
      refuses("ttl: \"1\" has no unit", function() make { ttl = "1" } end)
      refuses("ttl must be above 0", function() make { ttl = 0 } end)
      refuses("key is \"required\" or \"optional\", not \"maybe\"", function()
        make { key = "maybe" }
      end)
      refuses("store \"redis\" is neither \"memory\" nor \"sqlite:FILE\"", function()
        make { store = "redis" }
      end)
      refuses("the store has no method \"open\"", function() make { store = {} } end)
      refuses("scope must be a function", function() make { scope = "x" } end)
    end
    refuses("limit must be a whole number from 1 on", function()
      tide.http.accepted { limit = 0 }
    end)
    refuses("resume needs a store that outlives the process", function()
      tide.http.accepted { resume = true }
    end)
    refuses("unknown option \"cuont\"; did you mean \"count\"", function()
      tide.http.store.memory { cuont = 1 }
    end)
    refuses("the name must be a string", function() tide.http.store.sqlite(nil) end)
    refuses("busy: \"1\" has no unit", function()
      tide.http.store.sqlite("x.db", { busy = "1" })
    end)
  end)

  it("refuse a route whose places for jobs are taken", function()
    local s = server()
    s:get("/export/:name", handler)
    refuses("the jobs of POST /export are at GET /export/:job_id: .*has the same shape as "
      .. "\"/export/:name\"", function() s:post("/export", tide.http.accepted(), handler) end)
    local other = server()
    other:post("/export", tide.http.accepted(), handler)
    local ok, err = pcall(other.get, other, "/export/:name", handler)
    assert.is_false(ok)
    assert.matches("has the same shape as \"/export/:job_id\"", err, 1, true)
    assert.has_no_error(function() other:get("/export/latest", handler) end)
    assert.has_no_error(function() other:post("/", tide.http.accepted(), handler) end)
  end)

  it("refuse methods that ask for nothing to be done", function()
    local s = server()
    refuses("a GET asks for nothing to be done", function()
      s:get("/export", tide.http.accepted(), handler)
    end)
  end)
end)
