/* edit.c: `moontide.core.edit`: a line that is edited while other things
 * happen.
 *
 * libedit asks for each key by a function of ours, which asks Lua; that one
 * waits for the keyboard and for whatever else it likes, may show something
 * above the line, or end the editing. An error of Lua's must not jump over
 * libedit's frames: it is kept until el_gets has returned.
 */
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lua/lua.h"
#include "edit_lib.h"
#include "modules.h"

#define EDITOR "moontide.edit"

/* Where what `read` was given is on the stack, and an error of Lua's. */
enum { SELF = 1, PROMPT, KEY, COMPLETE, ERROR };

/* The library, from the first `open` on. */
static const tide_edit_lib *lib;

typedef struct editor {
  EditLine *el;
  History *history;
  lua_State *L;       /* while a line is read */
  const char *prompt; /* the same */
  bool failed;        /* Lua has raised an error */
  bool left;          /* Lua has ended the editing */
} editor;

static editor *check_editor(lua_State *L) {
  editor *e = luaL_checkudata(L, SELF, EDITOR);
  luaL_argcheck(L, e->el != NULL, SELF, "the editor is closed");
  return e;
}

static editor *editor_of(EditLine *el) {
  editor *e = NULL;
  lib->el_get(el, EL_CLIENTDATA, &e);
  return e;
}

/* Calls what is on the stack; false: it has raised, which `read` will. */
static bool call(editor *e, int nargs, int nresults) {
  if (lua_pcall(e->L, nargs, nresults, 0) == LUA_OK)
    return true;
  lua_replace(e->L, ERROR);
  e->failed = true;
  return false;
}

/* ---- where the cursor is ---------------------------------------------------
 */

typedef struct place {
  size_t row, column;
} place;

/* How far a character takes the cursor; libedit writes a control character as
 * ^X and a tab as spaces. */
static void advance(place *at, wchar_t c, size_t columns) {
  int width = wcwidth(c);
  if (c == L'\n') {
    *at = (place){at->row + 1, 0};
    return;
  }
  at->column += c == L'\t' ? 8 - at->column % 8 : width < 0 ? 2 : (size_t)width;
  if (at->column >= columns) {
    at->row++;
    at->column -= columns;
  }
}

static void walk(place *at, const char *text, size_t length, size_t columns) {
  mbstate_t state = {0};
  bool hidden = false;
  while (length > 0) {
    wchar_t c;
    size_t used = mbrtowc(&c, text, length, &state);
    if (used == 0 || used > length)
      return; /* no text of this locale: libedit has not taken it either */
    text += used;
    length -= used;
    if (c == L'\1') /* around what the prompt has no width for */
      hidden = !hidden;
    else if (!hidden)
      advance(at, c, columns);
  }
}

static size_t columns_of(const editor *e) {
  int columns = 0;
  if (lib->el_get(e->el, EL_GETTC, "co", &columns, NULL) != 0 || columns < 1)
    return 80;
  return (size_t)columns;
}

/* The rows that the prompt and the line take: the cursor's, and the last. */
static void rows(const editor *e, size_t *cursor, size_t *last) {
  const LineInfo *line = lib->el_line(e->el);
  size_t columns = columns_of(e);
  place at = {0, 0};
  walk(&at, e->prompt, strlen(e->prompt), columns);
  walk(&at, line->buffer, (size_t)(line->cursor - line->buffer), columns);
  *cursor = at.row;
  walk(&at, line->cursor, (size_t)(line->lastchar - line->cursor), columns);
  *last = at.row;
}

/* ---- called by libedit -----------------------------------------------------
 */

static char *prompt_of(EditLine *el) {
  editor *e = editor_of(el);
  return (char *)(uintptr_t)(e->prompt != NULL ? e->prompt : "");
}

/* key() -> a character | nil: the line is left */
static int get_key(EditLine *el, wchar_t *c) {
  editor *e = editor_of(el);
  lua_pushvalue(e->L, KEY);
  if (!call(e, 0, 1))
    return -1;
  e->left = !lua_isinteger(e->L, -1);
  *c = (wchar_t)lua_tointeger(e->L, -1);
  lua_pop(e->L, 1);
  return e->left ? -1 : 1;
}

