/* producer_consumer.c, fixed: a lock guards the place where items are put. */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

enum { PLACES = 4, ITEMS = 4 };

static sem_t free_places, items;
static int buffer[PLACES];
static int head, tail;
static pthread_mutex_t putting = PTHREAD_MUTEX_INITIALIZER;

static void put(int item) {
    sem_wait(&free_places);
    pthread_mutex_lock(&putting);
    buffer[tail % PLACES] = item;
    tail++;
    pthread_mutex_unlock(&putting);
    sem_post(&items);
}

static int take(void) {
    sem_wait(&items);
    int item = buffer[head++ % PLACES];
    sem_post(&free_places);
    return item;
}

static void *produce(void *first) {
    usleep(*(int *)first * 2000);
    for (int i = 0; i < ITEMS / 2; i++)
        put(*(int *)first + i);
    return NULL;
}

static void *consume(void *sum) {
    for (int i = 0; i < ITEMS; i++)
        *(int *)sum += take();
    return NULL;
}

int main(void) {
    int low = 1, high = 10, sum = 0;
    pthread_t one, two, consumer;
    sem_init(&free_places, 0, PLACES);
    sem_init(&items, 0, 0);
    pthread_create(&consumer, NULL, consume, &sum);
    pthread_create(&one, NULL, produce, &low);
    pthread_create(&two, NULL, produce, &high);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    pthread_join(consumer, NULL);
    printf("sum %d\n", sum);
    return 0;
}
