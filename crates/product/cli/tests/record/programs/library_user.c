// A program that uses libraries which were not rebuilt. The first word says how; nothing races where
// the second does not say so.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void own_lock(int *lock);
void own_unlock(int *lock);
void global_lock(void);
void global_unlock(void);
void box_put(void *thing);
void *box_get(int *tries);
void pool_start(void);
void pool_submit(void (*run)(void *), void *argument);
void pool_wait(void);
void remember(const int *given);
void wait_until_zero(void);
void pool_end(void);
void call_locked(int *lock, void (*run)(void *), void *argument);
void keep(const char *text);
void as_default(void);
int is_default(void (*function)(void));
double mix(int count, ...);
struct large { long words[5]; };
struct large many(long a, double b, long c, long d, long e, long f, long g, float h, long i);
long sum(const int *numbers, int count);

static int lock, shared, thing, racy, forgets;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void *by_object(void *count) {
    for (int time = 0; time < 5; time++) {
        if (!count || !forgets) own_lock(&lock);
        shared++;
        if (!count || !forgets) own_unlock(&lock);
    }
    return count;
}

static void *by_all(void *count) {
    for (int time = 0; time < 5; time++) {
        global_lock();
        shared++;
        global_unlock();
    }
    return count;
}

static void touch(void *place) {
    *(int *)place += 1;
}

#define UNSEEN __attribute__((no_sanitize("thread"), noinline))

static int step;

UNSEEN static void reach(int number) {
    __atomic_store_n(&step, number, __ATOMIC_RELEASE);
}

UNSEEN static void await(int number) {
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) < number) usleep(100);
}

static void meanwhile(void *place) {
    *(int *)place += 1;
    reach(1);
    await(2);
}

// The other section comes after the callback has begun, and before the call is over.
static void *by_callback(void *count) {
    int own = 0;
    call_locked(&lock, meanwhile, &own);
    shared += own;
    own_unlock(&lock);
    return count;
}

static void *during_callback(void *count) {
    await(1);
    own_lock(&lock);
    shared++;
    own_unlock(&lock);
    reach(2);
    return count;
}

static void *give(void *count) {
    thing = 5;
    box_put(&thing);
    if (forgets) thing = 6;
    return count;
}

static void *take(void *count) {
    int tries = 0;
    int *taken = box_get(&tries);
    *taken += 1;
    return count;
}

// A handler runs while its thread is in the library: the call is not over by that.
static pthread_t taker;
static int is_waiting, is_handled;

static void on_signal(int number) {
    (void)number;
    __atomic_store_n(&is_handled, 1, __ATOMIC_RELEASE);
}

static void *interrupt_and_give(void *count) {
    while (!__atomic_load_n(&is_waiting, __ATOMIC_ACQUIRE)) usleep(100);
    usleep(20000);
    pthread_kill(taker, SIGUSR1);
    while (!__atomic_load_n(&is_handled, __ATOMIC_ACQUIRE)) usleep(100);
    return give(count);
}

static void *take_interrupted(void *count) {
    taker = pthread_self();
    __atomic_store_n(&is_waiting, 1, __ATOMIC_RELEASE);
    return take(count);
}

static void *add(void *count) {
    int numbers[] = {1, 2, 3};
    long result = sum(numbers, 3);
    if (forgets) racy++;
    pthread_mutex_lock(&mutex);
    shared += result;
    pthread_mutex_unlock(&mutex);
    return count;
}

static void *keep_both(void *count) {
    keep(count ? "one" : "another");
    return count;
}

static void two(void *(*first)(void *), void *(*second)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, first, 0);
    pthread_create(&threads[1], 0, second, "other");
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
}

static void pool(void) {
    static int places[4];
    pool_start();
    for (int at = 0; at < 4; at++) {
        places[at] = at;
        pool_submit(touch, &places[at]);
        pool_wait();
        shared += places[at];
    }
    pool_end();
}

// A job that says that it is done before it returns, as jobs of libraries with headers do.
static int left = 1;

static void count_down(void *count) {
    *(int *)count += 1;
    __atomic_sub_fetch(&left, 1, __ATOMIC_ACQ_REL);
    await(1);
}

static void counted(void) {
    int count = 0;
    pool_start();
    remember(&left);
    pool_submit(count_down, &count);
    wait_until_zero();
    count += 1;
    reach(1);
    pool_wait();
    pool_end();
}

static void kinds(void) {
    struct large large = many(1, 2.0, 3, 4, 5, 6, 7, 8.0f, 9);
    void (*function)(void) = as_default;
    function();
    as_default();
    printf("%d %.1f %ld %ld %ld %ld %ld\n", is_default(as_default) + is_default(function),
           mix(2, 3, 0.5, 4, 0.25), large.words[0], large.words[1], large.words[2],
           large.words[3], large.words[4]);
}

int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "";
    forgets = count > 2;
    if (!strcmp(how, "object")) two(by_object, by_object);
    if (!strcmp(how, "all")) two(by_all, by_all);
    if (!strcmp(how, "callback")) two(by_callback, during_callback);
    if (!strcmp(how, "box")) two(give, take);
    if (!strcmp(how, "interrupted")) {
        signal(SIGUSR1, on_signal);
        two(interrupt_and_give, take_interrupted);
    }
    if (!strcmp(how, "sums")) two(add, add);
    if (!strcmp(how, "keep")) two(keep_both, keep_both);
    if (!strcmp(how, "pool")) pool();
    if (!strcmp(how, "counted")) counted();
    if (!strcmp(how, "kinds")) kinds();
    return 0;
}