/* complete(line, cursor) -> characters to take back, text to put there | nil */
static unsigned char complete(EditLine *el, int key) {
  editor *e = editor_of(el);
  const LineInfo *line = lib->el_line(el);
  (void)key;
  lua_pushvalue(e->L, COMPLETE);
  lua_pushlstring(e->L, line->buffer, (size_t)(line->lastchar - line->buffer));
  lua_pushinteger(e->L, line->cursor - line->buffer);
  if (!call(e, 2, 2))
    return CC_FATAL;
  bool found = lua_isinteger(e->L, -2) && lua_isstring(e->L, -1);
  if (found) {
    lib->el_deletestr(el, (int)lua_tointeger(e->L, -2));
    found = lib->el_insertstr(el, lua_tostring(e->L, -1)) == 0;
  }
  lua_pop(e->L, 2);
  return found ? CC_REFRESH : CC_REFRESH_BEEP;
}

/* ---- methods ---------------------------------------------------------------
 */

/* The cursor, below the line, where a program may go on writing. */
static void go_below(const editor *e) {
  size_t cursor, last;
  rows(e, &cursor, &last);
  for (size_t i = cursor; i < last; i++)
    fputc('\n', stdout);
  fputs("\r\n", stdout);
  fflush(stdout);
}

/* edit:read(prompt, key, complete) -> line | nil, whether that is Ctrl-D: else
 * it was left, or the terminal has gone */
static int read_line(lua_State *L) {
  editor *e = check_editor(L);
  int count = 0;
  luaL_checkstring(L, PROMPT);
  luaL_checktype(L, KEY, LUA_TFUNCTION);
  luaL_checktype(L, COMPLETE, LUA_TFUNCTION);
  lua_settop(L, COMPLETE);
  lua_pushnil(L); /* ERROR */
  luaL_argcheck(L, e->L == NULL, SELF, "a line is being read already");
  e->L = L;
  e->prompt = lua_tostring(L, PROMPT);
  e->failed = e->left = false;
  const char *line = lib->el_gets(e->el, &count);
  if (line == NULL || count <= 0)
    go_below(e);
  e->L = NULL;
  if (e->failed) {
    lua_settop(L, ERROR);
    return lua_error(L);
  }
  if (line == NULL || count <= 0) {
    lua_pushnil(L);
    lua_pushboolean(L, count == 0);
    return 2;
  }
  lua_pushlstring(L, line, (size_t)count - (line[count - 1] == '\n'));
  return 1;
}

/* edit:line() -> text, bytes before the cursor; while a line is read */
static int current_line(lua_State *L) {
  editor *e = check_editor(L);
  const LineInfo *line = lib->el_line(e->el);
  lua_pushlstring(L, line->buffer, (size_t)(line->lastchar - line->buffer));
  lua_pushinteger(L, line->cursor - line->buffer);
  return 2;
}

/* edit:above(text): shows a text above the line that is read. The text ends
 * with a newline; "" draws the line again. */
static int above(lua_State *L) {
  editor *e = check_editor(L);
  size_t cursor, last;
  size_t length;
  const char *text = luaL_checklstring(L, 2, &length);
  rows(e, &cursor, &last);
  if (cursor > 0)
    fprintf(stdout, "\033[%zuA", cursor);
  fputs("\r\033[J", stdout);
  for (size_t i = 0; i < length; i++) { /* the terminal is raw meanwhile */
    if (text[i] == '\n')
      fputc('\r', stdout);
    fputc(text[i], stdout);
  }
  fflush(stdout);
  lib->el_set(e->el, EL_REFRESH);
  return 0;
}

/* edit:resize(): the terminal has another size */
static int resize(lua_State *L) {
  editor *e = check_editor(L);
  lib->el_resize(e->el);
  return 0;
}

/* edit:terminal(on): gives the terminal back for a while, and takes it again */
static int terminal(lua_State *L) {
  editor *e = check_editor(L);
  lib->el_set(e->el, EL_PREP_TERM, lua_toboolean(L, 2));
  return 0;
}

