// Threads with names: two have the same one, one is renamed twice, one has the program's own.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static long total, seen;
static pthread_barrier_t named;

static void *reads(void *unused) {
    pthread_barrier_wait(&named);
    seen += total;
    return unused;
}

static void *writes(void *unused) {
    prctl(PR_SET_NAME, "starting");
    prctl(PR_SET_NAME, "writer\n\x1b[31m\xc3\xb6\xff");
    pthread_barrier_wait(&named);
    total++;
    return unused;
}

static void *inherits(void *unused) {
    prctl(PR_SET_NAME, "thread_names");
    pthread_barrier_wait(&named);
    total++;
    return unused;
}

static void run(void) {
    pthread_t threads[4];
    pthread_barrier_init(&named, 0, 5);
    pthread_create(&threads[0], 0, reads, 0);
    pthread_create(&threads[1], 0, reads, 0);
    pthread_create(&threads[2], 0, writes, 0);
    pthread_create(&threads[3], 0, inherits, 0);
    pthread_setname_np(threads[0], "reader");
    pthread_setname_np(threads[1], "reader");
    // Longer than what the kernel keeps: an error, and no name.
    if (pthread_setname_np(threads[1], "a name of more than 15 bytes") == 0) {
        puts("a long name");
    }
    pthread_barrier_wait(&named);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], 0);
    }
    pthread_setname_np(pthread_self(), "boss");
}

int main(int count, char **words) {
    int status = 0;
    if (count > 1 && strcmp(words[1], "child") == 0) {
        if (fork() == 0) {
            run();
            _exit(0);
        }
        wait(&status);
        return status;
    }
    run();
    return 0;
}
