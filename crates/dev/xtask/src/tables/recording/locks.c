/* Locks: four threads take one lock half a million times each, for one addition. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, ROUNDS = 500000 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;

static void *work(void *unused) {
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", counter);
    return 0;
}