/* edit:remember(line): into the history */
static int remember(lua_State *L) {
  editor *e = check_editor(L);
  HistEvent event;
  lib->history(e->history, &event, H_ENTER, luaL_checkstring(L, 2));
  return 0;
}

static int close_editor(lua_State *L) {
  editor *e = luaL_checkudata(L, SELF, EDITOR);
  if (e->el != NULL)
    lib->el_end(e->el);
  if (e->history != NULL)
    lib->history_end(e->history);
  e->el = NULL;
  e->history = NULL;
  return 0;
}

static void push_methods(lua_State *L) {
  static const luaL_Reg methods[] = {
      {"read", read_line},     {"line", current_line}, {"above", above},
      {"resize", resize},      {"terminal", terminal}, {"remember", remember},
      {"close", close_editor}, {"__gc", close_editor}, {NULL, NULL},
  };
  if (luaL_newmetatable(L, EDITOR)) {
    luaL_setfuncs(L, methods, 0);
    lua_pushvalue(L, -1);
    lua_setfield(L, -2, "__index");
  }
}

/* ---- opening ---------------------------------------------------------------
 */

/* libedit reads and writes text of the locale, Lua's is UTF-8. */
static void speak_utf8(void) {
  setlocale(LC_CTYPE, "");
  if (strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
    setlocale(LC_CTYPE, "C.UTF-8");
}

/* What terminals send for keys that libedit knows no name for, and what shells
 * have people used to. ~/.editrc comes later and may say otherwise. */
static void bind_keys(editor *e) {
  static const char *const keys[][2] = {
      {"^I", "moontide-complete"},   {"^R", "em-inc-search-prev"},
      {"^W", "ed-delete-prev-word"}, {"\\e[3~", "ed-delete-next-char"},
      {"\\e[H", "ed-move-to-beg"},   {"\\e[1~", "ed-move-to-beg"},
      {"\\e[F", "ed-move-to-end"},   {"\\e[4~", "ed-move-to-end"},
      {"\\e[1;5C", "em-next-word"},  {"\\e[1;5D", "ed-prev-word"},
  };
  /* el_set would make copies of the words that it never frees. */
  lib->el_wset(e->el, EL_ADDFN, L"moontide-complete",
               L"complete names as the process knows them", complete);
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    lib->el_set(e->el, EL_BIND, keys[i][0], keys[i][1], NULL);
}

static bool open_line(editor *e) {
  HistEvent event;
  e->el = lib->el_init("moontide", stdin, stdout, stderr);
  e->history = lib->history_init();
  if (e->el == NULL || e->history == NULL)
    return false;
  lib->history(e->history, &event, H_SETSIZE, 1000);
  lib->history(e->history, &event, H_SETUNIQUE, 1);
  lib->el_set(e->el, EL_CLIENTDATA, e);
  lib->el_set(e->el, EL_PROMPT_ESC, prompt_of, '\1');
  lib->el_set(e->el, EL_HIST, lib->history, e->history);
  lib->el_set(e->el, EL_EDITOR, "emacs");
  lib->el_set(e->el, EL_GETCFN, get_key);
  /* Between lines as well, each key comes as it is: what has been typed ahead
   * as Ctrl-D would else become nothing. */
  lib->el_set(e->el, EL_SETTY, "-x", "-icanon", "-echo", NULL);
  bind_keys(e);
  lib->el_source(e->el, NULL);
  return true;
}

/* edit.open() -> editor | nil, message: there is no libedit */
static int open_editor(lua_State *L) {
  char error[512];
  lib = tide_edit_load(error, sizeof error);
  if (lib == NULL) {
    lua_pushnil(L);
    lua_pushstring(L, error);
    return 2;
  }
  editor *e = lua_newuserdatauv(L, sizeof *e, 0);
  *e = (editor){NULL};
  push_methods(L);
  lua_setmetatable(L, -2);
  speak_utf8();
  if (!open_line(e))
    return luaL_error(L, "libedit has no memory");
  return 1;
}

int tide_lua_open_edit(lua_State *L) {
  static const luaL_Reg functions[] = {{"open", open_editor}, {NULL, NULL}};
  tide_lua_newlib(L, functions);
  return 1;
}
