/* A mutex that is destroyed while another thread may still lock it.
 *
 * Wrong: nothing makes `stop` wait for `count`. What a destroyed mutex does is undefined.
 * An ordinary run: the mutex is destroyed long after it was used.
 * reweave: the lock can come after the destroy.
 */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t lock;
static int hits;

static void *count(void *nothing) {
    pthread_mutex_lock(&lock);
    hits++;
    pthread_mutex_unlock(&lock);
    return nothing;
}

static void *stop(void *nothing) {
    usleep(20000); /* all are done by now, surely */
    pthread_mutex_destroy(&lock);
    return nothing;
}

int main(void) {
    pthread_t counter, stopper;
    pthread_mutex_init(&lock, NULL);
    pthread_create(&counter, NULL, count, NULL);
    pthread_create(&stopper, NULL, stop, NULL);
    pthread_join(counter, NULL);
    pthread_join(stopper, NULL);
    printf("%d hit\n", hits);
    return 0;
}
