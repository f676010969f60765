/* A condition whose flag is set outside the lock.
 *
 * Wrong: `finish` sets `done` and signals without the lock. Between the waiter's look at `done` and its
 * wait the signal comes and wakes nobody, and the waiter sleeps for ever.
 * An ordinary run: the waiter sleeps long before the work is done, and the signal wakes it.
 * reweave: the waiter waits for ever; and a race between the lines that set `done` and look at it.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static int done;

static void *finish(void *nothing) {
    usleep(20000); /* the work */
    done = 1;
    pthread_cond_signal(&finished);
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
