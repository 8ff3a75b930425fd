/* client: what the files of `moontide.core.client` know of each other. */
#ifndef TIDE_CLIENT_H
#define TIDE_CLIENT_H

#include <lua.h>
#include <stdbool.h>

/* Where signals can be read, once the module has been told to take them; else
 * -1. */
int tide_client_signal_fd(void);
/* Pushes the name of the next one, without "SIG". False: there is none. */
bool tide_client_push_signal(lua_State *L);
/* Adds the functions of client_terminal.c to the table on the top. */
void tide_client_add_terminal(lua_State *L);

#endif
