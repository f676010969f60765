// A library that is not rebuilt, with locks and threads of its own.
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <string.h>

// A lock by object, and one that is the library's own.
void own_lock(int *lock) {
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE)) sched_yield();
}

void own_unlock(int *lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

static int all;

void global_lock(void) {
    own_lock(&all);
}

void global_unlock(void) {
    own_unlock(&all);
}

// What one object hands to another.
static void *box;

void box_put(void *thing) {
    __atomic_store_n(&box, thing, __ATOMIC_SEQ_CST);
}

void *box_get(int *tries) {
    void *thing;
    while (!(thing = __atomic_load_n(&box, __ATOMIC_SEQ_CST))) {
        ++*tries;
        sched_yield();
    }
    return thing;
}

// A pool of one thread.
static struct {
    void (*run)(void *);
    void *argument;
    int state;
} job;

static pthread_t worker;

static void *work(void *nothing) {
    for (;;) {
        int state = __atomic_load_n(&job.state, __ATOMIC_ACQUIRE);
        if (state == 2) return nothing;
        if (state == 1) {
            job.run(job.argument);
            __atomic_store_n(&job.state, 0, __ATOMIC_RELEASE);
        }
        sched_yield();
    }
}

void pool_start(void) {
    pthread_create(&worker, 0, work, 0);
}

void pool_submit(void (*run)(void *), void *argument) {
    job.run = run;
    job.argument = argument;
    __atomic_store_n(&job.state, 1, __ATOMIC_RELEASE);
}

void pool_wait(void) {
    while (__atomic_load_n(&job.state, __ATOMIC_ACQUIRE)) sched_yield();
}

void pool_end(void) {
    __atomic_store_n(&job.state, 2, __ATOMIC_RELEASE);
    pthread_join(worker, 0);
}

// Waits for what the program does to its own word, whose address it was given before.
static const int *word;

void remember(const int *given) {
    word = given;
}

void wait_until_zero(void) {
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE)) sched_yield();
}

// Calls back, then waits for its lock, then returns.
void call_locked(int *lock, void (*run)(void *), void *argument) {
    run(argument);
    own_lock(lock);
}

// Memory that only the library has.
char kept_text[64];

void keep(const char *text) {
    global_lock();
    memcpy(kept_text, text, strlen(text) + 1);
    global_unlock();
}

// What calls must leave as it is.
void as_default(void) {}

int is_default(void (*function)(void)) {
    return function == as_default;
}

double mix(int count, ...) {
    va_list rest;
    double sum = 0;
    va_start(rest, count);
    for (int at = 0; at < count; at++) sum += va_arg(rest, int) * va_arg(rest, double);
    va_end(rest);
    return sum;
}

struct large { long words[5]; };

struct large many(long a, double b, long c, long d, long e, long f, long g, float h, long i) {
    struct large result = {{a + (long)b, c + d, e + f, g + (long)h, i}};
    return result;
}
