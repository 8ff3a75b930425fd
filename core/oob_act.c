/* oob_act.c: doing what is asked for over the out-of-band line.
 *
 * What takes time is done in steps, each of microseconds, between which the
 * watchdog does its own work.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "append.h"
#include "clock.h"
#include "watchdog_inside.h"
#include "watchdog_words.h"

/* Poked, a thread that has a processor answers within some 100 us, and Lua's
 * next instruction follows at once. What is beyond that is for a machine that
 * has no processor to give just now. */
#define NOTE_PATIENCE (500 * TIDE_MS)
#define LINE_PATIENCE (100 * TIDE_MS)
#define NOTE_STEP (TIDE_MS / 2)

/* A slice that is to be interrupted has run for so long. Shorter ones come and
 * go all the time, and the one after it would be hit. */
#define SPINS (100 * TIDE_MS)
#define SPIN_PATIENCE (300 * TIDE_MS)
/* So long after the first raise Lua has been raised in for good. */
#define RAISE_PATIENCE (500 * TIDE_MS)
#define RAISE_STEP (2 * TIDE_MS)

void tide_oob_audit(const tide_watchdog *watchdog, uid_t uid, pid_t pid,
                    const char *message, const char *detail) {
  tide_words words = {.fd = STDERR_FILENO,
                      .format =
                          (tide_log_format)atomic_load(&watchdog->format)};
  tide_field fields[4];
  size_t count = 0;
  if (tide_watchdog__name(watchdog) != NULL)
    fields[count++] = TIDE_F_STR("name", tide_watchdog__name(watchdog));
  fields[count++] = TIDE_F_INT("uid", uid);
  fields[count++] = TIDE_F_INT("peer", pid);
  if (detail != NULL)
    fields[count++] = TIDE_F_STR("what", detail);
  tide_words_record(&words, TIDE_LOG_WARN, message, fields, count);
}

static void audit(const tide_watchdog *watchdog, const tide_oob_client *client,
                  const char *message, const char *detail) {
  tide_oob_audit(watchdog, client->uid, client->pid, message, detail);
}

static void end(tide_oob_client *client, const char *type, const char *sentence,
                const char *status) {
  client->busy = false;
  if (sentence != NULL)
    tide_oob_tell(client, type, sentence);
  tide_oob_done(client, status);
}

void tide_oob_break_off(tide_oob_client *client) {
  end(client, "error", "the process ends", "cancelled");
}

static void refuse(tide_oob_client *client, const char *why) {
  end(client, "error", why, "refused");
}

static tide_running running(const tide_watchdog *watchdog) {
  tide_running now = {0};
  if (watchdog->interrupt != NULL)
    tide_interrupt_running(watchdog->interrupt, &now);
  return now;
}

/* ---- where ------------------------------------------------------------ */

static void begin_where(tide_watchdog *watchdog, tide_oob_client *client) {
  if (running(watchdog).id == 0) {
    tide_oob_tell_where(watchdog, client, NULL);
    end(client, NULL, NULL, "ok");
    return;
  }
  tide_interrupt_ask(watchdog->interrupt);
  client->named_at = 0;
  client->busy = true;
}

/* Names come with the poke, a line with the next instruction. */
static uint64_t go_on_where(tide_watchdog *watchdog, tide_oob_client *client,
                            uint64_t now) {
  tide_noted slice;
  bool named = tide_interrupt_noted(watchdog->interrupt, &slice);
  bool patient;
  if (named && client->named_at == 0)
    client->named_at = now;
  if (running(watchdog).id != slice.id)
    slice.looking = false; /* it is over, or another has begun */
  patient = named ? slice.looking && !slice.seen &&
                        now - client->named_at < LINE_PATIENCE
                  : now - client->began < NOTE_PATIENCE;
  if (patient)
    return now + NOTE_STEP;
  tide_oob_tell_where(watchdog, client, &slice);
  end(client, NULL, NULL, "ok");
  return now;
}

/* ---- interrupt -------------------------------------------------------- */

static void begin_interrupt(tide_watchdog *watchdog, tide_oob_client *client) {
  if (watchdog->interrupt == NULL) {
    refuse(client, "this host was made without interrupts");
    return;
  }
  audit(watchdog, client, "an interrupt was asked for", NULL);
  client->count = tide_interrupt_count(watchdog->interrupt);
  client->slice = 0;
  client->busy = true;
}

