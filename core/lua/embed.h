/* embed: what the parts of the C interface to the pipelines share. */
#ifndef TIDE_EMBED_H
#define TIDE_EMBED_H

#include "lua.h"

/* What a protected function is given: everything that may raise, be it for want
 * of memory, happens in one. */
typedef struct tide_embed_call {
  tide_host *host;
  const void *spec;
  const char *pipeline;
} tide_embed_call;

/* A function of moontide.embed, onto the stack. Raises. */
void tide_embed__push(lua_State *L, const char *function);
/* Runs `body`, which gets the call as a light userdata and leaves nil or a
 * message. 0, TIDE_ELUA (it raised) or TIDE_ESTATE (it left a message), with
 * tide_last_error; UV_ENOMEM. */
int tide_embed__protected(tide_embed_call *call, lua_CFunction body);
/* Sets tide_last_error and returns `error`. */
int tide_embed__refuse(tide_host *host, int error, const char *why);
/* Adds the functions of events to the table on the stack. */
void tide_lua_add_events(lua_State *L);

#endif
