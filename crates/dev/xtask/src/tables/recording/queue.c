/* Queue: two threads hand 200 000 numbers each to two others through a buffer of 64. */
#include <pthread.h>
#include <stdio.h>

enum { CAPACITY = 64, NUMBERS = 200000, PAIRS = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static int buffer[CAPACITY], first, last, count;
static long sum;

static void *produce(void *unused) {
    (void)unused;
    for (int number = 0; number < NUMBERS; number++) {
        pthread_mutex_lock(&lock);
        while (count == CAPACITY) pthread_cond_wait(&not_full, &lock);
        buffer[last] = number;
        last = (last + 1) % CAPACITY;
        count++;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consume(void *unused) {
    (void)unused;
    for (int taken = 0; taken < NUMBERS; taken++) {
        pthread_mutex_lock(&lock);
        while (count == 0) pthread_cond_wait(&not_empty, &lock);
        sum += buffer[first];
        first = (first + 1) % CAPACITY;
        count--;
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2 * PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        pthread_create(&threads[2 * i], NULL, produce, NULL);
        pthread_create(&threads[2 * i + 1], NULL, consume, NULL);
    }
    for (int i = 0; i < 2 * PAIRS; i++) pthread_join(threads[i], NULL);
    printf("%ld\n", sum);
    return 0;
}
