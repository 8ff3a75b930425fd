-- Nobody reads standard error for two seconds: the loop goes on.
local unread_pipe = require "support.unread_pipe"

describe("a log that nobody reads", function()
  it("does not hold up the loop, and says afterwards what it dropped", function()
    local worst, count, process = unread_pipe.run(2)
    -- A blocked write would be late by the whole two seconds. The bound only
    -- leaves room for a busy machine; the bench asks for 20 ms.
    assert.is_true(worst < 0.25, ("late by %.0f ms"):format(worst * 1000))
    assert.is_true(count > 300)
    assert.equal(0, process.code)
    local lost = process:find_logs(function(record) return record.dropped end)
    assert.is_true(#lost > 0, "no record says how many were dropped")
  end)
end)
