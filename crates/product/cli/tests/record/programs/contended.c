// Four threads contend for every kind of lock and meet at every kind of meeting point; each variable
// is protected, so nothing is to be found. The argument is how many rounds.
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, queue_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_spinlock_t spin;
pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
pthread_barrier_t barrier;
sem_t tokens;
int by_mutex, by_rwlock, by_spin, by_barrier, by_semaphore, queue[4], queue_count;
_Atomic int word;
int by_word;
_Atomic(int *) published;
static int rounds;

static void put(int value) {
    pthread_mutex_lock(&queue_lock);
    while (queue_count == 4) pthread_cond_wait(&not_full, &queue_lock);
    queue[queue_count++] = value;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&queue_lock);
}

static int get(void) {
    pthread_mutex_lock(&queue_lock);
    while (queue_count == 0) pthread_cond_wait(&not_empty, &queue_lock);
    int value = queue[--queue_count];
    pthread_cond_broadcast(&not_full);
    pthread_mutex_unlock(&queue_lock);
    return value;
}

static void *work(void *argument) {
    int own = (int)(long)argument;
    for (int round = 0; round < rounds; round++) {
        pthread_mutex_lock(&m);
        by_mutex++;
        pthread_mutex_unlock(&m);
        if (round % 3 == own % 3) {
            pthread_rwlock_wrlock(&rwlock);
            by_rwlock++;
            pthread_rwlock_unlock(&rwlock);
        } else {
            pthread_rwlock_rdlock(&rwlock);
            int seen = by_rwlock;
            pthread_rwlock_unlock(&rwlock);
            if (seen < 0) abort();
        }
        pthread_spin_lock(&spin);
        by_spin++;
        pthread_spin_unlock(&spin);
        sem_wait(&tokens);
        by_semaphore++;
        sem_post(&tokens);
        if (own % 2) put(round);
        else if (get() < 0) abort();
        while (atomic_exchange_explicit(&word, 1, memory_order_acquire)) sched_yield();
        by_word++;
        atomic_store_explicit(&word, 0, memory_order_release);
        int *block = malloc(sizeof *block);
        *block = round;
        int *taken = atomic_exchange(&published, block);
        if (taken) {
            if (*taken < 0) abort();
            free(taken);
        }
        if (round % 8 == 0) {
            if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) by_barrier++;
            pthread_barrier_wait(&barrier);
        }
    }
    return 0;
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    rounds = count > 1 ? atoi(arguments[1]) : 100;
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, 0, THREADS);
    sem_init(&tokens, 0, 1);
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], 0, work, (void *)i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    free(published);
    printf("%d %d %d %d %d\n", by_mutex, by_spin, by_semaphore, by_word, by_barrier);
    return 0;
}
