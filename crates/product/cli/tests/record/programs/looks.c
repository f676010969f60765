/* Memory handed over by what a thread finds out without taking it: the value of a semaphore, how much a
   pipe holds, a number scanned from a stream, a timer that has run out. No two accesses race. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

int box[5];
static sem_t semaphore, taken;
static int pipes[2], scanned[2], timer;
static FILE *stream;

static void *give(void *unused) {
    struct itimerspec soon = { .it_value.tv_nsec = 1000 };
    box[0] = 1;
    sem_post(&semaphore);
    box[1] = 1;
    write(pipes[1], "x", 1);
    box[2] = 1;
    dprintf(scanned[1], "%d\n", 7);
    box[3] = 1;
    timerfd_settime(timer, 0, &soon, 0);
    box[4] = 1;
    sem_wait(&taken);
    return unused;
}

static void *take(void *unused) {
    int value = 0, count = 0, number = 0;
    uint64_t times = 0;
    while (!value) sched_yield(), sem_getvalue(&semaphore, &value);
    int sum = box[0];
    while (!count) sched_yield(), ioctl(pipes[0], FIONREAD, &count);
    sum += box[1];
    fscanf(stream, "%d", &number);
    sum += box[2] + number;
    read(timer, &times, sizeof times);
    sum += box[3];
    for (value = 1; value;) sched_yield(), sem_getvalue(&taken, &value);
    sum += box[4];
    printf("%d\n", sum);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    sem_init(&semaphore, 0, 0);
    sem_init(&taken, 0, 1);
    pipe(pipes);
    pipe(scanned);
    stream = fdopen(scanned[0], "r");
    timer = timerfd_create(CLOCK_MONOTONIC, 0);
    pthread_create(&threads[0], 0, give, 0);
    pthread_create(&threads[1], 0, take, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
