require("support.paths")
local suggest = require("moontide.suggest")

local PHASES = { "service-unbind", "service-stop", "cluster-leave", "cluster-exiting" }

describe("a suggestion", function()
  it("forgives one slip in a short word and more in a long one", function()
    assert.equal("service-stop", suggest.nearest("servce-stop", PHASES))
    assert.equal("service-stop", suggest.nearest("service-sotp", PHASES))
    assert.equal("cluster-exiting", suggest.nearest("clustr-exitng", PHASES))
    assert.equal("db", suggest.nearest("dv", { "db" }))
  end)

  it("sees through another spelling of the same word", function()
    assert.equal("service-unbind", suggest.nearest("ServiceUnbind", PHASES))
    assert.equal("on_fail", suggest.nearest("onFail", { "on_fail", "mode" }))
  end)

  it("keeps quiet about what is not near", function()
    assert.is_nil(suggest.nearest("database", PHASES))
    assert.is_nil(suggest.nearest("", PHASES))
    assert.is_nil(suggest.nearest("x", {}))
  end)

  it("takes the first of two equally near names", function()
    assert.equal("cat", suggest.nearest("cut", { "cat", "cot" }))
    assert.equal("cot", suggest.nearest("cut", { "cot", "cat" }))
  end)

  it("lists what is known when nothing is near", function()
    assert.equal("unknown phase \"servce-stop\"; did you mean \"service-stop\"?",
      suggest.unknown("phase", "servce-stop", PHASES))
    assert.equal("unknown option \"x\"; known: after, before",
      suggest.unknown("option", "x", { "after", "before" }))
    assert.equal("unknown phase \"x\"; there are none", suggest.unknown("phase", "x", {}))
    local many = {}
    for i = 1, 30 do many[i] = "name-number-" .. i end
    assert.matches("and 6 more$", suggest.unknown("phase", "x", many))
  end)
end)
