/* Flags that assembler sets: each box is written before its flag is set, and read after that was seen. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int box[4];
static int polled, found, waits, late;
static int *published;
static volatile int *shared;

static int exchange(volatile int *at, int value) {
    __asm__ volatile("xchgl %0, %1" : "+r"(value), "+m"(*at) : : "memory");
    return value;
}

static void *exchange_pointer(int **at, int *value) {
    __asm__ volatile("xchgq %0, %1" : "+r"(value), "+m"(*at) : : "memory");
    return value;
}

static void *give(void *unused) {
    box[0] = 1;
    exchange(&polled, 1);
    box[1] = 1;
    exchange(&found, 1);
    int *made = malloc(sizeof *made);
    *made = 1;
    exchange_pointer(&published, made);
    box[2] = 1;
    exchange(shared, 1);
    while (!__atomic_load_n(&waits, __ATOMIC_ACQUIRE)) sched_yield();
    box[3] = 1;
    /* Turns in which nothing is seen but that there were some. */
    for (int i = 0; i < 50; i++) sched_yield();
    exchange(&late, 1);
    sched_yield();
    return unused;
}

static void *take(void *unused) {
    while (!__atomic_load_n(&polled, __ATOMIC_ACQUIRE)) sched_yield();
    int sum = box[0];
    if (!__atomic_load_n(&found, __ATOMIC_ACQUIRE)) {
        while (!__atomic_load_n(&found, __ATOMIC_ACQUIRE)) sched_yield();
    }
    sum += box[1];
    int *seen;
    while (!(seen = *(int *volatile *)&published)) sched_yield();
    sum += *seen;
    while (!*shared) sched_yield();
    sum += box[2];
    __atomic_store_n(&waits, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&late, __ATOMIC_ACQUIRE)) sched_yield();
    sum += box[3];
    printf("%d\n", sum);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    shared = malloc(sizeof *shared);
    *shared = 0;
    pthread_create(&threads[0], 0, give, 0);
    pthread_create(&threads[1], 0, take, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
