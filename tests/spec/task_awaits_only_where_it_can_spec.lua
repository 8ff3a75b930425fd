local async = require "support.async"
local it = async.virtual()
local task = require "moontide.task"

local function wait() task.sleep(0.1) end

describe("an await works inside", function()
  local meta = { __index = function(_, k) wait() return k end, __newindex = wait, __call = wait,
    __lt = function() wait() return true end, __le = function() wait() return true end,
    __eq = function() wait() return true end, __len = function() wait() return 7 end,
    __concat = function() wait() return "joined" end, __close = wait,
    __pairs = function(t) wait() return next, t end }
  local object = setmetatable({}, meta)
  local other = setmetatable({}, meta)

  it("pcall, xpcall and dofile", function()
    assert.is_true(pcall(wait))
    assert.is_true(xpcall(wait, debug.traceback))
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write('require("moontide.task").sleep(0.1) return "ran"')
    file:close()
    assert.equal("ran", dofile(path))
    os.remove(path)
  end)

  it("metamethods", function()
    assert.equal("key", object.key)
    object.x = 1
    object()
    assert.is_true(object < other and object <= other and object == other)
    assert.equal(7, #object)
    assert.equal("joined", object .. "x")
    for _ in pairs(object) do end
    do
      local _ <close> = object
    end
  end)

  it("a for iterator", function()
    local count = 0
    for i in function(_, i) wait() return i < 3 and i + 1 or nil end, nil, 0 do
      count = i
    end
    assert.equal(3, count)
  end)
end)

describe("an await is refused, with a message that says why,", function()
  local function refused(fn, ...)
    local ok, err = pcall(fn, ...)
    assert.is_false(ok)
    assert.truthy(tostring(err):find("cannot await inside", 1, true), tostring(err))
    task.sleep(0.1) -- the task itself is as it was
  end

  it("inside table.sort", function()
    refused(table.sort, { 3, 1, 2 }, function(a, b) wait() return a < b end)
  end)

  it("inside string.gsub", function()
    refused(string.gsub, "abc", ".", wait)
  end)

  it("inside require", function()
    package.preload["await.at.load"] = wait
    refused(require, "await.at.load")
    package.preload["await.at.load"] = nil
  end)

  it("inside tostring", function()
    refused(tostring, setmetatable({}, { __tostring = wait }))
  end)

  it("inside table.concat with metamethods and a load reader", function()
    refused(table.concat, setmetatable({}, { __index = wait, __len = function() return 1 end }))
    local _, message = load(wait)
    assert.truthy(tostring(message):find("cannot await inside", 1, true))
  end)

  it("inside a finalizer", function()
    local message
    setmetatable({}, { __gc = function() message = select(2, pcall(wait)) end })
    collectgarbage()
    collectgarbage()
    assert.truthy(tostring(message):find("cannot await inside", 1, true))
  end)

  it("inside a plain coroutine that a task resumed", function()
    for _, await in ipairs { wait, function() task.event():wait() end,
      function() task.waiter():wait() end, function() task.channel():receive() end } do
      local ok, err = coroutine.resume(coroutine.create(await))
      assert.is_false(ok)
      assert.truthy(err:find("plain coroutine", 1, true))
    end
    task.sleep(0.1)
  end)

  it("and a plain coroutine that does not await works as ever", function()
    local generate = coroutine.wrap(function()
      for i = 1, 3 do
        coroutine.yield(i, task.current() ~= nil)
      end
    end)
    assert.same({ 1, true }, { generate() })
    task.sleep(0.1)
    assert.same({ 2, true }, { generate() })
  end)
end)

describe("outside any task an await", function()
  require("busted").it("says that it needs one", function()
    for _, await in ipairs { wait, function() task.event():wait() end,
      function() task.waiter():wait() end, function() task.scope(wait) end,
      function() task.shield(1, wait) end } do
      local ok, err = pcall(await)
      assert.is_false(ok)
      assert.truthy(err:find("outside a task", 1, true), err)
    end
  end)
end)
