require "moontide"

describe("json beside a script's own cjson", function()
  it("keeps its settings whatever the script sets", function()
    local cjson = require "cjson"
    local json = require "moontide.json"
    local before = json.encode { list = { 1.5, 2 }, text = "x" }
    cjson.encode_number_precision(3)
    cjson.encode_sparse_array(true, 1, 1)
    cjson.decode_invalid_numbers(true)
    cjson.decode_max_depth(2)
    finally(function()
      cjson.encode_number_precision(14)
      cjson.encode_sparse_array(false, 2, 10)
      cjson.decode_max_depth(1000)
    end)
    assert.equal(before, json.encode { list = { 1.5, 2 }, text = "x" })
    assert.equal("3.14159265", json.encode(3.14159265))
    assert.same({ { { { 1 } } } }, json.decode("[[[[1]]]]"))
    assert.is_nil(json.decode("NaN"))
    assert.has_error(function() json.encode { 1, [100] = 2 } end)
  end)

  it("changes none of the script's settings", function()
    local cjson = require "cjson"
    local precision, depth = cjson.encode_number_precision(), cjson.decode_max_depth()
    require "moontide.json".decode("[1]")
    assert.equal(precision, cjson.encode_number_precision())
    assert.equal(depth, cjson.decode_max_depth())
  end)

  it("does not load cjson before there is something to decode", function()
    local out = assert(io.popen([[lua5.4 -e '
      local json = require "moontide".json
      json.encode { a = 1 }
      io.write(tostring(package.loaded.cjson == nil), " ")
      json.decode("1")
      io.write(tostring(package.loaded.cjson ~= nil))']]))
    finally(function() out:close() end)
    assert.equal("true true", out:read("a"))
  end)
end)
