#include "init.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPTION "--init"

const char *tide_init_mode(int argc, char **argv) {
  size_t length = strlen(OPTION);

  for (int i = 1; i < argc; i++) {
    const char *word = argv[i];
    if (strcmp(word, "--") == 0)
      break;
    if (strcmp(word, OPTION) == 0)
      return i + 1 < argc ? argv[i + 1] : "auto";
    if (strncmp(word, OPTION "=", length + 1) == 0)
      return word + length + 1;
    /* The script's path: what follows is the script's. */
    size_t end = strlen(word);
    if (word[0] != '-' && end > 4 && strcmp(word + end - 4, ".lua") == 0)
      break;
  }
  return "auto";
}

/* Signals that say something of the process that they hit: they keep their
 * effect on the init itself. */
static void remove_faults(sigset_t *set) {
  static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL,
                               SIGTRAP, SIGSYS, SIGABRT};

  for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
    sigdelset(set, faults[i]);
}

/* ---- the child --------------------------------------------------------------
 */

/* The service manager addressed them to the init, whose place we take. */
static void readdress(const char *variable, pid_t init) {
  const char *value = getenv(variable);
  char pid[16];

  if (value == NULL || strtol(value, NULL, 10) != init)
    return;
  snprintf(pid, sizeof pid, "%d", (int)getpid());
  setenv(variable, pid, 1);
}

/* A process group of its own, in the terminal's foreground if the init was
 * there: a Ctrl-C reaches the program once, not a second time forwarded. */
static void leave_group(void) {
  bool foreground = tcgetpgrp(STDIN_FILENO) == getpgrp();

  if (setpgid(0, 0) == 0 && foreground)
    tcsetpgrp(STDIN_FILENO, getpid()); /* SIGTTOU is blocked here */
}

static void become_program(pid_t init, const sigset_t *mask) {
  /* Who kills the init has no more patience with the program either. */
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != init)
    _exit(128 + SIGKILL); /* it died before the line above */
  leave_group();
  readdress("LISTEN_PID", init);
  readdress("WATCHDOG_PID", init);
  sigprocmask(SIG_SETMASK, mask, NULL);
}

/* ---- the init
 * ---------------------------------------------------------------- */

/* Sends it on as if it came from the original sender, so that the program's log
 * names that one. */
static void forward(pid_t program, const siginfo_t *info) {
  siginfo_t copy;

  if (info->si_signo == SIGTTIN || info->si_signo == SIGTTOU)
    return;
  memset(&copy, 0, sizeof copy);
  copy.si_signo = info->si_signo;
  copy.si_code = SI_QUEUE; /* the one code that may carry another's pid */
  if (info->si_code <= 0) {
    copy.si_pid = info->si_pid;
    copy.si_uid = info->si_uid;
    copy.si_value = info->si_value;
  }
  if (syscall(SYS_rt_sigqueueinfo, program, info->si_signo, &copy) != 0)
    kill(program, info->si_signo);
}

/* Reaps all that is dead. Returns true, with its status, when the program is
 * among them. */
static bool reap(pid_t program, int *program_status) {
  bool ended = false;
  int status;
  pid_t pid;

  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid == program) {
      *program_status = status;
      ended = true;
    }
  }
  return ended;
}

/* The program's listeners and pipes must not be held open by the init. */
static void close_files(void) {
  if (syscall(SYS_close_range, 3u, ~0u, 0u) == 0)
    return;
  for (int fd = 3; fd < (int)sysconf(_SC_OPEN_MAX) && fd < 65536; fd++)
    close(fd);
}

static _Noreturn void be_init(pid_t program, const sigset_t *signals) {
  int status = 0;

  close_files();
  /* A program that ended before this point left a pending SIGCHLD. */
  do {
    siginfo_t info;
    int number = sigwaitinfo(signals, &info);
    if (number > 0 && number != SIGCHLD)
      forward(program, &info);
  } while (!reap(program, &status));
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int tide_init_maybe(const char *mode) {
  pid_t init = getpid();
  sigset_t signals, before;

  if (strcmp(mode, "off") == 0 || (strcmp(mode, "on") != 0 && init != 1))
    return 0;
  /* Elsewhere than in PID 1, orphans have to be asked for. */
  if (init != 1)
    prctl(PR_SET_CHILD_SUBREAPER, 1);
  /* Blocked signals wait, also for PID 1; so none is lost around the fork. */
  sigfillset(&signals);
  remove_faults(&signals);
  sigprocmask(SIG_SETMASK, &signals, &before);
  /* An ignored SIGCHLD would make the kernel reap in our place. */
  signal(SIGCHLD, SIG_DFL);
  pid_t program = fork();
  if (program < 0) {
    int err = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    return -err;
  }
  if (program > 0)
    be_init(program, &signals);
  become_program(init, &before);
  return 0;
}
