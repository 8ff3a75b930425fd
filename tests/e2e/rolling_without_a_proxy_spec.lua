-- Clients that know both processes and go to the other one when they are refused: the
-- drain alone must keep every request that was not refused.
-- TIDE_ROLLING=100 restarts a hundred times instead of a few.
local rolling = require "support.rolling"

describe("two processes restarted in turn, without a proxy,", function()
  it("lose no request that they did not refuse", function()
    -- Every client asks again within 30 ms, so all are told to leave in this linger; the
    -- rest is for a busy machine, which may not let them.
    local nodes = rolling.nodes { linger = "400ms" }
    local rounds = rolling.rounds(10)
    local counts = rolling.under_load(nodes, nil, rounds)
    rolling.report("no proxy", rounds, counts)
    -- The clients were told, each time: none found out by the end of its connection.
    assert.is_true(counts.post.said_close >= rounds)
    assert.is_true(counts.post.refused > 0)
    assert.equal(0, counts.post.closed_idle)
  end)
end)
