// Mutexes of every kind, taken in every way, by one thread and then another.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t recursive, checking, robust;
pthread_spinlock_t spin;
int x;

static struct timespec soon(clockid_t clock) {
    struct timespec until;
    clock_gettime(clock, &until);
    until.tv_nsec += 5000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

static void init(pthread_mutex_t *mutex, int kind, int is_robust) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind);
    if (is_robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

static void *fail(void *unused) {
    struct timespec until = soon(CLOCK_REALTIME);
    printf("%d", pthread_mutex_trylock(&normal) == EBUSY);
    printf(" %d", pthread_mutex_timedlock(&normal, &until) == ETIMEDOUT);
    until = soon(CLOCK_MONOTONIC);
    printf(" %d", pthread_mutex_clocklock(&normal, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    printf(" %d", pthread_mutex_unlock(&checking) == EPERM);
    printf(" %d\n", pthread_spin_trylock(&spin) == EBUSY);
    return unused;
}

static void *die_with_it(void *unused) {
    pthread_mutex_lock(&robust);
    x = 5;
    return unused;
}

int main(void) {
    struct timespec until;
    pthread_t thread;
    init(&recursive, PTHREAD_MUTEX_RECURSIVE, 0);
    init(&checking, PTHREAD_MUTEX_ERRORCHECK, 0);
    init(&robust, PTHREAD_MUTEX_NORMAL, 1);
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);

    pthread_mutex_lock(&normal);
    pthread_spin_lock(&spin);
    pthread_create(&thread, 0, fail, 0);
    pthread_join(thread, 0);
    pthread_spin_unlock(&spin);
    pthread_mutex_unlock(&normal);

    printf("%d", pthread_mutex_trylock(&normal));
    pthread_mutex_unlock(&normal);
    until = soon(CLOCK_REALTIME);
    printf(" %d", pthread_mutex_timedlock(&normal, &until));
    pthread_mutex_unlock(&normal);
    until = soon(CLOCK_MONOTONIC);
    printf(" %d\n", pthread_mutex_clocklock(&normal, CLOCK_MONOTONIC, &until));
    pthread_mutex_unlock(&normal);

    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    printf("%d", pthread_mutex_trylock(&recursive));
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
    printf(" %d", pthread_mutex_unlock(&recursive) == EPERM);

    pthread_mutex_lock(&checking);
    printf(" %d", pthread_mutex_lock(&checking) == EDEADLK);
    pthread_mutex_unlock(&checking);

    pthread_create(&thread, 0, die_with_it, 0);
    pthread_join(thread, 0);
    printf(" %d", pthread_mutex_lock(&robust) == EOWNERDEAD);
    printf(" %d", pthread_mutex_consistent(&robust));
    x++;
    pthread_mutex_unlock(&robust);
    printf(" %d\n", x);
    pthread_mutex_destroy(&recursive);
    return 0;
}
