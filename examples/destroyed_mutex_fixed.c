/* destroyed_mutex.c, fixed: the mutex is destroyed when nobody can lock it any more. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock;
static int hits;

static void *count(void *nothing) {
    pthread_mutex_lock(&lock);
    hits++;
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void *stop(void *nothing) {
    pthread_mutex_destroy(&lock);
    return nothing;
}

int main(void) {
    pthread_t counter, stopper;
    pthread_mutex_init(&lock, NULL);
    pthread_create(&counter, NULL, count, NULL);
    pthread_join(counter, NULL);
    pthread_create(&stopper, NULL, stop, NULL);
    pthread_join(stopper, NULL);
    printf("%d hit\n", hits);
    return 0;
}
