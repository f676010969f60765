/* A mutex that main locks and a thread unlocks: undefined, but with the C library of GNU it works, and
   what comes before the unlock comes before what follows the next lock. */
#include <pthread.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
int x, y;

static void *unlocks(void *p) {
    x = 1;
    pthread_mutex_unlock(&m);
    y = 1;
    return p;
}

int main(void) {
    pthread_t thread;
    pthread_mutex_lock(&m);
    pthread_create(&thread, 0, unlocks, 0);
    pthread_mutex_lock(&m);
    x = 2;
    pthread_mutex_unlock(&m);
    y = 2;
    pthread_join(thread, 0);
    return 0;
}
