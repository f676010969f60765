/* Threads that take locks in a circle, by one helper: the first argument says how many there are. With a second one they
 * meet in between, so that the run deadlocks. Before, two others take two other locks in opposite orders, one after the
 * other. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t c = PTHREAD_MUTEX_INITIALIZER, d = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t e = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t *const circle[] = {&a, &b, &c};
static pthread_barrier_t all;
static int count, waits;

static void both(pthread_mutex_t *outer, pthread_mutex_t *inner, int meets) {
    pthread_mutex_lock(outer);
    if (meets)
        pthread_barrier_wait(&all);
    pthread_mutex_lock(inner);
    pthread_mutex_unlock(inner);
    pthread_mutex_unlock(outer);
}

static void *round_about(void *p) {
    long at = (long)p;
    if (!waits)
        usleep(20000 * at);
    both(circle[at], circle[(at + 1) % count], waits);
    return NULL;
}

static void *forth(void *p) {
    both(&d, &e, 0);
    return p;
}

static void *back(void *p) {
    usleep(20000);
    both(&e, &d, 0);
    return p;
}

int main(int argc, char **argv) {
    pthread_t threads[3], others[2];
    count = atoi(argv[1]);
    waits = argc > 2;
    pthread_barrier_init(&all, NULL, count);
    pthread_create(&others[0], NULL, forth, NULL);
    pthread_create(&others[1], NULL, back, NULL);
    for (int at = 0; at < 2; at++)
        pthread_join(others[at], NULL);
    for (long at = 0; at < count; at++)
        pthread_create(&threads[at], NULL, round_about, (void *)at);
    for (int at = 0; at < count; at++)
        pthread_join(threads[at], NULL);
    return 0;
}
