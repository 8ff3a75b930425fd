--- The configuration keys, as data: { key, type, default, extra }.
---
--- Types are functions of `config.types`; `extra` is what they need beside the
--- value (the words of an enum, the bounds of an integer). Durations stand here
--- in seconds, sizes in bytes. `secret` values are masked wherever they are shown.
local M = {}

M.keys = {
  { "name", "text" },
  { "state_dir", "text" },
  { "exit_codes", "enum", "detailed", { "detailed", "seed" } },

  { "manage", "manage", true },
  { "manage.host", "text", "127.0.0.1" },
  { "manage.port", "integer", 8081, { 0, 65535 } },
  { "manage.token", "text", secret = true },

  { "startup.timeout", "total", 120 },
  { "startup.default_phase_timeout", "positive", 30 },
  { "startup.parallel", "boolean", false },

  { "shutdown.timeout", "total", 40 },
  { "shutdown.default_phase_timeout", "positive", 5 },
  { "shutdown.parallel", "boolean", false },
  { "shutdown.linger", "duration", 3 },
  { "shutdown.drain", "duration", 30 },
  { "shutdown.terminate_drain", "duration", 2 },
  { "shutdown.grace", "positive" },
  { "shutdown.prestop", "duration" },
  { "shutdown.forced_exit_code", "integer", 0, { 0, 255 } },
  { "shutdown.terminate_host", "boolean", true },
  { "shutdown.run_by_terminate", "boolean", true },
  { "shutdown.run_by_process_exit", "boolean", true },
  { "shutdown.exit_process", "boolean", true },
  { "shutdown.auto_register_tasks", "boolean", true },

  { "uncaught.callback", "enum", "shutdown", { "shutdown", "log" } },
  { "uncaught.task", "enum", "shutdown", { "shutdown", "log" } },

  { "log.level", "enum", "info", { "debug", "info", "warn", "error" } },
  { "log.format", "enum", "auto", { "auto", "logfmt", "json" } },
  { "log.file", "text" },
  { "log.close_timeout", "duration", 3 },

  { "console.policy", "enum", nil, { "off", "inspect", "eval" } },
  { "console.uids", "uids" },
  { "console.sessions", "integer", 8, { 0, 32 } },
  { "console.idle_timeout", "positive", 1800 },

  { "control.socket", "boolean", true },
  { "control.dir", "text" },

  { "report.dir", "text" },
  { "report.keep", "integer", 10, { 0, 1000000 } },

  -- Places in a head are 16 bits wide, and a hundred fields have one each.
  { "limits.request_line", "size", 8192, { 16, 16384 } },
  { "limits.headers", "size", 32768, { 64, 40960 } },
  { "limits.header_field", "size", 8192, { 16, 40960 } },
  { "limits.header_count", "integer", 100, { 1, 100 } },
  { "limits.trailers", "size", 4096 },
  { "limits.trailer_count", "integer", 16, { 0, 10000 } },
  { "limits.chunk_extensions", "size", 4096 },
  { "limits.body", "size", 1048576 },
  { "limits.requests_per_connection", "integer", 10000, { 0, math.maxinteger } },
  { "limits.connections", "integer", 10000, { 1, math.maxinteger } },
  { "limits.in_flight", "integer", 1024, { 1, math.maxinteger } },
  { "limits.write_buffer", "size", 65536 },
  { "limits.backlog", "integer", 1024, { 1, 65535 } },

  { "timeouts.header", "positive", 10 },
  { "timeouts.idle", "positive", 75 },
  { "timeouts.body_idle", "positive", 30 },
  { "timeouts.body_min_rate", "size", 240 },
  { "timeouts.request_total", "positive", 300 },
  { "timeouts.write_stall", "positive", 30 },
  { "timeouts.write_min_rate", "size", 240 },
  { "timeouts.lingering_idle", "positive", 2 },
  { "timeouts.lingering_total", "positive", 5 },
  { "timeouts.handler", "duration", 0 },
  { "timeouts.accept_drain", "duration", 1 },
  { "timeouts.first_byte_grace", "duration", 1 },
  { "timeouts.header_in_drain", "positive", 5 },
  { "timeouts.stream_grace", "duration", 5 },
  { "timeouts.force_flush", "duration", 1 },
}

--- What holds keys.
M.groups = {
  manage = true, startup = true, shutdown = true, uncaught = true, log = true, console = true,
  control = true, report = true, limits = true, timeouts = true,
  ["startup.phases"] = true, ["shutdown.phases"] = true, ["shutdown.reasons"] = true,
}

--- Keys under a name the user chooses: `shutdown.phases.NAME.timeout`.
M.named = {
  ["startup.phases"] = {
    what = "phase",
    { "timeout", "phase_timeout" },
    { "on_fail", "on_fail" },
    { "enabled", "boolean" },
    { "after", "texts" },
  },
  ["shutdown.phases"] = {
    what = "phase",
    { "timeout", "phase_timeout" },
    { "recover", "boolean" },
    { "enabled", "boolean" },
    { "after", "texts" },
  },
  ["shutdown.reasons"] = {
    what = "reason",
    { "exit_code", "integer", nil, { 0, 255 } },
    { "skip", "texts" },
    { "timeout", "total" },
  },
}

--- The names without `__` that are ours in the environment. Any other is not:
--- a Kubernetes Service called moontide injects MOONTIDE_PORT.
M.short_names = {
  MOONTIDE_NAME = "name",
  MOONTIDE_STATE_DIR = "state_dir",
  MOONTIDE_STARTUP_TIMEOUT = "startup.timeout",
  MOONTIDE_SHUTDOWN_TIMEOUT = "shutdown.timeout",
}

--- What people write that have used something else -> the key it is here.
M.hints = { depends_on = "after", dependsOn = "after", needs = "after" }

return M
