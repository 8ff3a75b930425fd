/* client_terminal.c: the person's side of `moontide.core.client`: signals as
 * something to be read, the modes of the terminal, the file of the history.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "../lua/lua.h"
#include "client.h"

/* ---- signals ---------------------------------------------------------------
 */

static int signal_fd = -1;

static const struct {
  int number;
  const char *name;
} taken[] = {
    {SIGINT, "INT"},   {SIGTERM, "TERM"},   {SIGHUP, "HUP"},
    {SIGQUIT, "QUIT"}, {SIGWINCH, "WINCH"}, {SIGTSTP, "TSTP"},
    {SIGCONT, "CONT"},
};

/* client.signals(): signals are something that `wait` tells from now on. The
 * host's own threads take none, so that blocking them here is enough. */
static int take_signals(lua_State *L) {
  sigset_t set;
  if (signal_fd >= 0)
    return 0;
  sigemptyset(&set);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    sigaddset(&set, taken[i].number);
  signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (signal_fd < 0)
    return luaL_error(L, "no signals can be read: %s", strerror(errno));
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  return 0;
}

int tide_client_signal_fd(void) {
  return signal_fd;
}

bool tide_client_push_signal(lua_State *L) {
  struct signalfd_siginfo info;
  if (read(signal_fd, &info, sizeof info) != sizeof info)
    return false;
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++)
    if (taken[i].number == (int)info.ssi_signo) {
      lua_pushstring(L, taken[i].name);
      return true;
    }
  return false;
}

/* client.stop(): stops the process, as Ctrl-Z does; returns when it goes on. */
static int stop(lua_State *L) {
  (void)L;
  raise(SIGSTOP);
  return 0;
}

/* ---- the terminal ----------------------------------------------------------
 */

static struct termios found; /* how the terminal was, while `changed` */
static bool changed;

static void restore(void) {
  if (changed)
    tcsetattr(STDIN_FILENO, TCSADRAIN, &found);
  changed = false;
}

/* client.keys(on): each key comes as it is typed, and is not shown; off: as the
 * terminal was found. Ctrl-C is a signal in both. */
static int keys(lua_State *L) {
  static bool registered;
  struct termios mode;
  if (!lua_toboolean(L, 1)) {
    restore();
    return 0;
  }
  if (changed || tcgetattr(STDIN_FILENO, &found) != 0)
    return 0;
  if (!registered)
    registered = atexit(restore) == 0;
  mode = found;
  mode.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  mode.c_cc[VMIN] = 1;
  mode.c_cc[VTIME] = 0;
  changed = tcsetattr(STDIN_FILENO, TCSADRAIN, &mode) == 0;
  return 0;
}

/* client.is_terminal(0 | 1 | 2) -> boolean */
static int is_terminal(lua_State *L) {
  lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
  return 1;
}

/* client.columns() -> integer */
static int columns(lua_State *L) {
  struct winsize size = {0};
  bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  lua_pushinteger(L, known ? size.ws_col : 80);
  return 1;
}

/* ---- files -----------------------------------------------------------------
 */

/* client.append(path, text, anew) -> true | nil, message: a file of this user
 * alone, whatever it was before. `anew`: with nothing else in it. */
static int append(lua_State *L) {
  const char *path = luaL_checkstring(L, 1);
  size_t length;
  const char *text = luaL_checklstring(L, 2, &length);
  int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
              (lua_toboolean(L, 3) ? O_TRUNC : 0);
  int fd = open(path, flags, S_IRUSR | S_IWUSR);
  bool ok = fd >= 0 && fchmod(fd, S_IRUSR | S_IWUSR) == 0 &&
            write(fd, text, length) == (ssize_t)length;
  int error = errno;
  if (fd >= 0)
    close(fd);
  if (ok) {
    lua_pushboolean(L, 1);
    return 1;
  }
  lua_pushnil(L);
  lua_pushfstring(L, "%s: %s", path, strerror(error));
  return 2;
}

void tide_client_add_terminal(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"signals", take_signals},
      {"stop", stop},
      {"keys", keys},
      {"is_terminal", is_terminal},
      {"columns", columns},
      {"append", append},
      {NULL, NULL},
  };
  luaL_setfuncs(L, functions, 0);
}
