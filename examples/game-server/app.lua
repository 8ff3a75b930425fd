-- What a match is, and the life of the server around it. The table `game` is the program's
-- (script.c).
local tide = require "moontide"

tide.config {
  name = "game-server",
  -- A match that runs when the signal comes may go on for so long; then it is cut.
  shutdown = { timeout = "30s", linger = "500ms", drain = "20s" },
}

local function setting(name, default) return os.getenv(name) or default end

local here = arg[0]:match "^(.*)/" or "."

game.rules {
  players = tonumber(setting("PLAYERS", 2)),
  most_players = tonumber(setting("MOST_PLAYERS", 100)),
  seconds = tonumber(setting("MATCH", 15)),
}

-- ---- up and down -------------------------------------------------------------------------------

tide.startup:phase("world", { timeout = "10s" })
game.load_world("world", setting("WORLD", here .. "/world.txt"))

tide.startup:phase("players", { after = "world" }, function()
  game.open(tonumber(setting("GAME_PORT", 7777)))
end)

tide.shutdown:phase("save-scores", { after = "service-stop", timeout = "3s" })
game.save_scores("save-scores", setting("SCORES", "scores.txt"))

-- ---- looking on, at the console ----------------------------------------------------------------

-- `moontide eval game-server 'matches()'`: what is typed there sees the globals. It has the host's
-- share of the frames, however long it runs.

function matches() return game.matches() end

--- Ends a match now; its players keep their points.
---@param id integer
---@return boolean ended false: there is none
function end_match(id) return game.end_match(id) end

-- ---- looking on, over HTTP ---------------------------------------------------------------------

local server = tide.http.listen { name = "admin", port = tonumber(setting("PORT", 8080)) }

server:get("/matches", function() return { matches = game.matches(), players = game.players() } end)

server:delete("/matches/:id", function(req)
  if not game.end_match(math.tointeger(req.params.id) or 0) then
    return 404, { error = "no such match" }
  end
  return 204
end)

server:get("/frames", function() return game.frames() end)
