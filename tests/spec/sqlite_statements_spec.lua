-- The binding to SQLite: statements in order, off the loop; values exact; errors with their codes.
local async = require "support.async"
local folder = require "support.folder"
local sqlite = require "moontide.core.sqlite"
local task = require "moontide.task"

local it = async.it
local BUSY, CONSTRAINT, RANGE, MISUSE = 5, 19, 25, 21

describe("statements", function()
  local path, db

  local function run(...)
    local wait = task.waiter "sqlite"
    db:run(function(...) wait:wake(...) end, ...)
    return wait:wait()
  end

  before_each(function()
    path = folder.make() .. "/a.db"
    db = assert(sqlite.open(path, 100))
    db:run_now "PRAGMA journal_mode = WAL"
    db:run_now "CREATE TABLE t (id INTEGER PRIMARY KEY, v)"
  end)
  after_each(folder.remove)

  it("give back what they were given", function()
    for i, value in ipairs { 0, -1, math.maxinteger, math.mininteger, 0.1, -1e300, "", "a\0b\255",
      ("x"):rep(100000) } do
      local _, _, changes = run("INSERT INTO t VALUES (?, ?)", i, value)
      assert.equal(1, changes)
      local code, rows = run("SELECT v, id FROM t WHERE id = ?", i)
      assert.is_nil(code)
      assert.equal(value, rows[1][1])
      assert.equal(math.type(value), math.type(rows[1][1]))
      assert.equal(i, rows[1][2])
    end
    run("INSERT INTO t VALUES (99, ?)", nil)
    assert.same({ { nil, 99 } }, (select(2, run "SELECT v, id FROM t WHERE v IS NULL")))
  end)

  it("say what is wrong, by code, and leave the database usable", function()
    assert.equal(1, (run "SELEKT"))
    assert.equal(RANGE, (run("SELECT ?", 1, 2)))
    assert.equal(RANGE, (run "SELECT ?"))
    run "INSERT INTO t VALUES (1, 1)"
    local code, message = run "INSERT INTO t VALUES (1, 2)"
    assert.equal(CONSTRAINT, code)
    assert.matches("UNIQUE", message)
    assert.same({ { 1 } }, (select(2, run "SELECT v FROM t")))
    assert.has_error(function() db:run(function() end, "SELECT ?", {}) end)
    assert.has_error(function() db:run("x", "SELECT 1") end)
  end)

  it("asked for at once run in order, each for itself", function()
    local outcomes, left = {}, 200
    local wait = task.waiter "all"
    for i = 1, 200 do
      local id = i % 50 == 0 and 1 or i -- four of them are there already
      db:run(function(code)
        outcomes[#outcomes + 1] = { i, code }
        left = left - 1
        if left == 0 then wait:wake(true) end
      end, "INSERT INTO t VALUES (?, (SELECT count(*) FROM t))", id)
    end
    wait:wait()
    for i, outcome in ipairs(outcomes) do
      assert.equal(i, outcome[1])
      assert.equal(i % 50 == 0 and CONSTRAINT or nil, outcome[2])
    end
    local _, rows = run "SELECT v FROM t ORDER BY id"
    assert.equal(196, #rows)
    for i, row in ipairs(rows) do assert.equal(i - 1, row[1]) end
    local other = sqlite.open(path, 100)
    assert.equal(196, select(2, other:run_now "SELECT count(*) FROM t")[1][1])
  end)

  it("fail together when nothing can be written, and nothing is", function()
    local other = sqlite.open(path, 0)
    other:run_now "BEGIN IMMEDIATE"
    local codes, wait = {}, task.waiter "all"
    for i = 1, 10 do
      db:run(function(code)
        codes[#codes + 1] = code or 0
        if #codes == 10 then wait:wake(true) end
      end, i == 5 and "SELECT count(*) FROM t" or "INSERT INTO t (v) VALUES (1)")
    end
    wait:wait()
    for i, code in ipairs(codes) do
      assert.equal(i == 5 and 0 or BUSY, code, i) -- who reads needs no lock
    end
    other:run_now "ROLLBACK"
    assert.equal(0, select(2, run "SELECT count(*) FROM t")[1][1])
    assert.is_nil((run "INSERT INTO t (v) VALUES (1)"))
  end)

  it("are full together when the file may not grow, and what was there stays", function()
    run "INSERT INTO t VALUES (1, 'first')"
    run "PRAGMA max_page_count = 8"
    local codes, wait = {}, task.waiter "all"
    for i = 1, 20 do
      db:run(function(code)
        codes[i] = code or 0
        if #codes == 20 then wait:wake(true) end
      end, "INSERT INTO t (v) VALUES (?)", ("x"):rep(3000))
    end
    wait:wait()
    local stored = select(2, run "SELECT count(*) FROM t")[1][1] - 1
    local said = 0
    for _, code in ipairs(codes) do said = said + (code == 0 and 1 or 0) end
    assert.equal(stored, said) -- what was said to be there is, and nothing else
    assert.is_true(stored < 20)
    assert.same({ { "first" } }, (select(2, run "SELECT v FROM t WHERE id = 1")))
  end)

  it("leave the loop free while they wait for a lock", function()
    local other = sqlite.open(path, 0)
    other:run_now "BEGIN IMMEDIATE"
    local ticks, code = 0, nil
    local t = task.spawn(function() code = run "INSERT INTO t (v) VALUES (1)" end)
    while not t.outcome do
      task.sleep(0.005)
      ticks = ticks + 1
    end
    assert.equal(BUSY, code)
    assert.is_true(ticks > 3)
    assert.is_not_nil(other)
  end)

  it("end before the database closes", function()
    local order, wait = {}, task.waiter "closed"
    for i = 1, 3 do
      db:run(function() order[#order + 1] = i end, "INSERT INTO t (v) VALUES (?)", i)
    end
    db:close(function()
      order[#order + 1] = "closed"
      wait:wake(true)
    end)
    wait:wait()
    assert.same({ 1, 2, 3, "closed" }, order)
    assert.equal(MISUSE, (run "SELECT 1"))
    local again = task.waiter "again"
    db:close(function() again:wake(true) end)
    again:wait()
  end)

  it("are told to who has let go of the database, also while it is collected", function()
    local told, wait = 0, task.waiter "told"
    local lost = sqlite.open(path, 100)
    for _ = 1, 5 do
      lost:run(function()
        told = told + 1
        collectgarbage()
        if told == 5 then wait:wake(true) end
      end, "SELECT 1")
    end
    lost = nil
    collectgarbage()
    wait:wait()
    assert.equal(5, told)
    assert.is_nil(lost)
  end)

  it("that nobody waits for any more do no harm", function()
    for _ = 1, 20 do
      local lost = sqlite.open(path, 100)
      for _ = 1, 5 do lost:run(function() end, "INSERT INTO t (v) VALUES (1)") end
      lost = nil
      collectgarbage()
      task.sleep(0.001)
      assert.is_nil(lost)
    end
    task.sleep(0.05)
  end)
end)

describe("a claim", function()
  after_each(folder.remove)

  it("is alive until it is given up, for whoever asks", function()
    local path = folder.make() .. "/owners"
    local one, two = sqlite.claim(path), sqlite.claim(path)
    assert.are_not.equal(one:token(), two:token())
    assert.is_true(one:alive(one:token()))
    assert.is_true(one:alive(two:token()))
    assert.is_false(one:alive(two:token() + 1))
    assert.is_false(one:alive(0))
    two:release()
    assert.is_false(one:alive(two:token()))
    local none, message = sqlite.claim "/nowhere/owners"
    assert.is_nil(none)
    assert.matches("/nowhere/owners: No such file", message)
  end)
end)
