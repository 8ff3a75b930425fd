-- What is a key, and what tells two requests with the same key apart.
require "moontide"
local digest = require "moontide.core.digest"
local idempotency = require "moontide.http.idempotency"

describe("an Idempotency-Key", function()
  local GOOD = {
    { '"8e03978e-40d5-43e8-bc93-6894a57f9324"', "8e03978e-40d5-43e8-bc93-6894a57f9324" },
    { "8e03978e-40d5-43e8-bc93-6894a57f9324", "8e03978e-40d5-43e8-bc93-6894a57f9324" },
    { ' "a" ', "a" }, { '"a b, c"', "a b, c" }, { [["a\"b\\c"]], [[a"b\c]] },
    { '"' .. ("x"):rep(255) .. '"', ("x"):rep(255) },
    { "a:b/c+d=e@f!g~h_i.j", "a:b/c+d=e@f!g~h_i.j" },
  }
  local BAD = {
    { "", "empty" }, { '""', "empty" }, { "  ", "empty" }, { '"a', "not one string" },
    { '"a"b"', "not one string" }, { [["a\x"]], "not one string" }, { [["a\"]], "not one string" },
    { '"a", "b"', "not one string" }, { "a, b", "not one string" }, { '"\127"', "not one string" },
    { '"\195\164"', "not one string" }, { '"a\tb"', "not one string" }, { "a b", "not one string" },
    { '"a";p=1', "not one string" }, { ("x"):rep(256), "256 characters, more than 255" },
    { '"' .. ("x"):rep(4000) .. '"', "4000 characters" },
  }

  it("is a quoted string, or a word without quotes", function()
    for _, case in ipairs(GOOD) do
      local key, wrong = idempotency.parse_key(case[1])
      assert.is_nil(wrong)
      assert.equal(case[2], key)
    end
  end)

  it("of any other form is refused, and why is said", function()
    for _, case in ipairs(BAD) do
      local key, wrong = idempotency.parse_key(case[1])
      assert.is_nil(key, case[1])
      assert.matches(case[2], wrong, 1, true)
    end
  end)

  it("is asked for only where it is required", function()
    local req = { headers = {} }
    assert.same({ nil, "this operation needs one" }, { idempotency.key_of(req, true) })
    assert.same({}, { idempotency.key_of(req, false) })
    req.headers["idempotency-key"] = ""
    assert.is_not_nil(select(2, idempotency.key_of(req, false)))
  end)
end)

describe("a fingerprint", function()
  local function of(method, target, body)
    return idempotency.fingerprint({ method = method, target = target }, body)
  end

  it("differs with method, target and body, and with where one ends", function()
    local seen = {}
    for _, request in ipairs {
      { "POST", "/a", "" }, { "PUT", "/a", "" }, { "POST", "/a?b", "" }, { "POST", "/a", "x" },
      { "POST", "/ax", "" }, { "POST", "/", "ax" }, { "POST", "/a", "\0" },
    } do
      local print = of(table.unpack(request))
      assert.equal(64, #print)
      assert.is_nil(seen[print])
      seen[print] = true
      assert.equal(print, of(table.unpack(request)))
    end
  end)

  it("is SHA-256 where it is of one part", function()
    assert.equal("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
      digest.sha256("abc"))
  end)
end)

describe("the id of a job", function()
  it("is 128 random bits", function()
    local seen = {}
    for _ = 1, 1000 do
      local id = digest.random_id()
      assert.matches("^%x+$", id)
      assert.equal(32, #id)
      assert.is_nil(seen[id])
      seen[id] = true
    end
  end)
end)
