--- Whose line it is: the place in the script that called the library, and errors that name it.

local where = require("moontide.core").host.where

local M = {}

-- The library's own files as they appear in the source of a function: "@moontide/" in the binary.
local LIBRARY = debug.getinfo(1, "S").source:match "^(.*/)site%.lua$" or "@moontide/"

-- Sources that were found to be files of the library.
local files = {}

--- Whether a source ("@app.lua") is a file of the library, and which. A script may lie in a folder
--- of the same name, so the file must be a module that is loaded.
---@param source string
---@return string|nil file "task/scope.lua"
function M.library_file(source)
  if files[source] then return files[source] end
  if source:sub(1, #LIBRARY) ~= LIBRARY then return nil end
  local file = source:sub(#LIBRARY + 1)
  local module = "moontide." .. file:gsub("%.lua$", ""):gsub("/", ".")
  if package.loaded[module] ~= nil or package.loaded[module:gsub("%.init$", "")] ~= nil then
    files[source] = file
    return file
  end
end

--- The script's line that called into the library, "app.lua:12"; "?" when there is none.
---@return string
function M.caller()
  local level = 2
  while true do
    local source, short, line = where(level)
    if not source then return "?" end
    if source ~= "=[C]" and not M.library_file(source) then return ("%s:%d"):format(short, line) end
    level = level + 1
  end
end

--- Raises an error at the script's line: it has used the library wrongly.
---@param message string
function M.fail(message)
  error(("%s: %s"):format(M.caller(), message), 0)
end

return M
