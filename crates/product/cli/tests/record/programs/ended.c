// What one thread ends and another can still use: thread-local variables, folders, timers, streams in memory, libraries.
// The first argument says what; with a second one, "safe", the end waits for the last use, in one of several ways.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const char *safe;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static int is_done;
static atomic_int users = 2, is_stored;

static void signal_done(void) {
    pthread_mutex_lock(&mutex);
    is_done = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
}

static void await_done(void) {
    pthread_mutex_lock(&mutex);
    while (!is_done) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
}

static DIR *folder;
static timer_t timer;
static FILE *stream;
static char *text, *pages;
static size_t length;
static void *library;
static int (*add)(int);
static int *sum;

static void read_folder(void) { readdir(folder); }
static void close_folder(void) { closedir(folder); }
static void set_timer(void) {
    struct itimerspec never = {{0, 0}, {0, 0}};
    timer_settime(timer, 0, &never, NULL);
}
static void ask_timer(void) {
    struct itimerspec left;
    timer_gettime(timer, &left);
}
static void delete_timer(void) { timer_delete(timer); }
static void print(void) { fputs("x", stream); }
static void close_stream(void) { fclose(stream); }
static void use_pages(void) { pages[5000] = 1; }
static void unmap_pages(void) { munmap(pages, 8192); }
static void look_up(void) { dlsym(library, "plugin_sum"); }
static void call(void) { add(3); }
static void change(void) { *sum += 1; }
static void unload(void) { dlclose(library); }

static void (*use)(void), (*end)(void);

static void *uses(void *unused) {
    use();
    if (safe && !strcmp(safe, "flag")) atomic_store(&is_stored, 1);
    if (safe && !strcmp(safe, "count") && atomic_fetch_sub(&users, 1) == 1) end();
    signal_done();
    return unused;
}

static void *ends(void *unused) {
    if (!safe) usleep(30000);
    if (safe && !strcmp(safe, "wait")) await_done();
    if (safe && !strcmp(safe, "flag")) {
        while (!atomic_load(&is_stored)) usleep(100);
    }
    if (safe && !strcmp(safe, "count") && atomic_fetch_sub(&users, 1) != 1) return unused;
    end();
    return unused;
}

// A variable of a thread, or of the function that it began with.
static _Thread_local long own;
static long *published;

static void *lend(long *variable) {
    pthread_mutex_lock(&mutex);
    published = variable;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&mutex);
    if (safe) await_done();
    else usleep(30000);
    return NULL;
}

static void *lends_own(void *unused) {
    own = 1;
    return lend(&own);
}

static void *lends_local(void *unused) {
    long local = 1;
    return lend(&local);
}

static void *borrows(void *unused) {
    pthread_mutex_lock(&mutex);
    while (!published) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    *published += 1;
    signal_done();
    return unused;
}

static void start(void *(*first)(void *), void *(*second)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, first, NULL);
    if (safe && !strcmp(safe, "join")) pthread_join(threads[0], NULL);
    pthread_create(&threads[1], NULL, second, NULL);
    if (!safe || strcmp(safe, "join")) pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

// Each thread opens the library by itself, and the last one unloads it; or it is loaded again, at the same place.
static void *opens(void *unused) {
    void *mine = dlopen("./plugin.so", RTLD_NOW);
    int (*mine_add)(int) = (int (*)(int))dlsym(mine, "plugin_add");
    pthread_mutex_lock(&mutex);
    mine_add(1);
    pthread_mutex_unlock(&mutex);
    usleep(10000);
    dlclose(mine);
    return unused;
}

static void load(void) {
    library = dlopen("./plugin.so", RTLD_NOW);
    add = (int (*)(int))dlsym(library, "plugin_add");
    sum = (int *)dlsym(library, "plugin_sum");
}

int main(int count, char **words) {
    const char *what = words[1];
    safe = count > 2 ? words[2] : NULL;
    if (!strcmp(what, "own") || !strcmp(what, "local")) {
        start(!strcmp(what, "own") ? lends_own : lends_local, borrows);
        return 0;
    }
    if (!strcmp(what, "opened")) {
        start(opens, opens);
        safe = "join";
        start(opens, opens);
        return 0;
    }
    if (!strcmp(what, "pages")) {
        pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        use = use_pages, end = unmap_pages;
    }
    if (!strcmp(what, "folder")) folder = opendir("."), use = read_folder, end = close_folder;
    if (!strncmp(what, "timer", 5)) {
        struct sigevent event = {0};
        event.sigev_notify = SIGEV_NONE;
        timer_create(CLOCK_MONOTONIC, &event, &timer);
        use = strcmp(what, "timer") ? ask_timer : set_timer, end = delete_timer;
    }
    if (!strcmp(what, "stream")) stream = open_memstream(&text, &length), use = print, end = close_stream;
    if (!strncmp(what, "plugin", 6)) {
        load();
        end = unload;
        if (!strcmp(what, "plugin_symbol")) use = look_up;
        if (!strcmp(what, "plugin_code")) use = call;
        if (!strcmp(what, "plugin_data")) use = change;
    }
    start(uses, ends);
    return 0;
}
