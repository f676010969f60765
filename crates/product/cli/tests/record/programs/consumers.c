/* Two consumers wait on a condition. What they count outside of the lock races. */
#include <pthread.h>
#include <stdio.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t is_there = PTHREAD_COND_INITIALIZER;
static int items, total, statistics;

static void *consume(void *nothing) {
    for (int i = 0; i < 5; i++) {
        pthread_mutex_lock(&lock);
        while (items == 0)
            pthread_cond_wait(&is_there, &lock);
        items--;
        total++;
        pthread_mutex_unlock(&lock);
        statistics++;
    }
    return nothing;
}

static void *produce(void *nothing) {
    for (int i = 0; i < 10; i++) {
        pthread_mutex_lock(&lock);
        items++;
        pthread_cond_signal(&is_there);
        pthread_mutex_unlock(&lock);
    }
    return nothing;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, consume, NULL);
    pthread_create(&threads[1], NULL, consume, NULL);
    pthread_create(&threads[2], NULL, produce, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    printf("%d\n", total);
    return 0;
}
