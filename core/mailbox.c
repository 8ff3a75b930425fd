/* mailbox.c: posts from other threads. */
#include "mailbox.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

struct tide_mailbox {
  atomic_uint references;
  tide_host *host;
  uv_mutex_t lock; /* for all below; held for a few instructions */
  uv_async_t *wake;
  tide_letter *first;
  tide_letter **last;
  bool closed;
};

tide_mailbox *tide_mailbox_new(tide_host *host, uv_async_t *wake) {
  tide_mailbox *mailbox = calloc(1, sizeof *mailbox);
  if (mailbox == NULL)
    return NULL;
  if (uv_mutex_init(&mailbox->lock) != 0) {
    free(mailbox);
    return NULL;
  }
  atomic_init(&mailbox->references, 1);
  mailbox->host = host;
  mailbox->wake = wake;
  mailbox->last = &mailbox->first;
  return mailbox;
}

tide_mailbox *tide_mailbox_ref(tide_mailbox *mailbox) {
  atomic_fetch_add(&mailbox->references, 1);
  return mailbox;
}

void tide_mailbox_unref(tide_mailbox *mailbox) {
  if (atomic_fetch_sub(&mailbox->references, 1) != 1)
    return;
  assert(mailbox->first == NULL);
  uv_mutex_destroy(&mailbox->lock);
  free(mailbox);
}

int tide_mailbox_send(tide_mailbox *mailbox, tide_letter *letter) {
  bool closed, first;
  letter->next = NULL;
  uv_mutex_lock(&mailbox->lock);
  closed = mailbox->closed;
  if (!closed) {
    first = mailbox->first == NULL;
    *mailbox->last = letter;
    mailbox->last = &letter->next;
    /* Under the lock: the handle must not be closed meanwhile. What is behind
     * another letter has been announced by that. */
    if (first)
      uv_async_send(mailbox->wake);
  }
  uv_mutex_unlock(&mailbox->lock);
  return closed ? TIDE_ECANCELED : 0;
}

int tide_mailbox_post(tide_mailbox *mailbox, tide_post_fn fn, void *arg) {
  tide_letter *letter = malloc(sizeof *letter);
  int rc;
  if (letter == NULL)
    return UV_ENOMEM;
  *letter = (tide_letter){.fn = fn, .arg = arg, .allocated = true};
  rc = tide_mailbox_send(mailbox, letter);
  if (rc != 0)
    free(letter);
  return rc;
}

int tide_mailbox_wake(tide_mailbox *mailbox) {
  int rc = TIDE_ECANCELED;
  uv_mutex_lock(&mailbox->lock);
  if (!mailbox->closed)
    rc = uv_async_send(mailbox->wake);
  uv_mutex_unlock(&mailbox->lock);
  return rc;
}

/* What was posted up to now; what these post in turn comes the next time, so
 * that they cannot keep the loop for themselves. */
static void call_all(tide_mailbox *mailbox, int status) {
  tide_letter *at, *next;
  uv_mutex_lock(&mailbox->lock);
  at = mailbox->first;
  mailbox->first = NULL;
  mailbox->last = &mailbox->first;
  uv_mutex_unlock(&mailbox->lock);
  for (; at != NULL; at = next) {
    bool allocated = at->allocated;
    next = at->next;
    at->fn(mailbox->host, at->arg, status);
    if (allocated)
      free(at);
  }
}

void tide_mailbox_empty(tide_mailbox *mailbox) {
  call_all(mailbox, 0);
}

void tide_mailbox_close(tide_mailbox *mailbox) {
  uv_mutex_lock(&mailbox->lock);
  mailbox->closed = true;
  uv_mutex_unlock(&mailbox->lock);
}

void tide_mailbox_cancel(tide_mailbox *mailbox) {
  call_all(mailbox, TIDE_ECANCELED);
}
