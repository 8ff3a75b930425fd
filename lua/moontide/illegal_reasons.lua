--- What cannot be in `shutdown.reasons`: unknown kinds of reasons, phases that cannot be skipped. A
--- row of `illegal`. Pure.
local suggest = require("moontide.suggest")

---@param subject tide.Subject
---@return string[] messages
return function(subject)
  local chosen, kinds = subject.config.named("shutdown.reasons"), {}
  local reasons, messages = require("moontide.reason"), {}
  for kind in pairs(chosen) do kinds[#kinds + 1] = kind end
  table.sort(kinds)
  for _, kind in ipairs(kinds) do
    if not reasons.kinds[kind] then
      messages[#messages + 1] = "shutdown.reasons: "
        .. suggest.unknown("reason", kind, reasons.names())
    end
    for _, name in ipairs(chosen[kind].skip or {}) do
      local where = ("shutdown.reasons.%s.skip"):format(kind)
      if name == subject.shutdown.terminal then
        messages[#messages + 1] = ("%s: the terminal phase \"%s\" cannot be skipped"):format(
          where, name)
      elseif not subject.shutdown:get(name) then
        messages[#messages + 1] = ("%s: %s"):format(
          where, suggest.unknown("phase", name, subject.shutdown:names()))
      end
    end
  end
  return messages
end
