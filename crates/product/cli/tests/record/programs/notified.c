/* A race that needs a thread to be notified and not to go on: it waits on a condition, and stays there. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, l = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static int start, data;

static void *waiter(void *p) {
    pthread_mutex_lock(&m);
    while (!start) pthread_cond_wait(&c, &m);
    pthread_mutex_unlock(&m);
    return p;
}

static void *one(void *p) {
    pthread_mutex_lock(&l);
    pthread_mutex_unlock(&l);
    data++;
    return p;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], 0, waiter, 0);
    usleep(20000);
    pthread_mutex_lock(&m);
    start = 1;
    pthread_cond_broadcast(&c);
    pthread_mutex_unlock(&m);
    pthread_create(&threads[1], 0, one, 0);
    usleep(20000);
    pthread_create(&threads[2], 0, one, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("%d\n", data);
    return 0;
}
