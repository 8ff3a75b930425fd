-- The Lua face of the log, over a core that only remembers.
require "moontide" -- JSON is of its core

describe("the log from Lua", function()
  local log, written, level, released

  before_each(function()
    written, level, released = {}, 0, false
    package.loaded["moontide.core"] = {
      log = {
        enabled = function(asked) return asked >= level end,
        release = function() released = true end,
        write = function(...) written[#written + 1] = table.pack(...) end,
      },
    }
    package.loaded["moontide.observe.log"] = nil
    log = require "moontide.observe.log"
  end)

  after_each(function()
    package.loaded["moontide.core"] = nil
    package.loaded["moontide.observe.log"] = nil
  end)

  it("ends the holding back as soon as a script has a logger", function()
    assert.is_true(released)
  end)

  it("writes level, component and message", function()
    log.debug("a")
    log.info("b")
    log.warn("c")
    log.error("d")
    local got = {}
    for i, record in ipairs(written) do got[i] = table.concat(record, " ", 1, record.n) end
    assert.same({ "0 app a", "1 app b", "2 app c", "3 app d" }, got)
  end)

  it("sorts the fields by name and keeps their types", function()
    log.info("m", { b = 2, a = "x", d = false, c = 0.5, e = true })
    assert.same({ 1, "app", "m", "a", "x", "b", 2, "c", 0.5, "d", false, "e", true, n = 13 },
      written[1])
  end)

  it("has a logger for each component", function()
    local outbox = log.for_component("outbox")
    outbox.warn("slow")
    outbox.for_component("other").info("m")
    assert.equal("outbox", written[1][2])
    assert.equal("other", written[2][2])
    assert.has_error(function() log.for_component("") end, "log.for_component: a name is wanted")
  end)

  it("makes text of every other value", function()
    local reason = setmetatable({}, { __tostring = function() return "because" end })
    local broken = setmetatable({}, { __tostring = function() error("no") end })
    log.info("m", { a = reason, b = { x = 1 }, c = { print }, d = broken, [1] = "one" })
    local record = written[1]
    assert.same({ "1", "one", "a", "because", "b", '{"x":1}', "c" },
      { table.unpack(record, 4, 10) })
    assert.matches("^table: 0x", record[11])
    assert.equal("a table whose __tostring fails", record[13])
  end)

  it("does no work for a level that is off", function()
    level = 2
    log.info("m", setmetatable({}, { __index = error }))
    log.debug(nil)
    assert.same({}, written)
    log.warn("m")
    assert.equal(1, #written)
  end)

  it("takes any message", function()
    log.info(nil)
    log.info(17)
    log.info("a\0b")
    assert.same({ "nil", "17", "a\u{FFFD}b" }, { written[1][3], written[2][3], written[3][3] })
  end)

  it("says what is wrong with a call", function()
    assert.has_error(function() log:info("m") end,
      "log.info is called with a dot: log.info(message, fields)")
    assert.has_error(function() log.warn("m", "x") end,
      "log.warn: the fields are a table, not a string")
  end)
end)
