/* unix_path: whose the file of a Unix socket is. No uv loop, no Lua.
 *
 * The file stays behind when its process dies, and then only is in the way. Who
 * is about to bind has to tell that from the file of a living process, which
 * may be bound and not listening yet: connecting to that one is refused just as
 * well. The kernel's list of bound sockets decides.
 */
#ifndef TIDE_UNIX_PATH_H
#define TIDE_UNIX_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/un.h>

/* Fills in the address. 0, or UV_ENAMETOOLONG with the reason in words. */
int tide_unix_address(const char *path, struct sockaddr_un *address, char *why,
                      size_t size);
/* Makes way for a bind: a file that a dead process has left is removed. 0, or a
 * negative libuv error with the reason in words: who has it. */
int tide_unix_make_way(const struct sockaddr_un *address, char *why,
                       size_t size);

/* What tells the file at the path from a later one of that name, as long as the
 * socket is open; zeros where there is none. */
void tide_unix_note(const char *path, uint64_t *inode, uint64_t *device);
/* Whether the path still leads to that file. */
bool tide_unix_is_still(const char *path, uint64_t inode, uint64_t device);

#endif
