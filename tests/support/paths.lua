-- Lets a spec of a pure module require it from the tree, without the binary.
-- `require("support.paths")` before the modules; the return value is the root.
local here = debug.getinfo(1, "S").source:match("^@(.*)tests/support/paths%.lua$")
local root = os.getenv("MOONTIDE_SOURCE") or (here ~= "" and here or "."):gsub("/$", "")

package.path = ("%s/lua/?.lua;%s/lua/?/init.lua;%s/tests/?.lua;%s"):format(
  root, root, root, package.path)

return { root = root }
