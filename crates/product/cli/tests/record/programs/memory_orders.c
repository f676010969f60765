// Atomics that hand something over. The first argument says how; with a second one, "weak", one memory
// order of it is too weak.
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int data, weak;
static atomic_int ready, count, spin;

// A flag.
static void *publish(void *unused) {
    data = 42;
    if (weak) atomic_store_explicit(&ready, 1, memory_order_relaxed);
    else atomic_store_explicit(&ready, 1, memory_order_release);
    return unused;
}

static void *subscribe(void *unused) {
    while (!atomic_load_explicit(&ready, memory_order_acquire)) sched_yield();
    return (void *)(long)(data != 42);
}

// A flag with fences.
static void *publish_by_fence(void *unused) {
    data = 42;
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return unused;
}

static void *subscribe_by_fence(void *unused) {
    while (!atomic_load_explicit(&ready, memory_order_relaxed)) sched_yield();
    if (!weak) atomic_thread_fence(memory_order_acquire);
    return (void *)(long)(data != 42);
}

// A count of references: the last one clears the object.
struct object { atomic_int references; int value; };
static struct object *object;

static void *drop(void *unused) {
    int seen = object->value;
    int left = weak ? atomic_fetch_sub_explicit(&object->references, 1, memory_order_relaxed)
                    : atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel);
    if (left == 1) object->value = 0;
    return seen == 7 ? unused : object;
}

// A lock that is released too weakly.
static void *bump(void *unused) {
    for (int round = 0; round < 20; round++) {
        while (atomic_exchange_explicit(&spin, 1, memory_order_acquire)) sched_yield();
        data++;
        if (weak) atomic_store_explicit(&spin, 0, memory_order_relaxed);
        else atomic_store_explicit(&spin, 0, memory_order_release);
    }
    return unused;
}

// A counter that orders nothing, between accesses that nothing else orders either.
static void *tally(void *unused) {
    if (weak) data++;
    atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
    return unused;
}

// A release sequence: another thread's update in between, and a third that sees it.
static void *begin(void *unused) {
    data = 42;
    atomic_store_explicit(&ready, 1, memory_order_release);
    return unused;
}

static void *go_on(void *unused) {
    int expected = 1;
    while (!atomic_compare_exchange_weak_explicit(&ready, &expected, 2, memory_order_relaxed, memory_order_relaxed)) {
        expected = 1;
        sched_yield();
    }
    return unused;
}

static void *end(void *unused) {
    while (atomic_load_explicit(&ready, memory_order_relaxed) != 2) sched_yield();
    if (!weak) atomic_thread_fence(memory_order_acquire);
    return (void *)(long)(data != 42);
}

static int run(void *(*first)(void *), void *(*second)(void *), void *(*third)(void *)) {
    void *(*bodies[])(void *) = {first, second, third};
    pthread_t threads[3];
    void *result = 0;
    int faults = 0, bodies_count = third ? 3 : 2;
    for (int at = 0; at < bodies_count; at++) pthread_create(&threads[at], 0, bodies[at], 0);
    for (int at = 0; at < bodies_count; at++) {
        pthread_join(threads[at], &result);
        faults += result != 0;
    }
    return faults;
}

int main(int arguments_count, char **arguments) {
    const char *how = arguments_count > 1 ? arguments[1] : "flag";
    weak = arguments_count > 2;
    object = malloc(sizeof *object);
    atomic_init(&object->references, 2);
    object->value = 7;
    if (!strcmp(how, "flag")) return run(publish, subscribe, 0);
    if (!strcmp(how, "fence")) return run(publish_by_fence, subscribe_by_fence, 0);
    if (!strcmp(how, "references")) return run(drop, drop, 0);
    if (!strcmp(how, "spin")) return run(bump, bump, 0);
    if (!strcmp(how, "counter")) return run(tally, tally, 0);
    return run(begin, go_on, end);
}
