/* One thread sleeps with a lock, the other waits for it: nothing happens, and nothing is wrong. */
#include <pthread.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meeting;

static void *sleep_long(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&meeting);
    sleep(2);
    pthread_mutex_unlock(&lock);
    return 0;
}

static void *wait_long(void *unused) {
    (void)unused;
    pthread_barrier_wait(&meeting);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&meeting, 0, 2);
    pthread_create(&threads[0], 0, sleep_long, 0);
    pthread_create(&threads[1], 0, wait_long, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
