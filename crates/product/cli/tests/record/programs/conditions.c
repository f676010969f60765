// Condition variables: waits of all forms, woken one at a time and all at once.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t c = PTHREAD_COND_INITIALIZER;
pthread_cond_t back = PTHREAD_COND_INITIALIZER;
int stage;

static struct timespec later(clockid_t clock, long milliseconds) {
    struct timespec until;
    clock_gettime(clock, &until);
    until.tv_nsec += milliseconds * 1000000;
    while (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    return until;
}

static void *other(void *unused) {
    struct timespec until;
    pthread_mutex_lock(&m);
    stage = 1;
    pthread_cond_signal(&back);
    while (stage == 1) pthread_cond_wait(&c, &m);
    stage = 3;
    pthread_cond_signal(&back);
    until = later(CLOCK_REALTIME, 60000);
    while (stage == 3) pthread_cond_timedwait(&c, &m, &until);
    stage = 5;
    pthread_cond_broadcast(&back);
    until = later(CLOCK_MONOTONIC, 60000);
    while (stage == 5) pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&m);
    return unused;
}

int main(void) {
    struct timespec until;
    pthread_t thread;
    pthread_mutex_lock(&m);
    until = later(CLOCK_REALTIME, 5);
    printf("%d", pthread_cond_timedwait(&c, &m, &until) == ETIMEDOUT);
    until = later(CLOCK_MONOTONIC, 5);
    printf(" %d\n", pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &until) == ETIMEDOUT);
    pthread_create(&thread, 0, other, 0);
    while (stage != 1) pthread_cond_wait(&back, &m);
    stage = 2;
    pthread_cond_signal(&c);
    while (stage != 3) pthread_cond_wait(&back, &m);
    stage = 4;
    pthread_cond_broadcast(&c);
    while (stage != 5) pthread_cond_wait(&back, &m);
    stage = 6;
    pthread_cond_signal(&c);
    pthread_mutex_unlock(&m);
    pthread_join(thread, 0);
    printf("%d\n", stage);
    return 0;
}
