-- Where state is kept, by what the environment says.
local function path_with(environment, settings)
  local script = ([[
    package.loaded["moontide.config"] = { get = function(key) return (%s)[key] end }
    package.loaded["moontide.core"] = { host = { name = "app" } }
    io.write(tostring(require("moontide.state_dir").path()))]]):format(settings or "{}")
  local command = ("env -u HOME -u XDG_STATE_HOME -u STATE_DIRECTORY %s lua5.4 -e '%s'")
    :format(environment, script)
  local pipe = assert(io.popen(command))
  local path = pipe:read("a")
  pipe:close()
  return path
end

describe("the state directory", function()
  it("is what the configuration says, before all", function()
    assert.equal("/srv/x", path_with("HOME=/h STATE_DIRECTORY=/s", '{ state_dir = "/srv/x" }'))
  end)

  it("is the first that systemd gives", function()
    assert.equal("/var/lib/a", path_with("HOME=/h STATE_DIRECTORY=/var/lib/a:/var/lib/b"))
  end)

  it("is in the user's place for state, under the name of the process", function()
    assert.equal("/x/moontide/app", path_with("HOME=/h XDG_STATE_HOME=/x"))
    assert.equal("/h/.local/state/moontide/app", path_with("HOME=/h XDG_STATE_HOME=relative"))
    assert.equal("/h/.local/state/moontide/a_b", path_with("HOME=/h", '{ name = "a/b" }'))
  end)

  it("is nowhere without a home", function()
    assert.equal("nil", path_with(""))
    assert.equal("nil", path_with("HOME=x"))
  end)
end)
