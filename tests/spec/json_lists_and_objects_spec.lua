require "moontide"
local json = require "moontide.json"

describe("json lists and objects", function()
  it("tells an empty list from an empty object", function()
    assert.equal("{}", json.encode {})
    assert.equal("[]", json.encode(json.array {}))
    assert.equal('{"checks":[],"tasks":{}}', json.encode { checks = json.array {}, tasks = {} })
  end)

  it("keeps that through a round trip", function()
    for _, text in ipairs { "[]", "{}", '{"a":[],"b":{},"c":[[],{}]}', '["[]",[]]' } do
      assert.equal(text, json.encode(json.decode(text)))
    end
    assert.equal("[]", json.encode(json.decode("[ \n\t]")))
  end)

  it("writes keys in order", function()
    local value = {}
    for _, key in ipairs { "zeta", "alpha", "B", "a1", "_" } do value[key] = 1 end
    assert.equal('{"B":1,"_":1,"a1":1,"alpha":1,"zeta":1}', json.encode(value))
  end)

  it("has a null in both directions", function()
    assert.equal('[1,null,3]', json.encode { 1, json.null, 3 })
    assert.equal(json.null, json.decode("null"))
    assert.same({ a = json.null }, json.decode '{"a":null}')
    assert.equal("null", json.encode(nil))
    assert.equal("null", tostring(json.null))
    assert.equal("[null]", json.encode { require "cjson".null })
  end)

  it("decodes false without mistaking it for a failure", function()
    local value, message = json.decode("false")
    assert.is_false(value)
    assert.is_nil(message)
  end)

  local function message_of(value)
    local ok, message = pcall(json.encode, value)
    assert.is_false(ok)
    return message
  end

  it("names the place of what it cannot write", function()
    local sparse = { checks = { db = { 1, 2 } } }
    sparse.checks.db[100] = 3
    assert.matches("a gap %(index 100 beyond 2%) at checks%.db$", message_of(sparse))
    assert.matches("both list and named entries at a$", message_of { a = { 1, x = 2 } })
    assert.matches("both list and named entries at the top$", message_of(json.array { x = 1 }))
    assert.matches("a key that is a boolean at a%[1%]$", message_of { a = { { [true] = 1 } } })
    assert.matches("a key that is a number at the top$", message_of { [1.5] = 1 })
    assert.matches("a function has no form in JSON at on%.end$",
      message_of { on = { ["end"] = print } })
  end)

  it("refuses a list with a hole", function()
    assert.matches("a list with a hole", message_of { 1, nil, 3 })
    assert.matches("a list with a hole", message_of { nil, 2 })
  end)

  it("refuses a cycle, and takes the same table twice", function()
    local value = { a = { b = {} } }
    value.a.b.c = value.a
    assert.matches("a cycle at a%.b%.c$", message_of(value))
    local shared = { 1 }
    assert.equal("[[1],[1]]", json.encode { shared, shared })
  end)

  it("stops at 100 levels, both ways", function()
    local function nested(levels)
      local value = {}
      for _ = 2, levels do value = { value } end
      return value
    end
    assert.equal(("["):rep(99) .. "{}" .. ("]"):rep(99), json.encode(nested(100)))
    assert.matches("more than 100 levels", message_of(nested(101)))
    assert.is_table(json.decode(("["):rep(100) .. "1" .. ("]"):rep(100)))
    local value, message = json.decode(("["):rep(101) .. "1" .. ("]"):rep(101))
    assert.is_nil(value)
    assert.matches("nested", message)
    assert.is_nil(json.decode(("["):rep(100000)))
  end)

  it("leaves nothing behind after a failure", function()
    pcall(json.encode, { { { print } } })
    assert.equal("[[[1]]]", json.encode { { { 1 } } })
  end)
end)
