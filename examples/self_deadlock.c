/* A thread that locks its own mutex twice.
 *
 * Wrong: `add` holds the lock when it calls `total`, which takes it again.
 * Every run: the program stands still.
 * reweave: `record --stall-timeout 1` ends the run, and `check` says that the thread waits for itself.
 */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int sum;

static int total(void) {
    pthread_mutex_lock(&lock);
    int now = sum;
    pthread_mutex_unlock(&lock);
    return now;
}

static void *add(void *nothing) {
    pthread_mutex_lock(&lock);
    sum = total() + 1;
    pthread_mutex_unlock(&lock);
    return nothing;
}

int main(void) {
    pthread_t adder;
    pthread_create(&adder, NULL, add, NULL);
    pthread_join(adder, NULL);
    printf("sum %d\n", sum);
    return 0;
}
