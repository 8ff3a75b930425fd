/* mailbox: functions that other threads want called on the loop thread.
 *
 * A list under a mutex and one async handle. It lives by references, longer
 * than its host: whoever still holds one (a task of the program's that is not
 * done yet) finds it closed, not gone.
 */
#ifndef TIDE_MAILBOX_H
#define TIDE_MAILBOX_H

#include <stdbool.h>
#include <uv.h>

#include "moontide.h"

typedef struct tide_mailbox tide_mailbox;

/* Something to be called; its owner's, who makes it, until then. */
typedef struct tide_letter {
  struct tide_letter *next;
  tide_post_fn fn;
  void *arg;
  bool allocated; /* by the mailbox, which frees it */
} tide_letter;

/* `wake` is sent with each letter, until the mailbox is closed; its callback
 * empties it. NULL when memory is out. */
tide_mailbox *tide_mailbox_new(tide_host *host, uv_async_t *wake);
tide_mailbox *tide_mailbox_ref(tide_mailbox *mailbox);
void tide_mailbox_unref(tide_mailbox *mailbox);

/* 0, TIDE_ECANCELED when it is closed, UV_ENOMEM. [any] */
int tide_mailbox_post(tide_mailbox *mailbox, tide_post_fn fn, void *arg);
/* The same with a letter that is there already, so that it needs no memory;
 * `fn` may free it. 0 or TIDE_ECANCELED. [any] */
int tide_mailbox_send(tide_mailbox *mailbox, tide_letter *letter);
/* Sends `wake` and nothing else: 0 or TIDE_ECANCELED. [any] */
int tide_mailbox_wake(tide_mailbox *mailbox);
/* Calls what has been posted up to now, with status 0. [loop] */
void tide_mailbox_empty(tide_mailbox *mailbox);
/* Takes no more; `wake` is not touched afterwards. [loop] */
void tide_mailbox_close(tide_mailbox *mailbox);
/* Calls what is left with TIDE_ECANCELED; closed it must be. [loop] */
void tide_mailbox_cancel(tide_mailbox *mailbox);

#endif
