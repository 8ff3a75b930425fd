/* The least that a C program does with a host: boots it, and has it end. */
#include <moontide.h>
#include <stdio.h>
#include <string.h>

static const char script[] =
    "local tide = require 'moontide'\n"
    "tide.config { manage = false, shutdown = { linger = 0 } }\n"
    "tide.spawn(function() tide.sleep(0) tide.shutdown:run() end)\n";

int main(void) {
  tide_host *host;
  int rc = tide_new(&host, NULL);
  if (rc == 0)
    rc = tide_load_buffer(host, "script", script, strlen(script));
  if (rc == 0)
    rc = tide_start(host);
  if (rc == 0)
    rc = tide_run(host);
  if (rc < 0)
    fprintf(stderr, "%s: %s\n", tide_err_name(rc), tide_last_error(host));
  printf("%s %s %d\n", tide_version_string(),
         tide_state_name(tide_host_state(host)), rc);
  tide_free(host);
  return rc != 0;
}
