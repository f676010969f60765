/* `ready` is set after `data`, and only who saw it set looks at `data`. The rest is a crowd of
   every kind of synchronisation, so that what comes before what is not told by locks alone. */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t meeting;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t tokens;
static atomic_int flag;
int data, ready, sum, counter, guarded, written, set_up, plain;

static void set(void) { set_up = 7; }

static void *produce(void *argument) {
    pthread_once(&once, set);
    for (int round = 1; round <= 3; round++) {
        pthread_mutex_lock(&mutex);
        data = round * 10;
        ready = round;
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&mutex);
        sem_post(&tokens);
        pthread_rwlock_wrlock(&table);
        written = round;
        pthread_rwlock_unlock(&table);
        plain = round;
        atomic_store(&flag, round);
    }
    pthread_barrier_wait(&meeting);
    counter++;
    free(argument);
    return 0;
}

static void *consume(void *argument) {
    pthread_once(&once, set);
    for (int round = 1; round <= 3; round++) {
        pthread_mutex_lock(&mutex);
        while (ready < round)
            pthread_cond_wait(&changed, &mutex);
        sum += data;
        pthread_mutex_unlock(&mutex);
        sem_wait(&tokens);
        pthread_rwlock_rdlock(&table);
        guarded += written;
        pthread_rwlock_unlock(&table);
        if (atomic_load(&flag) >= round)
            guarded += plain;
    }
    pthread_barrier_wait(&meeting);
    *(int *)argument = counter;
    return argument;
}

int main(void) {
    pthread_t threads[2];
    void *result;
    sem_init(&tokens, 0, 0);
    pthread_barrier_init(&meeting, 0, 2);
    pthread_create(&threads[0], 0, produce, malloc(8));
    pthread_create(&threads[1], 0, consume, malloc(8));
    pthread_join(threads[0], 0);
    pthread_join(threads[1], &result);
    free(result);
    return sum == 0;
}
