// Mutexes, conditions and threads that are misused. The first argument says how; with a second one, "right",
// they are not.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_right, data;

static void *release(void *unused) {
    data = 1;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void *use(void *unused) {
    pthread_mutex_lock(&mutex);
    data++;
    pthread_mutex_unlock(&mutex);
    return unused;
}

static void release_free(void) {
    if (is_right) pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

// The lock is handed over: what the one did comes before what the other does, though it must not be so.
static void release_of_other(void) {
    pthread_t thread;
    pthread_mutex_lock(&mutex);
    if (is_right) pthread_mutex_unlock(&mutex);
    pthread_create(&thread, NULL, is_right ? use : release, NULL);
    pthread_mutex_lock(&mutex);
    data = 2;
    pthread_mutex_unlock(&mutex);
    pthread_join(thread, NULL);
}

static void destroy_held(void) {
    pthread_mutex_t other;
    pthread_mutex_init(&other, NULL);
    pthread_mutex_lock(&other);
    if (is_right) pthread_mutex_unlock(&other);
    pthread_mutex_destroy(&other);
}

static void wait_without(void) {
    struct timespec until = {1, 0};
    if (is_right) pthread_mutex_lock(&mutex);
    pthread_cond_timedwait(&condition, &mutex, &until);
    if (is_right) pthread_mutex_unlock(&mutex);
}

static void leak(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, use, NULL);
    struct timespec moment = {0, 50000000};
    nanosleep(&moment, NULL);
    if (is_right) pthread_detach(thread);
}

// Memory that two threads free.
static void *give_back(void *block) {
    free(block);
    return NULL;
}

static void free_twice(void) {
    pthread_t thread;
    void *block = malloc(100);
    pthread_create(&thread, NULL, give_back, block);
    pthread_join(thread, NULL);
    if (!is_right) free(block);
}

// A mutex that is locked after it was destroyed, and a file that is written to after it was closed.
static pthread_mutex_t own;
static int file;

static void *destroy(void *unused) {
    pthread_mutex_destroy(&own);
    return unused;
}

static void *shut(void *unused) {
    close(file);
    return unused;
}

static void use_ended(void *(*end)(void *), void (*use)(void)) {
    pthread_t thread;
    pthread_mutex_init(&own, NULL);
    file = open("/dev/null", O_WRONLY);
    use();
    pthread_create(&thread, NULL, end, NULL);
    pthread_join(thread, NULL);
    if (!is_right) use();
}

static void lock_own(void) {
    pthread_mutex_lock(&own);
    pthread_mutex_unlock(&own);
}

static void write_file(void) { write(file, "x", 1); }

// A handler that prints.
static atomic_int is_handled;

static void handle(int signal) {
    if (!is_right) puts("signal");
    is_handled = 1;
}

static void *interrupt(void *thread) {
    pthread_kill(*(pthread_t *)thread, SIGUSR1);
    return NULL;
}

static void interrupted(void) {
    pthread_t thread, self = pthread_self();
    signal(SIGUSR1, handle);
    pthread_create(&thread, NULL, interrupt, &self);
    while (!is_handled) data++;
    pthread_join(thread, NULL);
}

// Memory that is read after it was freed.
static void free_early(void) {
    pthread_t thread;
    volatile char *block = malloc(100);
    block[50] = 1;
    if (is_right) data += block[50];
    pthread_create(&thread, NULL, give_back, (void *)block);
    pthread_join(thread, NULL);
    if (!is_right) data += block[50];
}

// It may, if the program waits for the signal, or sends it to itself.
static void handle_awaited(int signal) { puts("signal"); }

static void awaited(void) {
    sigset_t signals;
    signal(SIGUSR1, handle_awaited);
    raise(SIGUSR1);
    pthread_kill(pthread_self(), SIGUSR1);
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    kill(getpid(), SIGUSR1);
    pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
}

// A thread that is joined or detached, and joined or detached again or used.
static pthread_t worker;

static void *join_worker(void *unused) {
    pthread_join(worker, NULL);
    return unused;
}

static void *works(void *unused) {
    usleep(20000);
    return use(unused);
}

static void release_twice(void (*first)(void), void (*second)(void)) {
    pthread_create(&worker, NULL, works, NULL);
    first();
    if (!is_right) second();
}

static void join(void) { join_worker(NULL); }
static void detach(void) { pthread_detach(worker); }
static void signal_worker(void) { pthread_kill(worker, 0); }

static void join_in_other(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, join_worker, NULL);
    pthread_join(thread, NULL);
}

int main(int count, char **words) {
    is_right = count > 2;
    if (!strcmp(words[1], "free")) release_free();
    if (!strcmp(words[1], "other")) release_of_other();
    if (!strcmp(words[1], "destroy")) destroy_held();
    if (!strcmp(words[1], "wait")) wait_without();
    if (!strcmp(words[1], "leak")) leak();
    if (!strcmp(words[1], "twice")) free_twice();
    if (!strcmp(words[1], "early")) free_early();
    if (!strcmp(words[1], "destroyed")) use_ended(destroy, lock_own);
    if (!strcmp(words[1], "closed")) use_ended(shut, write_file);
    if (!strcmp(words[1], "handler")) is_right ? awaited(), interrupted() : interrupted();
    if (!strcmp(words[1], "joined")) release_twice(join_in_other, join);
    if (!strcmp(words[1], "rejoined")) release_twice(join, join);
    if (!strcmp(words[1], "redetached")) release_twice(detach, detach);
    if (!strcmp(words[1], "joined_detached")) release_twice(detach, join);
    if (!strcmp(words[1], "detached_joined")) release_twice(join, detach);
    if (!strcmp(words[1], "signalled")) release_twice(join, signal_worker);
    puts("done");
    return 0;
}
