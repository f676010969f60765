/* notify_without_lock.c, fixed: the flag is set under the lock, so not between the look and the wait. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static atomic_int done;

static void *finish(void *nothing) {
    usleep(20000); /* the work */
    pthread_mutex_lock(&lock);
    done = 1;
    pthread_cond_signal(&finished);
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void *await(void *nothing) {
    pthread_mutex_lock(&lock);
    while (!done)
        pthread_cond_wait(&finished, &lock);
    pthread_mutex_unlock(&lock);
    puts("the work is done");
    return nothing;
}

int main(void) {
    pthread_t worker, waiter;
    pthread_create(&waiter, NULL, await, NULL);
    pthread_create(&worker, NULL, finish, NULL);
    pthread_join(worker, NULL);
    pthread_join(waiter, NULL);
    return 0;
}
