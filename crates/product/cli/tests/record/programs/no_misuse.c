/* What looks like misuse, or like a race, and is none. The argument says what. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 120 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char *block;
static long sum;

/* A stream of `count` short lines. */
static FILE *lines(int count) {
    int ends[2];
    if (pipe(ends)) abort();
    for (int i = 0; i < count; i++)
        if (write(ends[1], "a line\n", 7) != 7) abort();
    close(ends[1]);
    return fdopen(ends[0], "r");
}

/* What a thread freed, and kept for itself until it ended, the C library allocates again. */
static void *free_block(void *unused) {
    free(block);
    return unused;
}

static void cached(void) {
    pthread_t thread;
    block = malloc(BLOCK);
    block[0] = 1;
    pthread_create(&thread, NULL, free_block, NULL);
    pthread_join(thread, NULL);
    FILE *file = lines(1);
    char *line = NULL;
    size_t size = 0;
    if (getline(&line, &size, file) > 0) sum += line[0];
    free(line);
    fclose(file);
}

/* What a thread freed itself the C library allocates for it again, while others come out of waits for a lock. */
static void *take_lock(void *unused) {
    for (int i = 0; i < 60; i++) {
        pthread_mutex_lock(&mutex);
        sum++;
        usleep(100);
        pthread_mutex_unlock(&mutex);
    }
    return unused;
}

static void *read_lines(void *file) {
    long letters = 0;
    for (int i = 0; i < 60; i++) {
        char *freed = malloc(BLOCK);
        memset(freed, i, BLOCK);
        letters += freed[i];
        free(freed);
        char *line = NULL;
        size_t size = 0;
        if (getline(&line, &size, file) > 0)
            for (const char *at = line; *at; at++) letters += *at;
        free(line);
    }
    return (void *)letters;
}

static void contended(void) {
    FILE *file = lines(60);
    pthread_t threads[3];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, take_lock, NULL);
    pthread_create(&threads[2], NULL, read_lines, file);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    fclose(file);
}

/* A thread that writes where nobody reads gets the signal from that very call, which is safe to interrupt. */
static void on_pipe(int number) { printf("signal %d\n", number); }

static void by_writing(void) {
    int ends[2];
    if (pipe(ends)) abort();
    close(ends[0]);
    signal(SIGPIPE, on_pipe);
    sum += write(ends[1], "x", 1) == -1;
}

/* A mutex that checks refuses to be waited with by who does not hold it. */
static void checked(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_t checking;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_mutex_init(&checking, &kind);
    sum += pthread_cond_wait(&condition, &checking) == EPERM;
    pthread_mutex_destroy(&checking);
}

/* Who ends the process leaves nobody the time to join. */
static void *end_process(void *unused) {
    usleep(50000);
    puts("done");
    exit(0);
    return unused;
}

static void ended(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, take_lock, NULL);
    pthread_create(&threads[1], NULL, end_process, NULL);
    pthread_join(threads[1], NULL);
    pthread_join(threads[0], NULL);
}

/* The C library calls what a stream of the program's own leads to while it holds the lock of the stream. */
static ssize_t count_bytes(void *unused, const char *bytes, size_t length) {
    (void)unused, (void)bytes;
    sum += length;
    return length;
}

static FILE *counter;

static void *print(void *unused) {
    for (int i = 0; i < 3; i++) {
        fputs("text", counter);
        fprintf(counter, "%d", i);
    }
    return unused;
}

static void cookie(void) {
    pthread_t threads[2];
    counter = fopencookie(NULL, "w", (cookie_io_functions_t){.write = count_bytes});
    setvbuf(counter, NULL, _IONBF, 0);
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, print, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    fclose(counter);
}

/* A handle of a thread that was joined is given to the next; one that is detached still runs; a join may not wait. */
static void *works(void *unused) {
    usleep(20000);
    return unused;
}

static void handles(void) {
    pthread_t thread, other;
    for (int i = 0; i < 6; i++) {
        pthread_create(&thread, NULL, works, NULL);
        if (i % 2) pthread_kill(thread, 0);
        if (i == 2) {
            struct timespec until = {0, 0};
            sum += pthread_tryjoin_np(thread, NULL) == EBUSY;
            sum += pthread_timedjoin_np(thread, NULL, &until) == ETIMEDOUT;
        }
        pthread_join(thread, NULL);
    }
    pthread_create(&other, NULL, works, NULL);
    pthread_detach(other);
    pthread_create(&thread, NULL, works, NULL);
    sum += pthread_join(pthread_self(), NULL);
    pthread_join(thread, NULL);
    usleep(20000);
}

int main(int count, char **words) {
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"cached", cached}, {"contended", contended}, {"by_writing", by_writing}, {"checked", checked},
               {"ended", ended}, {"cookie", cookie}, {"handles", handles}};
    for (unsigned i = 0; count > 1 && i < sizeof all / sizeof *all; i++)
        if (!strcmp(words[1], all[i].name)) all[i].run();
    puts("done");
    return 0;
}
