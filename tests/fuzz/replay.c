/* replay: runs a target over files and folders of inputs, where there is no
 * libFuzzer: the corpus is a test of every build.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replayed;

static void replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  long size = -1;
  if (file != NULL && fseek(file, 0, SEEK_END) == 0)
    size = ftell(file);
  /* Of the exact size, so that a sanitizer sees a read beyond. */
  uint8_t *data = size >= 0 ? malloc((size_t)size + (size == 0)) : NULL;
  if (data == NULL || fseek(file, 0, SEEK_SET) != 0 ||
      fread(data, 1, (size_t)size, file) != (size_t)size) {
    fprintf(stderr, "replay: cannot read %s\n", path);
    exit(1);
  }
  fclose(file);
  fprintf(stderr, "%s\n", path); /* the last one is the one that failed */
  LLVMFuzzerTestOneInput(data, (size_t)size);
  free(data);
  replayed++;
}

static void replay(const char *path) {
  char inner[4096];
  struct stat st;
  if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
    replay_file(path);
    return;
  }
  DIR *folder = opendir(path);
  if (folder == NULL) {
    fprintf(stderr, "replay: no such folder: %s\n", path);
    exit(1);
  }
  for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
    if (e->d_name[0] == '.')
      continue;
    snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
    replay_file(inner);
  }
  closedir(folder);
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    replay(argv[i]);
  printf("%d inputs\n", replayed);
  return replayed > 0 ? 0 : 1;
}
