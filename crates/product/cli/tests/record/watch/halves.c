/* Two numbers, each under a lock of its own, that should change together: they do in every round
   of the run, because each thread finishes its step before the other one looks. */
#include <pthread.h>

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t second = PTHREAD_MUTEX_INITIALIZER;
int x, y;

static void *raise_x(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&first);
        x = 1 - x;
        pthread_mutex_unlock(&first);
    }
    return 0;
}

static void *raise_y(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&second);
        y = 1 - y;
        pthread_mutex_unlock(&second);
    }
    return 0;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, raise_x, 0);
    pthread_create(&threads[1], 0, raise_y, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return 0;
}
