/* Threads that get the handle of one that has just been joined, before who joined it can say so. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { ROUNDS = 40 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int begun;
static int counter, handed;

static void *count(void *unused) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        pthread_mutex_unlock(&lock);
    }
    return unused;
}

static void *begin(void *unused) {
    handed++;
    atomic_fetch_add(&begun, 1);
    return unused;
}

static void *create(void *unused) {
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        pthread_create(&thread, 0, begin, 0);
        pthread_join(thread, 0);
    }
    return unused;
}

int main(void) {
    pthread_t creator;
    pthread_create(&creator, 0, create, 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        while (atomic_load(&begun) <= i) sched_yield();
        pthread_create(&thread, 0, count, 0);
        pthread_join(thread, 0);
    }
    pthread_join(creator, 0);
    printf("%d %d\n", counter, handed);
    return 0;
}
