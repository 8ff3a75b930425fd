-- What help says of commands, names of the library, and values of a script.
require "moontide"
local commands = require "moontide.console.commands"
local help = require "moontide.console.help"
local printer = require "moontide.console.printer"
local tide = require "moontide"

local function user_code() error("help has run code of a script") end

local function greet(name, _, ...) return name, ... end

local env = setmetatable({
  tide = tide, greet = greet, text = "abc", number = 1.0, list = { 1 }, jobs = { push = greet },
  guarded = setmetatable({}, { __index = user_code, __tostring = user_code, __call = user_code }),
  evil = load("return 1", "=\27[31m"),
}, { __index = user_code })
local session = { environment = function() return env end }

local function of(name)
  local text, message = help.of(env, name)
  assert(text, message)
  assert.truthy(utf8.len(text))
  return text
end

describe("help alone", function()
  it("is one screen with all commands", function()
    local text = of ""
    local lines = 0
    for line in (text .. "\n"):gmatch "(.-)\n" do
      lines = lines + 1
      assert.is_true(#line <= 100, line)
    end
    assert.equal(#commands.list + 2, lines)
    for _, command in ipairs(commands.list) do
      assert.truthy(("\n" .. text):find("\n" .. command.name .. " ", 1, true), command.name)
    end
    assert.equal(text, of "  ")
    assert.equal(text, printer.text(help.show(session)))
  end)
end)

describe("help of a command", function()
  it("says how it is typed and what it needs", function()
    for _, command in ipairs(commands.list) do
      local text = of(command.name)
      assert.equal(1, text:find(command.signature, 1, true))
      assert.truthy(text:find(command.help:sub(1, 20), 1, true))
      assert.equal(command.needs == "eval", text:find("policy eval", 1, true) ~= nil)
    end
  end)

  it("is found by its value, too", function()
    local bound = setmetatable({ tasks = function() end }, { __index = env })
    local shown = help.show({ environment = function() return bound end }, bound.tasks)
    assert.equal(of "tasks", printer.text(shown))
  end)
end)

describe("help of the library", function()
  it("has the signature, the description and the place", function()
    local text = of "tide.spawn"
    assert.truthy(text:find("^tide%.spawn%(fn, %.%.%.%) %-> moontide%.Task\n"), text)
    assert.truthy(text:find("\n  Starts fn(...) as a task of the current scope", 1, true), text)
    assert.matches("\n  moontide/task%.lua:%d+$", text)
    assert.truthy(of("tide.shutdown:task"):find("(phase, name, opts?, fn?)", 1, true))
    assert.truthy(of("tide.shutdown.task"):find("(phase, name, opts?, fn?)", 1, true))
  end)

  it("is there before a module is loaded", function()
    assert.is_nil(package.loaded["moontide.http.accepted"])
    assert.truthy(of("tide.http.listen"):find("Declares a listener", 1, true))
    assert.is_nil(package.loaded["moontide.http"])
  end)

  it("lists the members of modules and classes", function()
    assert.truthy(of("tide.http"):find("listen()", 1, true))
    assert.truthy(of("Task"):find(".outcome: ", 1, true))
    assert.truthy(of("moontide.TaskOptions"):find(".detached_errors: boolean|nil", 1, true))
    assert.truthy(of("Task:await"):find("^Task:await%(%)"))
    assert.truthy(of("moontide.task.spawn"):find("(fn, ...)", 1, true))
  end)

  it("is found by the value of a function", function()
    assert.truthy(printer.text(help.show(session, tide.spawn)):find("Starts fn(...)", 1, true))
    assert.truthy(printer.text(help.show(session, tide.root)):find("moontide.Scope", 1, true))
  end)

  it("knows every name of the public face", function()
    local docs = require "moontide.console.docs"
    for _, name in ipairs(docs.names(docs.module "moontide")) do
      assert.truthy(of("tide." .. name))
    end
    for name in pairs(tide) do assert.truthy(of("tide." .. name)) end
  end)
end)

describe("help of a script's value", function()
  it("has place and parameters of a function", function()
    local info = debug.getinfo(greet, "S")
    local expected = ("greet(name, _, ...)\n  %s:%d"):format(info.short_src, info.linedefined)
    assert.equal(expected, of "greet")
    assert.equal("jobs.push" .. expected:sub(6), of "jobs.push")
    assert.equal("jobs['push']" .. expected:sub(6), of "jobs['push']")
    assert.equal("function" .. expected:sub(6), printer.text(help.show(session, greet)))
    assert.equal("evil(...)\n  \\x1B[31m:0", of "evil")
  end)

  it("says what else it is", function()
    assert.equal("text\n  a string of 3 bytes", of "text")
    assert.equal("number\n  1.0", of "number")
    assert.equal("list\n  a table", of "list")
    assert.equal("guarded\n  a table", of "guarded")
    assert.equal("string.format(...)\n  a function written in C", of "string.format")
    assert.equal("for\n  a keyword of Lua", of "for")
    assert.equal("io.stdout\n  a userdata, FILE*", of "io.stdout")
  end)
end)

describe("an unknown name", function()
  local function unknown(name)
    local text, message = help.of(env, name)
    assert.is_nil(text)
    return message
  end

  it("is answered with the nearest", function()
    assert.equal("unknown name \"tsks\"; did you mean \"tasks\"?", unknown "tsks")
    assert.equal("unknown name \"tide.spwan\"; did you mean \"tide.spawn\"?", unknown "tide.spwan")
    assert.equal("unknown name \"jobs.psh\"; did you mean \"jobs.push\"?", unknown "jobs.psh")
    assert.equal("unknown name \"prnt\"; did you mean \"print\"?", unknown "prnt")
  end)

  it("is answered with what there is, each name once", function()
    local seen, list = {}, unknown("qqqqqqqqqqqq"):match "; known: (.*) and %d+ more$"
    for name in list:gmatch "[^, ]+" do
      assert.is_nil(seen[name], name)
      seen[name] = true
    end
    assert.is_truthy(seen.assert)
  end)

  it("is an error of the command", function()
    assert.has_error(function() help.show(session, "tsks") end,
      "unknown name \"tsks\"; did you mean \"tasks\"?")
  end)

  it("may be anything", function()
    for _, name in ipairs { "1", "a b", "f()", "\"", "[[", "--", "\0", "\xff", "a..b", ":", ".",
      "a.", ("x"):rep(200), "guarded.x", "x.y.z" } do
      assert.matches("^unknown name ", unknown(name))
    end
    assert.equal("a text of 201 bytes is no name", unknown(("x"):rep(201)))
    assert.equal("unknown name \"\\x1B[0m\\xFF\"; did you mean \"x\"?",
      (unknown "\27[0m\xff"):gsub("; .*", "; did you mean \"x\"?"))
  end)
end)
