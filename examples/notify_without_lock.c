/* A condition that is notified without the lock.
 *
 * Wrong: the flag is atomic, so `finish` takes no lock. Its signal can come between the waiter's look at the flag and
 * its wait, and wakes nobody.
 * An ordinary run: the waiter sleeps long before the work is done, and the signal wakes it.
 * reweave: the waiter waits for ever. There is no race.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t finished = PTHREAD_COND_INITIALIZER;
static atomic_int done;

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
