--- Draws the phases of a run from its JSON log: when each began, how long it took.
---
---     lua5.4 scripts/timeline.lua app.log
local cjson = require "cjson.safe"

local WIDTH = 36

-- "2026-11-30T14:27:05.123Z" in seconds; days of a month apart are all that is
-- asked of it.
local function seconds(time)
  local day, hour, minute, second = time:match("%-(%d+)T(%d+):(%d+):([%d.]+)Z?$")
  return ((day * 24 + hour) * 60 + minute) * 60 + second
end

local function read(path)
  local records = {}
  for line in assert(io.open(path)):lines() do
    local record = cjson.decode(line)
    if type(record) == "table" and record.time then
      record.at = seconds(record.time)
      records[#records + 1] = record
    end
  end
  return records
end

-- What the timeline shows of a record, and when it began; nil when nothing.
local function entry(record)
  if record.component ~= "lifecycle" then return nil end
  if record.phase and record.duration_ms and not record.task then
    return "phase " .. record.phase, record.at - record.duration_ms / 1000
  end
  if record.from and record.to then
    return ("-- %s -> %s"):format(record.from, record.to), record.at
  end
  if record.signal then return "-- " .. record.signal, record.at end
  return nil
end

local function bar(from, to, first, last)
  local scale = WIDTH / math.max(last - first, 1e-3)
  local start = math.floor((from - first) * scale)
  local length = math.max(1, math.floor((to - from) * scale + 0.5))
  start = math.min(start, WIDTH - 1)
  length = math.min(length, WIDTH - start)
  return (" "):rep(start) .. ("#"):rep(length) .. (" "):rep(WIDTH - start - length)
end

local function main(path)
  local records = read(path)
  assert(records[1], "no JSON records in " .. path)
  local rows, first, last = {}, math.huge, -math.huge
  for _, record in ipairs(records) do
    local text, from = entry(record)
    if text then
      rows[#rows + 1] = { text = text, from = from, to = record.at, order = #rows, record = record }
      first, last = math.min(first, from), math.max(last, record.at)
    end
  end
  table.sort(rows, function(a, b)
    if a.from ~= b.from then return a.from < b.from end
    return a.order < b.order
  end)
  for _, row in ipairs(rows) do
    local ms = row.record.duration_ms
    local tried = row.record.attempts or 1
    local note = tried > 1 and (" (%d attempts)"):format(tried) or ""
    print(("%7.3f s |%s| %9s  %s%s"):format(row.from - first, bar(row.from, row.to, first, last),
      ms and ("%.0f ms"):format(ms) or "", row.text, note))
  end
end

main(assert(arg[1], "usage: lua5.4 scripts/timeline.lua LOG"))
