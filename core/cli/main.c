/* main.c: the moontide program, written on include/moontide.h alone.
 *
 * `moontide app.lua` and `moontide run app.lua` load the script and run it;
 * every other word goes to the Lua side of the command line, which loads what
 * it needs. The host is made first, so that a signal that comes while the
 * arguments are read is already its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lua.h>
#include <moontide.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "init.h"

#define EXIT_CONFIG 78

/* Asks the Lua side what the command line means: either an exit code (the
 * command is done), or the path of a script to run, which it has prepared for
 * (options set). Returns the code, or -1 with *script. */
static int dispatch(tide_host *host, int argc, char **argv,
                    const char **script) {
  lua_State *L = tide_lua(host);
  int i;
  lua_getglobal(L, "require");
  lua_pushliteral(L, "moontide.cli");
  if (tide_call(host, 1, 1) != 0)
    goto fail;
  lua_getfield(L, -1, "main");
  lua_newtable(L);
  for (i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i);
  }
  if (tide_call(host, 1, 1) != 0)
    goto fail;
  if (lua_isinteger(L, -1))
    return (int)lua_tointeger(L, -1);
  lua_getfield(L, -1, "run"); /* stays on the stack, so the string lives */
  *script = lua_tostring(L, -1);
  return -1;
fail:
  fprintf(stderr, "moontide: %s\n", tide_last_error(host));
  return 1;
}

/* A script that cannot be loaded: the message alone, no log around it. */
static int refuse(tide_host *host) {
  const char *message = tide_last_error(host);
  fprintf(stderr, "moontide: %s\n", message);
  return EXIT_CONFIG;
}

static int run_script(tide_host *host, const char *script) {
  int rc = tide_load(host, script);
  if (rc != 0)
    return refuse(host);
  rc = tide_start(host);
  if (rc == 0)
    rc = tide_run(host);
  if (rc >= 0)
    return rc;
  fprintf(stderr, "moontide: %s: %s\n", tide_strerror(rc),
          tide_last_error(host));
  return 1;
}

/* A standard stream that is closed would be the next descriptor to be opened,
 * and the log would go into whatever that is. */
static void open_streams(void) {
  int fd;
  for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
      break; /* nothing to be had */
}

/* The code of a command whose output may have been lost: to a full disk it is
 * an error. A reader that has gone away has seen what it wanted. */
static int end_output(int code) {
  bool failed = fflush(stdout) != 0;
  int error = failed ? errno : 0;
  struct pollfd output = {.fd = STDOUT_FILENO};

  if (!failed && !ferror(stdout))
    return code;
  if (error == EPIPE || (poll(&output, 1, 0) == 1 && output.revents & POLLERR))
    return code;
  fprintf(stderr, "moontide: cannot write to standard output%s%s\n",
          error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
  return code != 0 ? code : 1;
}

int main(int argc, char **argv) {
  tide_host *host;
  tide_options options;
  const char *script = NULL;
  int rc;
  open_streams();
  rc = tide_init_maybe(tide_init_mode(argc, argv));
  if (rc != 0) {
    fprintf(stderr, "moontide: cannot fork the init: %s\n", tide_strerror(rc));
    return 1;
  }
  tide_options_init(&options);
  options.flags = TIDE_PROCESS;
  options.argc = argc;
  options.argv = argv;
  rc = tide_new(&host, &options);
  if (rc != 0) {
    fprintf(stderr, "moontide: cannot start: %s\n", tide_strerror(rc));
    return 1;
  }
  rc = dispatch(host, argc, argv, &script);
  if (rc < 0) {
    rc = run_script(host, script);
    fflush(stdout);
  } else {
    rc = end_output(rc);
  }
  tide_free(host);
  return rc;
}
