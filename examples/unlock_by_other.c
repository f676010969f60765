/* A mutex that another thread than its owner unlocks.
 *
 * Wrong: `main` locks, and `finish` unlocks: a mutex is not a semaphore.
 * Every run: it works with this C library.
 * reweave: misuse, with both places.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t done = PTHREAD_MUTEX_INITIALIZER;

static void *finish(void *nothing) {
    puts("working");
    pthread_mutex_unlock(&done);
    return nothing;
}

int main(void) {
    pthread_t worker;
    pthread_mutex_lock(&done);
    pthread_create(&worker, NULL, finish, NULL);
    pthread_mutex_lock(&done);
    puts("done");
    pthread_join(worker, NULL);
    return 0;
}
