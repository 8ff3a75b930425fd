require("moontide")
local healthcheck = require("moontide.cli.healthcheck")

describe("the address of a health check", function()
  local right = {
    { "http://127.0.0.1:8081/health/ready", "127.0.0.1", 8081, "/health/ready" },
    { "http://localhost", "localhost", 80, "/" },
    { "HTTP://app:9000?full=1", "app", 9000, "/?full=1" },
    { "http://[::1]:8081/x#part", "::1", 8081, "/x" },
    { "http://[fe80::1]/", "fe80::1", 80, "/" },
  }
  for _, case in ipairs(right) do
    it("is split: " .. case[1], function()
      assert.same({ case[2], case[3], case[4] }, { healthcheck.split(case[1]) })
    end)
  end

  local wrong = {
    "", "127.0.0.1:8081", "https://x/", "http://", "http:///x", "http://x:0/", "http://x:70000/",
    "http://x:port/", "http://user@x/", "http://[::1/", "http://x/a b", "http://x/\r\nHost: y",
  }
  for _, url in ipairs(wrong) do
    it("is refused: " .. ("%q"):format(url), function()
      assert.is_nil((healthcheck.split(url)))
    end)
  end
end)
