/* An edge server with an epoll loop of its own, and moontide in it.
 *
 * The loop is the program's: it waits on its sockets and on the host's one
 * descriptor. Which port goes where says the Lua script, again at each SIGHUP;
 * each connection is a piece of work that a shutdown waits for.
 */
#include <errno.h>
#include <lauxlib.h>
#include <lua.h>
#include <moontide.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "proxy.h"

enum { EVENTS = 64 };

static const char proxy_key;

/* ---- what the proxy tells the host ---- */

static bool on_begin(void *arg) {
  return tide_work_begin(arg, "connection") == 0;
}

static void on_end(void *arg) {
  tide_work_end(arg, "connection");
}

/* ---- what the script sees ---- */

/* proxy.route(port, target), proxy.forget_others() */

static proxy *proxy_of(lua_State *L) {
  proxy *found;
  lua_rawgetp(L, LUA_REGISTRYINDEX, &proxy_key);
  found = lua_touserdata(L, -1);
  lua_pop(L, 1);
  return found;
}

static int lua_route(lua_State *L) {
  lua_Integer number = luaL_checkinteger(L, 1);
  const char *target = luaL_checkstring(L, 2);
  int error;
  luaL_argcheck(L, number > 0 && number < 65536, 1, "is not a port");
  error = proxy_route(proxy_of(L), (uint16_t)number, target);
  if (error == 0)
    return 0;
  return luaL_error(L, "port %d to %s: %s", (int)number, target,
                    strerror(-error));
}

static int lua_forget_others(lua_State *L) {
  proxy_forget_others(proxy_of(L));
  return 0;
}

static int open_proxy(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"route", lua_route}, {"forget_others", lua_forget_others}, {NULL, NULL}};
  lua_pushvalue(L, 1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &proxy_key);
  luaL_newlib(L, functions);
  lua_setglobal(L, "proxy");
  return 0;
}

/* ---- what the shutdown does ---- */

static int close_ports(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  (void)token;
  proxy_close_ports(arg);
  return 0;
}

/* After the drain: whoever is still connected has had their time. */
static int cut(tide_host *host, tide_token *token, void *arg) {
  (void)host;
  (void)token;
  proxy_cut(arg);
  return 0;
}

static int add_task(tide_host *host, const char *phase, const char *name,
                    int (*run)(tide_host *, tide_token *, void *), void *arg) {
  tide_task_spec task;
  tide_task_spec_init(&task);
  task.pipeline = TIDE_SHUTDOWN_PIPELINE;
  task.phase = phase;
  task.name = name;
  task.run = run;
  task.arg = arg;
  return tide_task_add(host, &task);
}

static int set_up(tide_host *host, proxy *proxy, const char *script) {
  lua_State *L = tide_lua(host);
  int rc;
  lua_pushcfunction(L, open_proxy);
  lua_pushlightuserdata(L, proxy);
  if ((rc = tide_call(host, 1, 0)) != 0)
    return rc;
  rc = add_task(host, "service-unbind", "ports", close_ports, proxy);
  if (rc == 0)
    rc = add_task(host, "service-stop", "cut", cut, proxy);
  if (rc == 0)
    rc = tide_load(host, script);
  return rc != 0 ? rc : tide_start(host);
}

/* ---- the loop ---- */

/* Of two timeouts, of which -1 is none. */
static int sooner(int a, int b) {
  return a < 0 || (b >= 0 && b < a) ? b : a;
}

static int run(tide_host *host, proxy *proxy, int epoll) {
  struct epoll_event events[EVENTS];
  struct epoll_event of_host = {.events = EPOLLIN, .data.ptr = NULL};
  if (epoll_ctl(epoll, EPOLL_CTL_ADD, tide_fd(host), &of_host) != 0)
    return -errno;
  while (tide_dispatch(host) != TIDE_IS_STOPPED) {
    int count = epoll_wait(epoll, events, EVENTS,
                           sooner(tide_timeout(host), proxy_timeout(proxy)));
    if (count < 0 && errno != EINTR)
      return -errno;
    for (int i = 0; i < count; i++)
      if (events[i].data.ptr != NULL)
        proxy_event(proxy, events[i].data.ptr, events[i].events);
    proxy_collect(proxy);
  }
  return tide_exit_code(host);
}

int main(int argc, char **argv) {
  tide_options options;
  tide_host *host;
  proxy_hooks hooks = {.begin = on_begin, .end = on_end};
  proxy *proxy;
  int epoll = epoll_create1(EPOLL_CLOEXEC), rc;
  tide_options_init(&options);
  options.name = "edge-proxy";
  options.flags = TIDE_SIGNALS | TIDE_LOG_STDERR | TIDE_INTERRUPT;
  rc = tide_new(&host, &options);
  if (rc != 0 || epoll < 0) {
    fprintf(stderr, "edge-proxy: %s\n",
            rc != 0 ? tide_strerror(rc) : strerror(errno));
    return 1;
  }
  hooks.arg = host;
  proxy = proxy_new(epoll, &hooks);
  rc = proxy == NULL ? TIDE_EINVAL
                     : set_up(host, proxy, argc > 1 ? argv[1] : "app.lua");
  if (rc == 0)
    rc = run(host, proxy, epoll);
  if (rc < 0)
    fprintf(stderr, "edge-proxy: %s: %s\n", tide_strerror(rc),
            tide_last_error(host));
  if (proxy != NULL)
    proxy_free(proxy);
  tide_free(host);
  close(epoll);
  return rc < 0 ? 1 : rc;
}
