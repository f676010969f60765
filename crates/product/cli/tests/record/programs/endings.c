/* One way to end for each argument. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t both;
static int x;
static int *volatile nowhere;

static void *twice(void *p) {
    pthread_mutex_lock(&a);
    pthread_mutex_lock(&a);
    return p;
}

static void *keeps(void *p) {
    pthread_mutex_lock(&a);
    return p;
}

static void *forward(void *p) {
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&b);
    return p;
}

static void *backward(void *p) {
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&a);
    return p;
}

static void *waits(void *p) {
    pthread_mutex_lock(&a);
    pthread_cond_wait(&condition, &a);
    pthread_mutex_unlock(&a);
    return p;
}

static void *ticks(void *p) {
    for (;;) {
        x++;
        usleep(50000);
    }
    return p;
}

static void *asserts(void *p) {
    x = 2;
    assert(x == 1);
    return p;
}

static void *crashes(void *p) {
    x = 3;
    *nowhere = 1;
    return p;
}

static void *aborts(void *p) {
    x = 4;
    abort();
    return p;
}

static void run(void *(*one)(void *), void *(*other)(void *)) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, one, 0);
    if (other) pthread_create(&threads[1], 0, other, 0);
    pthread_join(threads[0], 0);
    if (other) pthread_join(threads[1], 0);
}

int main(int count, char **arguments) {
    const char *way = count > 1 ? arguments[1] : "";
    pthread_barrier_init(&both, 0, 2);
    if (!strcmp(way, "self")) run(twice, 0);
    else if (!strcmp(way, "held")) run(keeps, keeps);
    else if (!strcmp(way, "cycle")) run(forward, backward);
    else if (!strcmp(way, "hang")) run(waits, 0);
    else if (!strcmp(way, "tick")) run(waits, ticks);
    else if (!strcmp(way, "assert")) run(asserts, 0);
    else if (!strcmp(way, "crash")) run(crashes, 0);
    else if (!strcmp(way, "abort")) run(aborts, 0);
    return 0;
}
