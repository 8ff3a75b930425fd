--- A metric family: its name, its series, and what changes their values.
local text = require "moontide.text"

local M = {}

--- Lines a family may have when rendered.
M.MAX_SERIES = 1000

local BUCKETS = { 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10 }

---@class moontide.Family
---@field kind "counter"|"gauge"|"histogram"
---@field name string
---@field help string
---@field labels string[] names, sorted
---@field series table<string, table> by their label values
---@field count integer how many series
---@field limit integer
---@field dropped integer updates that found no room
---@field buckets number[]?
local Family = {}
Family.__index = Family

--- Kind, labels and buckets: what must agree when a name is registered again.
---@return string
function Family:signature()
  local parts = { self.kind, " (", table.concat(self.labels, ", "), ")" }
  for _, bound in ipairs(self.buckets or {}) do parts[#parts + 1] = " " .. bound end
  return table.concat(parts)
end

-- ---- series -----------------------------------------------------------------------------------

-- The labels are wrong: says which, with the caller's line.
local function refuse_labels(self, labels, level)
  local known = {}
  for _, name in ipairs(self.labels) do
    known[name] = true
    if labels[name] == nil then
      error(("metrics: %s needs the label %q"):format(self.name, name), level + 1)
    end
  end
  for name in next, labels do
    if not known[name] then
      local message = ("metrics: %s has no label %q"):format(self.name, tostring(name))
      error(message, level + 1)
    end
  end
end

local NONE = {}

-- The label values in order of their names, and what they are in the series table.
local function key_of(self, labels, level)
  local names = self.labels
  local count, values = 0, {}
  for _ in next, labels do count = count + 1 end
  for i = 1, #names do
    local value = labels[names[i]]
    if value == nil then refuse_labels(self, labels, level + 1) end
    values[i] = tostring(value)
  end
  if count ~= #names then refuse_labels(self, labels, level + 1) end
  -- No UTF-8 text has this byte.
  return #values == 1 and values[1] or table.concat(values, "\xFF"), values
end

local function new_series(self, values)
  local series = { labels = {}, value = 0 }
  for i, value in ipairs(values) do series.labels[i] = text.repair(value) end
  if self.buckets then
    series.sum, series.counts = 0, {}
    for i = 1, #self.buckets + 1 do series.counts[i] = 0 end
  end
  return series
end

-- The series of these labels; nil when there is no room for another.
local function find(self, labels, level)
  if labels == nil then labels = NONE end
  if type(labels) ~= "table" then
    error(("metrics: the labels of %s are a table, not a %s"):format(self.name, type(labels)),
      level + 1)
  end
  local key, values = key_of(self, labels, level + 1)
  local series = self.series[key]
  if series then return series end
  if self.count >= self.limit then
    self.dropped = self.dropped + 1
    return nil
  end
  series = new_series(self, values)
  self.series[key] = series
  self.count = self.count + 1
  return series
end

--- Removes the series of these labels.
---@param labels? table<string, any>
function Family:remove(labels)
  local key = key_of(self, labels or NONE, 2)
  if self.series[key] then
    self.series[key] = nil
    self.count = self.count - 1
  end
end

--- Removes all series: for a collector that sets them anew.
function Family:clear()
  self.series, self.count = {}, 0
end

-- ---- values -----------------------------------------------------------------------------------

local function check_number(self, value, method, level)
  if type(value) ~= "number" then
    error(("metrics: %s:%s wants a number, not a %s"):format(self.name, method, type(value)),
      level + 1)
  end
end

---@class moontide.Counter : moontide.Family
local Counter = setmetatable({}, { __index = Family })
Counter.__index = Counter

--- Adds `n` (1 when left out), which is not negative.
---@param n? number
---@param labels? table<string, any>
function Counter:inc(n, labels)
  n = n or 1
  check_number(self, n, "inc", 2)
  if not (n >= 0 and n < math.huge) then
    error(("metrics: %s is a counter and can only grow, not by %s"):format(self.name, n), 2)
  end
  local series = find(self, labels, 2)
  if series then series.value = series.value + n end
end

--- Takes over a total that is counted elsewhere.
---@param total number
---@param labels? table<string, any>
function Counter:mirror(total, labels)
  check_number(self, total, "mirror", 2)
  local series = find(self, labels, 2)
  if series then series.value = total end
end

---@class moontide.Gauge : moontide.Family
local Gauge = setmetatable({}, { __index = Family })
Gauge.__index = Gauge

---@param value number
---@param labels? table<string, any>
function Gauge:set(value, labels)
  check_number(self, value, "set", 2)
  local series = find(self, labels, 2)
  if series then series.value = value end
end

---@param n? number 1 when left out
---@param labels? table<string, any>
function Gauge:inc(n, labels)
  n = n or 1
  check_number(self, n, "inc", 2)
  local series = find(self, labels, 2)
  if series then series.value = series.value + n end
end

---@param n? number 1 when left out
---@param labels? table<string, any>
function Gauge:dec(n, labels)
  n = n or 1
  check_number(self, n, "dec", 2)
  local series = find(self, labels, 2)
  if series then series.value = series.value - n end
end

---@class moontide.Histogram : moontide.Family
local Histogram = setmetatable({}, { __index = Family })
Histogram.__index = Histogram

---@param value number not NaN
---@param labels? table<string, any>
function Histogram:observe(value, labels)
  check_number(self, value, "observe", 2)
  if value ~= value then error(("metrics: %s:observe wants no NaN"):format(self.name), 2) end
  local series = find(self, labels, 2)
  if not series then return end
  local buckets, i = self.buckets, 1
  while i <= #buckets and value > buckets[i] do i = i + 1 end
  series.counts[i] = series.counts[i] + 1
  series.sum = series.sum + value
end

--- Takes over what was observed elsewhere.
---@param counts integer[] for each bucket, the one without a bound last; not cumulated
---@param sum number
---@param labels? table<string, any>
function Histogram:mirror(counts, sum, labels)
  if #counts ~= #self.buckets + 1 then
    error(("metrics: %s has %d buckets and one without a bound, not %d"):format(self.name,
      #self.buckets, #counts), 2)
  end
  local series = find(self, labels, 2)
  if series then series.counts, series.sum = table.move(counts, 1, #counts, 1, {}), sum end
end

-- ---- making one -------------------------------------------------------------------------------

local CLASSES = { counter = Counter, gauge = Gauge, histogram = Histogram }

local function check_name(kind, name, level)
  if type(name) ~= "string" or not name:find("^[%a_:][%w_:]*$") then
    error(("metrics: %q is no metric name"):format(tostring(name)), level + 1)
  end
  if kind == "counter" and not name:find("_total$") then
    error(("metrics: the name of a counter ends in _total: %s_total"):format(name), level + 1)
  end
end

local function check_labels(name, labels, level)
  local sorted, seen = {}, {}
  for i, label in ipairs(labels or {}) do
    if type(label) ~= "string" or not label:find("^[%a_][%w_]*$") or label:find("^__")
      or label == "le" then
      local message = ("metrics: %s: %q is no label name"):format(name, tostring(label))
      error(message, level + 1)
    end
    if seen[label] then
      error(("metrics: %s: the label %q comes twice"):format(name, label), level + 1)
    end
    sorted[i], seen[label] = label, true
  end
  table.sort(sorted)
  return sorted
end

local function check_buckets(name, buckets, level)
  local copy, last = {}, -math.huge
  for i, bound in ipairs(buckets or BUCKETS) do
    if type(bound) ~= "number" or bound ~= bound or bound <= last then
      error(("metrics: %s: the buckets are numbers, each above the one before"):format(name),
        level + 1)
    end
    if bound < math.huge then copy[i] = bound end -- +Inf is there anyhow
    last = bound
  end
  return copy
end

--- Checks everything; errors name the line `level` levels up.
---@return moontide.Family
function M.new(kind, name, help, labels, buckets, level)
  level = level or 2
  check_name(kind, name, level)
  if type(help) ~= "string" or help == "" then
    error(("metrics: %s needs a help text"):format(name), level)
  end
  local self = {
    kind = kind, name = name, help = text.repair(help), labels = check_labels(name, labels, level),
    series = {}, count = 0, limit = M.MAX_SERIES, dropped = 0,
  }
  if kind == "histogram" then
    self.buckets = check_buckets(name, buckets, level)
    self.limit = M.MAX_SERIES // (#self.buckets + 3) -- each bucket, +Inf, sum and count
  end
  setmetatable(self, CLASSES[kind])
  -- The one series of a family without labels is there from the start, at 0.
  if #self.labels == 0 then find(self, NONE, 1) end
  return self
end

return M
