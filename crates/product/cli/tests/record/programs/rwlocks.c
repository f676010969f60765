// Reader-writer locks, taken in every way.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

pthread_rwlock_t lock;
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

static void *while_read(void *unused) {
    struct timespec until = soon(CLOCK_REALTIME);
    int seen;
    pthread_rwlock_rdlock(&lock);
    seen = x;
    pthread_rwlock_unlock(&lock);
    printf("%d %d", seen, pthread_rwlock_trywrlock(&lock) == EBUSY);
    printf(" %d", pthread_rwlock_timedwrlock(&lock, &until) == ETIMEDOUT);
    until = soon(CLOCK_MONOTONIC);
    printf(" %d\n", pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    return unused;
}

static void *while_written(void *unused) {
    struct timespec until = soon(CLOCK_REALTIME);
    printf("%d", pthread_rwlock_tryrdlock(&lock) == EBUSY);
    printf(" %d", pthread_rwlock_timedrdlock(&lock, &until) == ETIMEDOUT);
    until = soon(CLOCK_MONOTONIC);
    printf(" %d\n", pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    return unused;
}

static void beside(void *(*routine)(void *)) {
    pthread_t thread;
    pthread_create(&thread, 0, routine, 0);
    pthread_join(thread, 0);
}

int main(void) {
    struct timespec until;
    pthread_rwlock_init(&lock, 0);
    pthread_rwlock_rdlock(&lock);
    pthread_rwlock_tryrdlock(&lock);
    beside(while_read);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_unlock(&lock);

    pthread_rwlock_wrlock(&lock);
    x = 1;
    beside(while_written);
    printf("%d\n", pthread_rwlock_rdlock(&lock) == EDEADLK);
    pthread_rwlock_unlock(&lock);

    until = soon(CLOCK_REALTIME);
    pthread_rwlock_timedrdlock(&lock, &until);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_timedwrlock(&lock, &until);
    pthread_rwlock_unlock(&lock);
    until = soon(CLOCK_MONOTONIC);
    pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, &until);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_clockwrlock(&lock, CLOCK_MONOTONIC, &until);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_trywrlock(&lock);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_destroy(&lock);
    return 0;
}
