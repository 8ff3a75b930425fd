/* What the clients counted, as one line of JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "load.h"

const char *const load_kind_names[LOAD_KINDS] = {
    [LOAD_KEEP_ALIVE] = "keep_alive",
    [LOAD_PER_REQUEST] = "per_request",
    [LOAD_PIPELINED] = "pipelined",
    [LOAD_POST] = "post",
};

const char *const load_why_names[LOAD_WHYS] = {
    [LOAD_REFUSED] = "refused",     [LOAD_CONNECT] = "connect",
    [LOAD_RESET] = "reset",         [LOAD_EOF] = "eof",
    [LOAD_TRUNCATED] = "truncated", [LOAD_STATUS] = "status",
    [LOAD_MISMATCH] = "mismatch",   [LOAD_TIMEOUT] = "timeout",
};

static uint64_t failed(const load_counts *counts) {
  uint64_t sum = 0;
  for (int why = 0; why < LOAD_WHYS; why++)
    sum += counts->failed[why];
  return sum;
}

uint64_t load_failures(const load_run *run) {
  uint64_t sum = 0;
  for (int kind = 0; kind < LOAD_KINDS; kind++)
    sum += failed(&run->counts[kind]);
  return sum;
}

static void report_kind(const load_counts *counts, FILE *out) {
  fprintf(out,
          "{\"answered\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"resent\":%" PRIu64
          ",\"retried\":%" PRIu64 ",\"refused\":%" PRIu64
          ",\"connections\":%" PRIu64 ",\"closed_idle\":%" PRIu64
          ",\"said_close\":%" PRIu64 ",\"slowest_ms\":%.1f,\"why\":{",
          counts->answered, failed(counts), counts->resent, counts->retried,
          counts->refused, counts->connections, counts->closed_idle,
          counts->said_close, counts->slowest_ms);
  const char *comma = "";
  for (int why = 0; why < LOAD_WHYS; why++) {
    if (counts->failed[why] == 0)
      continue;
    fprintf(out, "%s\"%s\":%" PRIu64, comma, load_why_names[why],
            counts->failed[why]);
    comma = ",";
  }
  fputs("}}", out);
}

void load_report(const load_run *run, double now, FILE *out) {
  uint64_t answered = 0;
  for (int kind = 0; kind < LOAD_KINDS; kind++)
    answered += run->counts[kind].answered;
  fprintf(out,
          "{\"answered\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"seconds\":%.1f",
          answered, load_failures(run), now - run->started_at);
  for (int kind = 0; kind < LOAD_KINDS; kind++) {
    fprintf(out, ",\"%s\":", load_kind_names[kind]);
    report_kind(&run->counts[kind], out);
  }
  fputs("}\n", out);
  fflush(out);
}
