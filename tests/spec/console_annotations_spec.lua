-- What the annotations of the sources become: help and completion read it (console/docs.lua).
require "moontide"
local paths = require "support.paths"
local docs = require "moontide.console.docs"

local annotations = dofile(paths.root .. "/scripts/annotations.lua")

-- The lines that a source gives, as tables of fields.
local function lines_of(source, more)
  local files = { { module = "moontide.x", path = "moontide/x.lua", source = source } }
  table.move(more or {}, 1, #(more or {}), 2, files)
  local lines = {}
  for line in load(annotations(files))():gmatch "[^\n]+" do
    local fields = {}
    for field in (line .. "\t"):gmatch "([^\t]*)\t" do fields[#fields + 1] = field end
    lines[#lines + 1] = fields
  end
  return lines
end

local function member(source, name)
  for _, fields in ipairs(lines_of(source)) do
    if fields[2] == name then return fields end
  end
end

describe("an annotated function", function()
  local source = [==[
--- A module.
--
-- More of it.

local M = {}

--- Does it,
--- twice.
---@param what string the thing
---@param opts? { a: string,
--- b: integer }
---@param fn fun(a: string): boolean, integer
---@param last moontide.Task|nil
---@return boolean done
---@return string|nil message
function M.act(what, opts, fn, last, ...)
end

--- By hand.
---@type fun(a: string, b: integer|nil): boolean
M.typed = other

function M.undescribed() end

--- A method.
function M:method() end

-- No annotation.
function M.plain() end

return M
]==]

  it("has its parameters, results and words", function()
    assert.same({ ".", "act", "(what, opts?, fn, last?, ...) -> boolean, string|nil", "16", "",
      "Does it,\vtwice.\v  what: string  the thing\v  opts: { a: string, b: integer }\v"
        .. "  fn: fun(a: string): boolean, integer\v  last: moontide.Task|nil\v"
        .. "  returns boolean  done\v  returns string|nil  message" }, member(source, "act"))
    assert.same({ ".", "typed", "(a, b?) -> boolean", "21", "", "By hand." },
      member(source, "typed"))
    assert.same({ ":", "method", "()", "26", "", "A method." }, member(source, "method"))
  end)

  it("is there only when it is described", function()
    assert.is_nil(member(source, "undescribed"))
    assert.is_nil(member(source, "plain"))
  end)

  it("stands below its module", function()
    assert.same({ "module", "moontide.x", "moontide/x.lua:1", "", "A module.\v\vMore of it." },
      lines_of(source)[1])
  end)
end)

describe("an annotated class", function()
  local source = [[
--- A module.
local M = {}

---@class moontide.Thing : moontide.Base what it is
---@field name string its name; it goes on
--- in the next line
--- Said before the field.
---@field on_end fun(t: moontide.Task)|nil
---@field task moontide.Task|nil
local Thing = {}

--- Moves.
function Thing:move() end

return M
]]

  it("has fields and methods", function()
    local lines = lines_of(source)
    assert.same({ "class", "moontide.Thing", "moontide/x.lua:10", "moontide.Base", "what it is" },
      lines[2])
    assert.same({ ":", "move", "()", "13", "", "Moves." }, lines[3])
    assert.same({ ".", "name", ": string", "10", "", "its name; it goes on in the next line" },
      lines[4])
    assert.same({ ".", "on_end", "(t)", "10", "", "Said before the field." }, lines[5])
    assert.same({ ".", "task", ": moontide.Task|nil", "10", "moontide.Task", "" }, lines[6])
    assert.equal(6, #lines)
  end)
end)

describe("what a module has of another", function()
  it("is named by that", function()
    local lines = lines_of([[
--- A module.
local task = require "moontide.task"
local M = {
  spawn = task.spawn,
  startup = require "moontide.startup",
}
local FUNCTIONS = { check = { "moontide.readiness", "check" } }
local MODULES = { json = "moontide.json" }
local LAZY = { race = "combine" }
return M
]])
    local found = {}
    for i = 2, #lines do found[i - 1] = table.concat(lines[i], " ") end
    assert.same({ "= check moontide.readiness.check", "= json moontide.json",
      "= race moontide.x.combine.race", "= spawn moontide.task.spawn",
      "= startup moontide.startup" }, found)
  end)
end)

describe("a tab in an annotation", function()
  it("is refused by the build", function()
    assert.has_error(function()
      lines_of "--- A module.\nlocal M = {}\n\n--- A\ttab.\nfunction M.x() end\n\nreturn M\n"
    end)
  end)
end)

describe("the library's annotations", function()
  it("are found by the place of each function", function()
    local found, missing = 0, {}
    for _, name in ipairs { "moontide.task", "moontide.shutdown", "moontide.readiness",
      "moontide.http", "moontide.json", "moontide.reason", "moontide.retry", "moontide.worker" } do
      local module, home = require(name), docs.module(name)
      for key, said in pairs(home.members) do
        local fn = rawget(module, key)
        -- But for those that the module has from another.
        if type(said) == "table" and type(fn) == "function"
          and debug.getinfo(fn, "S").source:sub(-#home.place + 2) == home.place:sub(1, -3) then
          found = found + 1
          if docs.of_function(fn) ~= said then missing[#missing + 1] = name .. "." .. key end
        end
      end
    end
    assert.same({}, missing)
    assert.is_true(found > 40, found)
  end)

  it("say nothing of other functions", function()
    assert.is_nil(docs.of_function(print))
    assert.is_nil(docs.of_function(function() end))
    assert.is_nil(docs.of_function(load("return 1", "@moontide/task.lua")))
    assert.is_nil(docs.of_function(1))
  end)
end)
