-- The Lua library, specs and examples run on Lua 5.4 and use no globals.
std = "lua54"
max_line_length = 100
cache = false
-- A callback takes what its caller gives, used or not.
unused_args = false
exclude_files = { "build*/**" }
-- A script's os.exit asks for a shutdown; its test puts the stock one back.
files["lua/moontide/exit.lua"] = { globals = { "os.exit" } }
files["tests/support/lifecycle.lua"] = { globals = { "os.exit" } }
-- What an evaluation prints goes to its session, by functions in the place of Lua's own.
files["lua/moontide/console/output.lua"] = { globals = { "io.write" } }

-- The C program around the script has put these into its Lua state.
files["examples/embed-lua/app.lua"] = { globals = { "visits" }, read_globals = { "greet" } }
files["examples/edge-proxy/app.lua"] = { read_globals = { "proxy" } }
files["examples/game-server/app.lua"] = {
  globals = { "matches", "end_match" }, -- for who types at the console
  read_globals = { "game" },
}

-- busted puts describe, it, assert and their like into the specs' globals.
files["tests/spec/**"] = { std = "lua54+busted" }
files["tests/e2e/**"] = { std = "lua54+busted" }
-- It puts back what an evaluation may have left.
files["tests/spec/console_prints_to_its_session_spec.lua"] = { globals = { "io.write" } }
