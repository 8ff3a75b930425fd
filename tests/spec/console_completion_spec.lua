-- What completion offers at a place of the source; `|` is the cursor.
require "moontide"
local complete = require "moontide.console.complete"
local tide = require "moontide"

local function user_code() error("completion has run code of a script") end

local guarded = setmetatable({ plain = 1 }, {
  __index = user_code, __pairs = user_code, __len = user_code, __call = user_code,
  __tostring = user_code, __eq = user_code, __metatable = "locked",
})

local Queue = { push = function() end, size = 0 }
Queue.__index = Queue

local env = setmetatable({
  tide = tide, guarded = guarded, queue = setmetatable({ name = "q" }, Queue), text = "a text",
  jobs = { ["a b"] = { state = 1, start = print, step = function() end }, [3] = { third = true } },
  circle = setmetatable({}, {}), number = 17, ["not a name"] = 1, ["end"] = 1,
}, { __index = user_code })
debug.getmetatable(env.circle).__index = env.circle

local function at(source)
  local cursor = assert(source:find("|", 1, true), "no cursor in " .. source)
  local text = source:sub(1, cursor - 1) .. source:sub(cursor + 1)
  local from, items = complete.at(env, text, cursor)
  assert(from, items)
  assert.is_true(from >= 1 and from <= cursor)
  local typed = text:sub(from, cursor - 1)
  for _, item in ipairs(items) do assert.equal(typed, item:sub(1, #typed)) end
  return table.concat(items, " "), from, items
end

local function check(cases)
  for _, case in ipairs(cases) do assert.equal(case[2], (at(case[1])), case[1]) end
end

describe("completion of names", function()
  it("finds globals, keywords and commands", function()
    check {
      { "gua|", "guarded" }, { "pri|nt(1)", "print" }, { "ret|", "retry return" },
      { "whe|", "where" }, { "x = sessi|", "sessions" }, { "number..num|", "number" },
      { "nothing_like_it|", "" }, { "not|", "not" },
    }
    local all = at "|"
    assert.truthy(all:find("guarded", 1, true) and all:find("print", 1, true))
    assert.falsy(all:find("not a name", 1, true) or all:find("while", 1, true))
  end)

  it("says what it replaces", function()
    assert.equal(1, select(2, at "gua|"))
    assert.equal(9, select(2, at "return (gua|rded)"))
    assert.equal(8, select(2, at "queue. |"))
    assert.equal(15, select(2, at "number = tide.sh|"))
  end)

  it("follows chains", function()
    check {
      { "queue.na|", "name" }, { "queue.p|", "push" }, { "queue:|", "push" },
      { "jobs[\"a b\"].st|", "start state step" }, { "jobs['a b']:st|", "start step" },
      { "jobs[3].|", "third" }, { "string.for|", "format" }, { "jobs . |", "" },
      { "(\"x\"):up|", "upper" }, { "text:up|", "upper" }, { "text.up|", "upper" },
      { "number.|", "" }, { "nothing.|", "" }, { "nothing.at.all|", "" }, { "circle.|", "" },
      { "jobs[\"a b\"][\"st|", "start state step" }, { "jobs['|", "a b" },
      { "f(queue.na|", "name" }, { "{ queue.na|", "name" }, { "queue\n  .na|", "name" },
      { "queue. -- a comment\n na|", "name" },
    }
  end)

  it("does not follow what it would have to run", function()
    check {
      { "guarded.p|", "plain" }, { "guarded.other.|", "" }, { "f().x|", "" },
      { "queue.push().x|", "" }, { "jobs[number].|", "" }, { "jobs[1 + 2].|", "" },
      { "(queue).na|", "" }, { "(\"x\" .. y):up|", "" },
    }
  end)

  it("knows the library also where it is not loaded", function()
    check {
      { "tide.sh|", "shield shutdown" }, { "tide.heartb|", "heartbeat" },
      { "tide.http.lis|", "listen listen_all" }, { "tide.root:sp|", "spawn" },
      { "tide.shutdown:set_|", "set_phase_timeout" }, { "tide.log.w|", "warn" },
    }
    assert.is_nil(package.loaded["moontide.heartbeat"])
    assert.is_nil(package.loaded["moontide.http"])
  end)

  it("knows the names that the source makes", function()
    check {
      { "local counter = 1; return count|", "counter" },
      { "for index, item in pairs(t) do print(ind|", "index" },
      { "local function add(left, right) return lef|", "left" },
      { "local file <close>, other = f(), 1; othe|", "other" },
      { "x = function(first, ...) return fir|", "first" },
      { "local queue = other(); queue.|", "" }, -- not the global of this name
    }
  end)

  it("offers nothing where a new name stands", function()
    check { { "local que|", "" }, { "local f|", "function" }, { "goto que|", "" },
      { "for que|", "" } }
  end)

  it("offers nothing in strings, comments and numbers", function()
    check {
      { "x = 'que|", "" }, { "x = \"que|", "" }, { "x = [[que|", "" }, { "x = [==[ ]] que|", "" },
      { "-- que|", "" }, { "--[[ x\n que|", "" }, { "--[==[ ]] que|", "" }, { "12|", "" },
      { "0x|", "" }, { "1.|", "" }, { "'a\\' que|", "" }, { "'a\\z \n que|", "" },
    }
  end)

  it("offers names behind strings and comments", function()
    check {
      { "x = 'a' .. que|", "queue" }, { "x = [[a]] .. que|", "queue" }, { "-- x\nque|", "queue" },
      { "--[[ x ]] que|", "queue" }, { "--[==[ ]] ]==] que|", "queue" },
      { "'\\\\' .. que|", "queue" },
      { "'unfinished\nque|", "queue" },
    }
  end)

  it("works in the middle of a statement of several lines", function()
    check {
      { "for i = 1, 2 do\n  if i == 1 then\n    que|", "queue" },
      { "return {\n  queue.na|,\n  2,\n}", "name" },
      { "if queue.n| then return 1", "name" },
    }
  end)
end)

describe("completion of arguments", function()
  tide.check("database", function() return true end)
  tide.check("cache", function() return true end)
  tide.check("it's", function() return true end)
  tide.shutdown:task("service-stop", "flush the queue", function() end)
  tide.startup:phase("connect")

  it("knows phases, tasks, checks and settings by their names", function()
    check {
      { "retry(\"|", "cache database it's" }, { "retry('|", "cache database" },
      { "retry 'da|", "database" }, { "retry(\"|\")", "cache database it's" },
      { "skip(\"flu|", "flush the queue" }, { "skip(\"conn|", "connect" },
      { "skip(\"x\", \"|", "" }, { "extend(\"service-s|", "service-stop" },
      { "config(\"shutdown.run_by_t|", "shutdown.run_by_terminate" },
      { "tide.shutdown:task(\"service-s|", "service-stop" }, { "nothing(\"|", "" },
      { "print(\"|", "" }, { "retry(f(1, 2), \"|", "" }, { "retry { \"|", "" },
    }
  end)

  it("takes the strings of some commands for Lua", function()
    check {
      { "watch(\"queue.na|", "name" }, { "trace 'tide.spa|", "spawn" },
      { "help(\"tide.shut|", "shutdown" },
    }
    assert.equal(14, select(2, at "watch(\"queue.na|"))
  end)

  it("knows options", function()
    check {
      { "drain { rea|", "reason" }, { "drain { dry = true, reas|", "reason" },
      { "tide.http.listen { po|", "port" }, { "tide.check(\"x\", { crit|", "critical" },
      { "print { por|", "" },
    }
  end)

  it("knows live tasks", function()
    local task = require "moontide.task"
    task.start({ name = "reindex" }, function() end)
    check { { "where(\"rei|", "reindex" } }
    task.root:cancel()
    for _ = 1, 100 do task.pump() end
    check { { "where(\"rei|", "" } }
  end)
end)

describe("a cursor", function()
  it("outside of the source is refused with the range", function()
    for _, cursor in ipairs { 0, -1, 5, 1.5, math.mininteger, math.maxinteger } do
      local from, message = complete.at(env, "abc", cursor)
      assert.is_nil(from)
      assert.equal(("the cursor is %s; it stands on byte 1 to 4 here"):format(cursor), message)
    end
    assert.equal(1, (complete.at(env, "", 1)))
  end)

  it("far into a source that nobody types is refused", function()
    local from, message = complete.at(env, ("x"):rep(1000000), 1000000)
    assert.is_nil(from)
    assert.equal("999999 bytes before the cursor are too many to complete; at most 32768 are read",
      message)
    assert.equal(1, (complete.at(env, ("x"):rep(1000000), 4)))
  end)
end)

describe("completion in a table", function()
  it("of a million names looks at some and offers 500", function()
    local big = {}
    for i = 1, 1000000 do big["k" .. i] = true end
    env.big = big
    local began = os.clock()
    local _, _, items = at "big.k|"
    assert.equal(500, #items)
    -- It takes some milliseconds; looking at all of them would be a second on a slow machine.
    assert.is_true(os.clock() - began < 0.5)
    env.big = nil
  end)
end)
