/* Globals that are written before anybody reads them. */
#include <pthread.h>

int x, y;

static void *one(void *p) {
    x = 1;
    return p;
}

static void *other(void *p) {
    y = 1;
    return p;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, one, 0);
    pthread_create(&threads[1], 0, other, 0);
    pthread_join(threads[0], 0);
    pthread_join(threads[1], 0);
    return x + y - 2;
}
