-- Every script of the runaway corpus ends as it says.
require "moontide"
local core = require "moontide.core"
local corpus = require "support.corpus"

core.host.watch()

-- For the three steps (20 ms) and a machine that does other things at the same time: what is not
-- interrupted runs for ever, or for many seconds.
local LATEST = 1.0
local TOTAL = 0.4
-- A process that has filled a gigabyte takes its time to give it back.
local GONE = 3.0

describe("the runaway", function()
  for _, case in ipairs(corpus.load()) do
    if case.expect == "raised at its deadline" then
      it(case.name .. " is raised at its deadline", function()
        local deadline = core.clock.now() + 0.05
        local co = coroutine.create(assert(load(case.code, "=" .. case.name)))
        local ok, err = core.coroutine.resume(co, deadline)
        local late = core.clock.now() - deadline
        assert.is_false(ok)
        assert.equal(core.coroutine.interrupted, err)
        assert.is_true(late >= 0 and late < LATEST, "late by " .. late)
        assert.is_nil(debug.gethook())
        assert.is_nil(debug.gethook(co))
        assert.truthy(core.coroutine.traceback())
      end)
    else
      it(case.name .. " ends with the total at the latest", function()
        local result = corpus.run(case, TOTAL, 0.05)
        assert.is_true(result.seconds < TOTAL + GONE, result.seconds .. " s")
        if result.code == 0 then
          assert.truthy(result.output:find("came back", 1, true), result.output)
        else
          assert.equal(1, result.code)
          assert.truthy(result.output:find("shutdown total has passed", 1, true), result.output)
          assert.truthy(result.output:find("corpus/" .. case.name, 1, true), result.output)
        end
      end)
    end
  end
end)
