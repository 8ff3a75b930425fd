-- Completion and help with sources and cursors by chance: they end, run nothing, and what they
-- offer fits where it is offered. From a fixed seed.
require "moontide"
local core = require "moontide.core"
local complete = require "moontide.console.complete"
local help = require "moontide.console.help"
local tokens = require "moontide.console.tokens"
local tide = require "moontide"

local SEED = tonumber(os.getenv("MOONTIDE_TEST_SEED")) or 20261130
local SOURCES = tonumber(os.getenv("MOONTIDE_SOURCES")) or 5000
-- Milliseconds each; much more is a hang.
local LATEST = 2.0

local function user_code() error("code of a script was run") end

local hostile = { __index = user_code, __pairs = user_code, __len = user_code,
  __call = user_code, __tostring = user_code, __eq = user_code, __lt = user_code,
  __concat = user_code, __newindex = user_code, __name = "moontide.Task" }
local env = setmetatable({
  tide = tide, t = { ["a b"] = { x = 1 }, ["\27[0m"] = 1, ["\xff"] = 2, ["a\"'b"] = 3,
    y = setmetatable({ z = 1 }, hostile), [1] = { "q" } },
  f = user_code, s = "text", hostile = setmetatable({}, hostile),
  lied = setmetatable({}, { __index = "string", __name = {} }),
}, { __index = user_code })

local PIECES = {
  "t", "tide", "f", "s", "hostile", "lied", "y", "z", "shutdown", "root", "http", "x", "a b", "1",
  "17", "0x1p4", "1e5", ".", ".", ".", ":", ":", "[", "]", "[\"", "\"]", "\"", "'", "\\", "\\\"",
  "[[", "]]", "[==[", "]==]", "--", "--[[", "\n", " ", "(", ")", "{", "}", ",", "=", "..", "...",
  "::", "local ", "function ", "for ", "goto ", "return ", "end ", "retry(\"", "skip('", "where ",
  "config \"", "watch(\"", "trace('", "help(\"", "drain { ", "tide.http.listen { ", "\0", "\xff",
  "é", "<const>", "\\z", "#", "//", "~=",
}

local function by_pieces()
  local parts = {}
  for i = 1, math.random(0, 14) do parts[i] = PIECES[math.random(#PIECES)] end
  return table.concat(parts)
end

local function by_bytes()
  local bytes = {}
  for i = 1, math.random(0, 60) do bytes[i] = string.char(math.random(0, 255)) end
  return table.concat(bytes)
end

-- A real source, cut and with a piece put in somewhere.
local file = assert(io.open(debug.getinfo(1, "S").source:sub(2), "rb"))
local real = file:read "a"
file:close()

local function mutated()
  local from = math.random(#real)
  local text = real:sub(from, from + math.random(0, 3000))
  local at = math.random(0, #text)
  return text:sub(1, at) .. PIECES[math.random(#PIECES)] .. text:sub(at + 1)
end

local MAKERS = { by_pieces, by_pieces, by_bytes, mutated }

local function each_source(check)
  for seed = SEED, SEED + SOURCES - 1 do
    math.randomseed(seed)
    local source = MAKERS[math.random(#MAKERS)]()
    local began = core.clock.now()
    local ok, err = pcall(check, source)
    assert(ok, ("seed %d: %s with %q"):format(seed, tostring(err), source))
    assert(core.clock.now() - began < LATEST, ("seed %d takes too long"):format(seed))
  end
end

describe("completion", function()
  it("of any source at any place offers what fits there", function()
    local offered = 0
    each_source(function(source)
      local cursor = math.random(1, #source + 1)
      local from, items = complete.at(env, source, cursor)
      assert(math.type(from) == "integer" and from >= 1 and from <= cursor, "from " .. from)
      assert(#items <= 500)
      local typed = source:sub(from, cursor - 1)
      for i, item in ipairs(items) do
        assert(type(item) == "string" and item:sub(1, #typed) == typed, tostring(item))
        assert(utf8.len(item) and not item:find "%c", "cannot be shown")
        assert(i == 1 or items[i - 1] < item, "not sorted, or twice")
      end
      offered = offered + #items
    end)
    assert.is_true(offered > 1000) -- else the sources were too strange to test anything
  end)

  it("takes what it reads for the same tokens as Lua does", function()
    each_source(function(source)
      local list = tokens.read(source)
      local last = 0
      for _, token in ipairs(list) do
        assert(token.from > last and token.to >= token.from, "tokens overlap")
        assert(source:sub(token.from, token.to) == token.text)
        last = token.to
      end
      if not load(source) then return end
      -- What Lua takes, it takes again from the tokens alone, and ends outside of strings.
      local _, inside = tokens.read(source)
      local texts = {}
      for i, token in ipairs(list) do texts[i] = token.text end
      assert(inside.kind ~= "string", "a whole source ends inside of a string")
      assert(load(table.concat(texts, " ")), "other tokens than Lua's")
    end)
  end)

  it("never asks what a table answers by code", function()
    for _, source in ipairs { "hostile.", "hostile:", "hostile[\"", "t.y.", "t.y.z.", "t.y.other.",
      "lied.", "hostile.x.y", "help(\"hostile." } do
      assert.is_number((complete.at(env, source, #source + 1)))
    end
  end)
end)

describe("help", function()
  it("of any name answers, or says that there is none", function()
    each_source(function(source)
      local text, message = help.of(env, source)
      assert(type(text or message) == "string" and (text == nil) ~= (message == nil))
      assert(#(text or message) < 20000)
      assert(utf8.len(text or message) and not (text or message):find "[%z\1-\9\11-\31\127]")
    end)
  end)
end)
