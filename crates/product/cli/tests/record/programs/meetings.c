// Barriers, what is done once, semaphores.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <time.h>

pthread_barrier_t barrier;
pthread_once_t control = PTHREAD_ONCE_INIT;
sem_t full, empty;
int once_count, box, sum;

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

static void do_once(void) { once_count++; }

static void *other(void *unused) {
    struct timespec until = soon(CLOCK_REALTIME);
    pthread_once(&control, do_once);
    printf("%d", sem_trywait(&full) == -1 && errno == EAGAIN);
    printf(" %d", sem_timedwait(&full, &until) == -1 && errno == ETIMEDOUT);
    until = soon(CLOCK_MONOTONIC);
    printf(" %d\n", sem_clockwait(&full, CLOCK_MONOTONIC, &until) == -1 && errno == ETIMEDOUT);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 3; i++) {
        sem_wait(&full);
        sum += box;
        sem_post(&empty);
    }
    pthread_barrier_wait(&barrier);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_barrier_init(&barrier, 0, 2);
    sem_init(&full, 0, 0);
    sem_init(&empty, 0, 1);
    pthread_once(&control, do_once);
    pthread_create(&thread, 0, other, 0);
    pthread_barrier_wait(&barrier);
    for (int i = 1; i <= 3; i++) {
        sem_wait(&empty);
        box = i;
        sem_post(&full);
    }
    pthread_barrier_wait(&barrier);
    printf("%d %d\n", once_count, sum);
    pthread_join(thread, 0);
    pthread_barrier_destroy(&barrier);
    sem_destroy(&full);
    return 0;
}