/* Looks for a slice that spins, and has it ended. */
static uint64_t find_slice(tide_watchdog *watchdog, tide_oob_client *client,
                           uint64_t now) {
  uint64_t id = running(watchdog).id;
  if (id != 0 && id == watchdog->seen_id &&
      now - watchdog->seen_since >= SPINS) {
    client->slice = id;
    client->slice_at = now;
    watchdog->asked_id = id;
    watchdog->asked_at = now;
    tide_interrupt_force(watchdog->interrupt, id);
    tide_interrupt_poke(watchdog->interrupt);
    return now + RAISE_STEP;
  }
  if (now - client->began < SPIN_PATIENCE)
    return now + RAISE_STEP;
  end(client, "value",
      id != 0 ? "Lua runs, but nothing of it for long: not interrupted"
              : "no Lua runs: there is nothing to interrupt",
      "ok");
  return now;
}

static uint64_t go_on_interrupt(tide_watchdog *watchdog,
                                tide_oob_client *client, uint64_t now) {
  bool raised = tide_interrupt_count(watchdog->interrupt) > client->count;
  if (client->slice == 0)
    return find_slice(watchdog, client, now);
  if (running(watchdog).id != client->slice) {
    end(client, "value", raised ? "interrupted" : "it ended by itself just now",
        "ok");
    return now;
  }
  if (now - client->slice_at < RAISE_PATIENCE)
    return now + RAISE_STEP;
  if (raised)
    end(client, "value", "interrupted; it is still unwinding", "ok");
  else
    end(client, "error",
        "in a C call: cannot be interrupted before that returns", "error");
  return now;
}

/* ---- abort ------------------------------------------------------------ */

static void begin_abort(tide_watchdog *watchdog, tide_oob_client *client) {
  char why[96] = "aborted over the out-of-band line";
  if (watchdog->options.on_overrun != NULL) {
    refuse(client, "this host is part of a program, which ends by itself");
    return;
  }
  audit(watchdog, client, "an abort was asked for", NULL);
  end(client, "value", "aborted", "ok");
  if (send(client->fd, client->out, client->out_length,
           MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    client->over = true; /* it will see the end of the connection */
  tide_watchdog__end(watchdog, why, tide_clock_mono());
}

/* ---- requests --------------------------------------------------------- */

static void unknown(tide_oob_client *client) {
  char text[256];
  size_t at = tide_append(text, sizeof text, 0, "unknown request \"");
  at = tide_append(text, sizeof text, at, client->request.name);
  tide_append(text, sizeof text, at,
              "\": there are where, status, interrupt and abort");
  end(client, "error", text, "unknown");
}

static bool is_change(tide_oob_type type) {
  return type == TIDE_OOB_INTERRUPT || type == TIDE_OOB_ABORT;
}

void tide_oob_begin(tide_watchdog *watchdog, tide_oob_client *client) {
  int policy = atomic_load(&watchdog->oob.policy);
  if (is_change(client->request.type) && policy != TIDE_POLICY_EVAL) {
    audit(watchdog, client, "refused by console.policy", client->request.name);
    refuse(client, "console.policy is inspect: where and status alone");
    return;
  }
  switch (client->request.type) {
  case TIDE_OOB_WHERE:
    begin_where(watchdog, client);
    break;
  case TIDE_OOB_STATUS:
    tide_oob_tell_status(watchdog, client);
    end(client, NULL, NULL, "ok");
    break;
  case TIDE_OOB_INTERRUPT:
    begin_interrupt(watchdog, client);
    break;
  case TIDE_OOB_ABORT:
    begin_abort(watchdog, client);
    break;
  case TIDE_OOB_BAD:
    end(client, "error", client->request.name, "error");
    break;
  case TIDE_OOB_UNKNOWN:
    unknown(client);
    break;
  }
}

uint64_t tide_oob_go_on(tide_watchdog *watchdog, tide_oob_client *client,
                        uint64_t now) {
  return client->request.type == TIDE_OOB_WHERE
             ? go_on_where(watchdog, client, now)
             : go_on_interrupt(watchdog, client, now);
}
