-- No case of the data file may go unnoticed: each has a status that is one, says why where it is
-- not run as it stands, and has a test that carries its id.
local data = require "support.pipeline_data"

local HERE = debug.getinfo(1, "S").source:match "^@(.*)spec/[^/]*$"
local STATUS = { run = true, adapted = true, skipped = true }

-- The spec that runs every case of a section; a case that is run elsewhere says where ("spec").
local SECTIONS = {
  topo = { prefix = "T", spec = "spec/pipeline_topo_cases_spec.lua" },
  run = { prefix = "R", spec = "spec/pipeline_run_cases_spec.lua" },
  config = { prefix = "C", spec = "spec/pipeline_config_cases_spec.lua" },
  watch = { prefix = "W", spec = "spec/components_that_end_by_themselves_spec.lua" },
  signals = { prefix = "S" },
}

local function text_of(path)
  local file = assert(io.open(HERE .. path, "rb"), path .. " is not there")
  local text = file:read "a"
  file:close()
  return text
end

local function each(fn)
  for name, section in pairs(SECTIONS) do
    for i, case in ipairs(data.section(name)) do fn(case, section, i) end
  end
end

describe("the cases of the data file", function()
  it("are in sections that a spec runs", function()
    for name in pairs(data.sections()) do assert.is_table(SECTIONS[name], name) end
  end)

  it("are numbered without a gap", function()
    each(function(case, section, i)
      assert.equal(("%s%02d"):format(section.prefix, i), case.id)
    end)
  end)

  it("have a status, and a reason for any but run", function()
    each(function(case)
      assert.is_true(STATUS[case.status] or false, case.id .. ": " .. tostring(case.status))
      assert.is_true(case.status == "run" or #(case.why or "") > 0, case.id .. " says no why")
    end)
  end)

  it("are run by the spec of their section, or by a test elsewhere that names them", function()
    each(function(case, section)
      if case.status == "skipped" then return end
      assert.is_string(case.spec or section.spec, case.id .. " has no spec")
      if not case.spec then return end
      local found = text_of(case.spec):find('it%("' .. case.id .. ": ")
      assert.is_truthy(found, case.id .. " has no test in " .. case.spec)
    end)
  end)
end)
