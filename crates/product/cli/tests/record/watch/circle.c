/* Two threads that take two locks, each in its own order, after they have met. */
#include <pthread.h>

pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t meeting;

static void *forwards(void *unused) {
    (void)unused;
    pthread_mutex_lock(&left);
    pthread_barrier_wait(&meeting);
    pthread_mutex_lock(&right);
    return 0;
}

static void *backwards(void *unused) {
    (void)unused;
    pthread_mutex_lock(&right);
    pthread_barrier_wait(&meeting);
    pthread_mutex_lock(&left);
    return 0;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&meeting, 0, 2);
    pthread_create(&threads[0], 0, forwards, 0);
    pthread_create(&threads[1], 0, backwards, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
