/* digest.c: `moontide.core.digest`: what tells requests and jobs apart. Opened
 * by the first require. */
#include "../sha256.h"
#include "lua.h"

static void push_hex(lua_State *L, const unsigned char *bytes, size_t count) {
  static const char digits[] = "0123456789abcdef";
  luaL_Buffer b;
  char *out = luaL_buffinitsize(L, &b, count * 2);
  for (size_t i = 0; i < count; i++) {
    out[i * 2] = digits[bytes[i] >> 4];
    out[i * 2 + 1] = digits[bytes[i] & 15];
  }
  luaL_pushresultsize(&b, count * 2);
}

/* digest.sha256(part, ...) -> hex. Each part counts with its length, so that
 * ("ab", "c") and ("a", "bc") differ; one part alone is hashed as it is. */
static int sha256(lua_State *L) {
  unsigned char out[TIDE_SHA256_BYTES];
  tide_sha256 sha;
  int count = lua_gettop(L);
  tide_sha256_init(&sha);
  for (int i = 1; i <= count; i++) {
    size_t length;
    const char *part = luaL_checklstring(L, i, &length);
    uint64_t prefix = length;
    if (count > 1)
      tide_sha256_add(&sha, &prefix, sizeof prefix);
    tide_sha256_add(&sha, part, length);
  }
  tide_sha256_end(&sha, out);
  push_hex(L, out, sizeof out);
  return 1;
}

/* digest.random_id() -> 32 hex digits that nobody can guess */
static int random_id(lua_State *L) {
  unsigned char bytes[16];
  int rc = uv_random(NULL, NULL, bytes, sizeof bytes, 0, NULL);
  if (rc != 0)
    return luaL_error(L, "no random bytes: %s", uv_strerror(rc));
  push_hex(L, bytes, sizeof bytes);
  return 1;
}

int tide_lua_open_digest(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"sha256", sha256},
      {"random_id", random_id},
      {NULL, NULL},
  };
  tide_lua_newlib(L, functions);
  return 1;
}
