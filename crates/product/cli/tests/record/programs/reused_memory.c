/* Memory that was freed and that the C library allocates again, out of sight. */
#define _GNU_SOURCE
#include <dirent.h>
#include <glob.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCKS = 64 };
static int letters_of[2];

// Leaves free blocks of every size behind, all of which were used.
static void leave_blocks(void) {
    volatile char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) {
        size_t size = i < 48 ? 16 * (i % 12 + 1) : 2048 * (i - 47);
        blocks[i] = malloc(size);
        for (size_t byte = 0; byte < size; byte += 8) blocks[i][byte] = 'x';
    }
    for (int i = 0; i < BLOCKS; i++) free((void *)blocks[i]);
}

static int count(const char *text) {
    int letters = 0;
    while (*text) letters += *text++ > ' ';
    return letters;
}

static int is_shown(const struct dirent *entry) { return entry->d_name[0] != '.'; }

static void *work(void *sum) {
    int letters = 0;
    leave_blocks();
    DIR *folder = opendir("/proc/self");
    for (struct dirent *entry; (entry = readdir(folder));) letters += count(entry->d_name) & 1;
    closedir(folder);

    leave_blocks();
    FILE *file = fopen("/proc/self/maps", "r");
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, file) > 0) letters += count(line) & 1;
    fclose(file);
    free(line);

    leave_blocks();
    char *text, *copy = strdup("a copy"), *path = realpath("/", NULL), *here = getcwd(NULL, 0);
    asprintf(&text, "%s %s %s", copy, path, here);
    letters += count(text) & 1;
    letters += count(copy) + count(path) + count(here);
    free(text), free(copy), free(path), free(here);

    leave_blocks();
    file = open_memstream(&text, &size);
    for (int number = 0; number < 300; number++) fprintf(file, "%d ", number);
    fclose(file);
    letters += count(text) & 1;
    free(text);

    leave_blocks();
    struct dirent **entries;
    int found = scandir("/proc/self", &entries, is_shown, alphasort);
    for (int entry = 0; entry < found; entry++) {
        letters += count(entries[entry]->d_name) & 1;
        free(entries[entry]);
    }
    free(entries);

    leave_blocks();
    glob_t paths;
    glob("/*", 0, NULL, &paths);
    for (size_t path = 0; path < paths.gl_pathc; path++) letters += count(paths.gl_pathv[path]) & 1;
    globfree(&paths);

    leave_blocks();
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *hosts;
    if (!getaddrinfo("127.0.0.1", NULL, &hints, &hosts)) {
        for (struct addrinfo *host = hosts; host; host = host->ai_next) letters += host->ai_socktype;
        freeaddrinfo(hosts);
    }
    *(int *)sum = letters;
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &letters_of[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    puts("done");
    return 0;
}
