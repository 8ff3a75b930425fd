-- What the process says while a person types comes above the line, which stays as it was.
local console = require "support.console_person"

local function report(host, text)
  host.conns[#host.conns]:send { type = "event", event = "report", text = text }
end

-- The row that the cursor is in, and the one text of all rows from the prompt on.
local function from_prompt(screen)
  return screen:text():match "(orders> [^>]*)$"
end

describe("a message", function()
  it("comes above the line that is typed, and the cursor stays", function()
    local person, host = console.start()
    person:type "abcdef\27[D\27[D"
    person:see(function(screen) return screen:before_cursor() == "orders> abcd" end)
    report(host, "first\nsecond")
    person:see "\nfirst\nsecond\norders> abcdef$"
    person:see(function(screen) return screen:before_cursor() == "orders> abcd" end)
    person:type "X\r"
    assert.equal("abcdXef", host:wait_for("eval").source)
  end)

  it("comes above a line of several rows, wherever the cursor is in it", function()
    local text = ("0123456789"):rep(10)
    for _, back in ipairs { 0, 45, 100 } do
      local person, host = console.start(nil, { columns = 40 })
      person:type(text .. ("\2"):rep(back)) -- Ctrl-B
      local column = (#"orders> " + #text - back) % 40
      person:see(function(screen)
        return screen:text():find(text:sub(-20), 1, true) and screen.column % 40 == column + 1
      end)
      report(host, "a message")
      local whole = ("orders> " .. text):gsub(("."):rep(40), "%0\n")
      person:see(function(screen)
        return screen:text():sub(-#whole - 11) == "\na message\n" .. whole
      end)
      person:type "\r"
      assert.equal(text, host:wait_for("eval").source)
    end
  end)

  it("does not count characters of two columns as one", function()
    local person, host = console.start(nil, { columns = 20 })
    local wide = ("\228\184\173"):rep(5) -- ten columns: 8 + 10 are in one row, 8 + 5 as well
    person:type(wide .. "abcd")
    person:see "abcd"
    report(host, "a message")
    person:see(function(screen) return select(2, screen:text():gsub("orders>", "")) == 1 end)
    person:type "\r"
    assert.equal(wide .. "abcd", host:wait_for("eval").source)
  end)

  it("comes at once while something runs", function()
    local person, host = console.start {
      slow = function(conn, message)
        conn:send { id = message.id, type = "out", text = "half " }
        conn:send { id = message.id, type = "out", text = "line\n" }
      end,
    }
    person:type "slow\r"
    local id = host:wait_for("eval").id
    person:see "\nhalf line\n"
    host.conns[#host.conns]:done(id)
    person:at_prompt()
  end)
end)

describe("half a line", function()
  it("is ended before the prompt, which else would not stand where editing thinks", function()
    local person, host = console.start {
      half = function(conn, message)
        conn:send { id = message.id, type = "out", text = "half" }
        conn:done(message.id)
      end,
    }
    person:type "half\r"
    person:see "orders> half\nhalf\norders>$"
    person:type "1\r"
    person:see "\norders> 1\norders>$" -- and no empty line the next time
    assert.equal("1", host:wait_for("eval", 2).source)
  end)
end)

describe("another size of the terminal", function()
  it("draws the line again, in as many columns", function()
    local person, host = console.start(nil, { columns = 80 })
    local text = ("0123456789"):rep(5)
    person:type(text)
    person:see(text)
    person:resize(40, 10)
    person:see(function(screen)
      return (from_prompt(screen) or ""):gsub("\n", "") == "orders> " .. text
    end)
    report(host, "a message")
    person:see "a message"
    person:type "\r"
    assert.equal(text, host:wait_for("eval").source)
  end)
end)
